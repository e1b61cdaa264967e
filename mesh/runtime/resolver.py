"""Finds the numeric addresses of a seed, in a task, so that a slow name server stops nobody.

Addresses that lie out of this node's reach are left out, and said so once for each seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from mesh.core.address import Address, numeric_host, split_host_port
from mesh.core.limits import SEED_ADDRESSES_MAX
from mesh.runtime.reach import Reach

TIMEOUT_S: Final = 10.0
_FOUND_MAX: Final = 16  # looked at, to find those within reach

Report = Callable[[str, tuple[Address, ...]], None]


class Resolver:
    """Answers each question once, by `report(seed, addresses)`; no addresses: not found."""

    def __init__(
        self,
        nursery: trio.Nursery,
        report: Report,
        say: Callable[[str], None],
        reach: Reach | None = None,
    ) -> None:
        self._nursery = nursery
        self._report = report
        self._say = say
        self._reach = reach or Reach()
        self._asked: set[str] = set()
        self._refused: set[str] = set()

    def resolve(self, seed: str) -> None:
        """Begin to look `seed` up; a question that is under way already is not asked twice."""
        if seed not in self._asked:
            self._asked.add(seed)
            self._nursery.start_soon(self._resolve, seed)

    async def _resolve(self, seed: str) -> None:
        addresses: tuple[Address, ...] = ()
        try:
            with trio.move_on_after(TIMEOUT_S):
                addresses = await _lookup(seed)
        except Exception:  # noqa: BLE001 - whatever keeps a name from being found (no thread left, too), it is not found
            addresses = ()
        self._asked.discard(seed)
        self._report(seed, self._within_reach(seed, addresses))

    def _within_reach(self, seed: str, addresses: tuple[Address, ...]) -> tuple[Address, ...]:
        within = tuple(address for address in addresses if self._reach.admits(address.host))
        if len(within) < len(addresses) and seed not in self._refused:
            self._refused.add(seed)
            found = ", ".join(a.host for a in addresses if a not in within)
            self._say(
                f"seed {seed} stands for {found}, which is not loopback: without a key nothing is sent there; "
                "join with the key file of a member (--key FILE)"
            )
        return within[:SEED_ADDRESSES_MAX]


async def _lookup(seed: str) -> tuple[Address, ...]:
    host, port = split_host_port(seed)
    numeric = numeric_host(host)
    if numeric is not None:
        return (Address(numeric, port),)
    found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_DGRAM)
    hosts = (numeric_host(str(entry[4][0])) for entry in found)
    unique = dict.fromkeys(Address(host, port) for host in hosts if host is not None)
    return tuple(unique)[:_FOUND_MAX]
