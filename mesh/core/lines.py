"""What a driver reports of streams that are kept open for the sake of their end, and of refused datagrams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from mesh.core.address import Address


@dataclass(frozen=True, slots=True)
class LineKept:
    """The other end of an `OpenLifeline` has answered, and keeps it."""

    lifeline_id: int


@dataclass(frozen=True, slots=True)
class LineLost:
    """An `OpenLifeline` came to nothing, or has ended; reported once, and not after `CloseLifeline`."""

    lifeline_id: int


@dataclass(frozen=True, slots=True)
class HungUp:
    """A stream that was kept by `KeepOpen` has ended at its other end."""

    source: Address


@dataclass(frozen=True, slots=True)
class DatagramRefused:
    """The host of `address` says that nobody holds the port there to which this node sent a datagram.

    A hint: the word of a host is not sealed, and whoever stands between can say it in its place.
    """

    address: Address


LineEvent: TypeAlias = LineKept | LineLost | HungUp | DatagramRefused
