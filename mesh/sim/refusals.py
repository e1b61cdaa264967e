"""Datagrams for a port that nobody holds, on a host that runs: its kernel says so to whoever sent them.

What it says takes the way of a datagram back, and may be lost like one. A host without power, or an
address that no host has, says nothing. A firewall that rejects says the same in a host's name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from mesh.core.address import Address
from mesh.core.lines import DatagramRefused
from mesh.sim.host import Host
from mesh.sim.loop import Loop
from mesh.sim.network import Network

_Refusal: TypeAlias = tuple[Host, int, Address]


class Refusals:
    """Takes refusals back to their cause, as a `DatagramRefused` of the session that sent it."""

    def __init__(
        self, loop: Loop, network: Network, report: Callable[[Host, DatagramRefused], None]
    ) -> None:
        self._loop = loop
        self._network = network
        self._report = report

    def refuse(self, sender: Host | None, target: Host, address: Address) -> None:
        """Let a host refuse a datagram that came for `address`."""
        if sender is None or not target.is_powered:
            return
        refusal = (sender, sender.session, address)
        now_s = self._loop.now_s
        for arrival_s in self._network.datagram_arrivals(now_s, target.index, sender.index):
            self._loop.schedule(arrival_s, self.arrive, refusal)

    def reject(self, sender: Host, target: Host, address: Address) -> None:
        """Let a firewall before a host refuse a datagram in its name."""
        there_s = self._network.stream_arrival(self._loop.now_s, sender.index, target.index)
        back_s = self._network.stream_arrival(there_s, target.index, sender.index)
        self._loop.schedule(back_s, self.arrive, (sender, sender.session, address))

    def arrive(self, refusal: _Refusal) -> None:
        """Hand a refusal to the session that it is for, true or forged; while that takes nothing, it waits."""
        host, session, address = refusal
        if host.session != session or host.node is None:
            return
        if not host.takes_messages:
            host.inbox.append((self.arrive, refusal))
            return
        self._report(host, DatagramRefused(address))
