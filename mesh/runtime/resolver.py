"""Finds the numeric addresses of a seed, in a task, so that a slow name server stops nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from mesh.core.address import Address, numeric_host, split_host_port
from mesh.errors import ConfigError

TIMEOUT_S: Final = 10.0
ADDRESSES_MAX: Final = 16

Report = Callable[[str, tuple[Address, ...]], None]


class Resolver:
    """Answers each question once, by `report(seed, addresses)`; no addresses: not found."""

    def __init__(self, nursery: trio.Nursery, report: Report) -> None:
        self._nursery = nursery
        self._report = report
        self._asked: set[str] = set()

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
        except (OSError, UnicodeError, ConfigError):
            addresses = ()
        self._asked.discard(seed)
        self._report(seed, addresses)


async def _lookup(seed: str) -> tuple[Address, ...]:
    host, port = split_host_port(seed)
    numeric = numeric_host(host)
    if numeric is not None:
        return (Address(numeric, port),)
    found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_DGRAM)
    hosts = (numeric_host(str(entry[4][0])) for entry in found)
    unique = dict.fromkeys(Address(host, port) for host in hosts if host is not None)
    return tuple(unique)[:ADDRESSES_MAX]
