"""Datagrams between hosts: sent, perhaps lost or copied, refused by whoever is not there, and held where nobody reads.

    send ──► network: when, how often, or not at all ──► receive ──► the node, or its socket's buffer

A socket's buffer holds so much and no more; it dies with its process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from mesh.core.address import Address
from mesh.core.effects import SendDatagram
from mesh.sim.host import INBOX_DATAGRAMS_MAX, Host
from mesh.sim.loop import Loop
from mesh.sim.network import Network
from mesh.sim.refusals import Refusals
from mesh.sim.trace import Kind, Trace

Packet: TypeAlias = tuple[Address, Address, bytes, int]
"""From where, to where, what, and in which era of the network."""

_SEND: Final = int(Kind.SEND)  # a plain number: an enum's pack would cost more than the rest


class Datagrams:
    """The datagrams of all hosts. `deliver` hands one to a node that runs and reads."""

    def __init__(
        self,
        loop: Loop,
        network: Network,
        host_at: Callable[[Address], Host | None],
        deliver: Callable[[Host, Address, bytes], None],
        *,
        refusals: Refusals,
        trace: Trace,
    ) -> None:
        self._loop = loop
        self._network = network
        self._host_at = host_at
        self._deliver = deliver
        self._refusals = refusals
        self._trace = trace

    def send(self, host: Host, effect: SendDatagram) -> None:
        """Carry out one `SendDatagram`."""
        loop, network = self._loop, self._network
        to, data = effect.to, effect.data
        host.traffic.datagrams_sent += 1
        host.traffic.datagram_bytes_sent += len(data)
        self._trace.record(loop.now_s, host.index, _SEND, data)
        target = self._host_at(to)
        if target is not None and target.is_powered:
            packet = (host.spec.address, to, data, network.era)
            arrivals = network.datagram_arrivals(loop.now_s, host.index, target.index)
            for arrival_s in arrivals:
                loop.schedule(arrival_s, self.receive, packet)
            if not arrivals and network.rejects(host.index, target.index):
                self._refusals.reject(host, target, to)

    def receive(self, packet: Packet) -> None:
        """Let one arrive; what was under way when the network healed is lost."""
        source, to, data, era = packet
        host = self._host_at(to)
        if host is None or era != self._network.era:
            return
        if host.node is None:
            self._refusals.refuse(self._host_at(source), host, to)
        elif host.takes_messages:
            self._deliver(host, source, data)
        elif host.datagrams_waiting >= INBOX_DATAGRAMS_MAX:
            host.traffic.datagrams_lost_in_inbox += 1
        else:
            host.datagrams_waiting += 1
            host.inbox.append((self.receive, packet))

    def send_letters(self, host: Host) -> None:
        """Send what the guardian of a session that has just ended was given, from the host's address."""
        letters, host.letters = host.letters, ()
        for letter in letters:
            self.send(host, SendDatagram(letter.to, letter.data))

    def drop_unread(self, host: Host) -> None:
        """Drop what waits in the socket of a process that has ended: nobody hears of it."""
        receive = self.receive
        waiting = [item for item in host.inbox if item[0] != receive]
        host.inbox.clear()
        host.inbox.extend(waiting)
