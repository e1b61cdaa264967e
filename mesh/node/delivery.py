"""Messages that go to one member together: in datagrams if each fits into one, else on a stream, in a parcel.

    all fit, a few ───► the budget: datagrams, within their share
    long, or many ────► parcels, each a packet of several messages on a stream, answered with `Taken`

Either way they may be lost, and whoever needs an answer asks again: that a parcel was taken says nothing of what
is done about it, and that it was not is no news either. A parcel under way has a place among this node's
exchanges; where there is none, it is lost like a datagram, and counted.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from mesh.node.budget import SHARE_BYTES_MAX
from mesh.wire.packet import (
    DATAGRAM_ITEMS_MAX,
    FRAME_BYTES_MAX,
    HEADER,
    MESSAGES_MAX,
    encode_message,
)
from mesh.wire.register_messages import Renew, Renewed

DATAGRAMS_MAX: Final = 4
"""What would take more datagrams than so many goes on a stream, where it is neither lost nor paced piece by piece."""

PARCEL_BYTES_MAX: Final = FRAME_BYTES_MAX - HEADER.size - 1024
"""The longest message there is fits, whatever seals it."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """Encoded messages for one packet on a stream."""

    parts: tuple[bytes, ...]


def pack(messages: Iterable[object]) -> list[bytes] | list[Parcel]:
    """Return encoded messages that go by datagram, or parcels, whichever these messages ask for."""
    listed = list(messages)
    parts = [encode_message(message) for message in listed]
    is_short = sum(map(len, parts)) <= DATAGRAMS_MAX * SHARE_BYTES_MAX
    if is_short and all(map(_fits, listed, parts)):
        return parts
    return list(_parcels(parts))


def _fits(message: object, part: bytes) -> bool:
    """Say whether a message may travel by datagram, where no list is longer than a few items."""
    items = 0
    if isinstance(message, Renewed):
        items = max(len(message.renewed), len(message.lost))
    elif isinstance(message, Renew):
        items = len(message.leases)
    return len(part) <= SHARE_BYTES_MAX and items <= DATAGRAM_ITEMS_MAX


def _parcels(parts: list[bytes]) -> Iterable[Parcel]:
    first, size = 0, 0
    for place, part in enumerate(parts):
        if place > first and (size + len(part) > PARCEL_BYTES_MAX or place - first == MESSAGES_MAX):
            yield Parcel(tuple(parts[first:place]))
            first, size = place, 0
        size += len(part)
    yield Parcel(tuple(parts[first:]))
