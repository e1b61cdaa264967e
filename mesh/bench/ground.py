"""Where members stand: all on loopback here; in `namespaces` each on a host of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from mesh.bench.ports import HOST, LOOPBACK_TABLES


class Ground(ABC):
    """What a contestant has to know of the place where its members run."""

    is_loopback: bool

    @abstractmethod
    def host(self, member: str) -> str:
        """Return the address that a member binds."""

    @abstractmethod
    def inside(self, member: str) -> tuple[str, ...]:
        """Return what to put before a member's command; it ends by exec."""

    @abstractmethod
    def tables(self, pids: Iterable[int]) -> list[Path]:
        """Return the kernel's tables of UDP sockets in which the sockets of these processes stand."""


class Loopback(Ground):
    """All members on this host's loopback."""

    is_loopback = True

    def host(self, member: str) -> str:
        """Return loopback's address."""
        del member
        return HOST

    def inside(self, member: str) -> tuple[str, ...]:
        """Return nothing: members run here."""
        del member
        return ()

    def tables(self, pids: Iterable[int]) -> list[Path]:
        """Return this host's own tables."""
        del pids
        return list(LOOPBACK_TABLES)


LOOPBACK: Final = Loopback()
