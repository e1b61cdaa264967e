"""A datagram that is written ahead, for when its writer can send no more."""

from __future__ import annotations

from dataclasses import dataclass

from mesh.core.address import Address
from mesh.core.ids import NodeId


@dataclass(frozen=True, slots=True)
class Letter:
    """A datagram for one member alone, to be sent when this node cannot send any more."""

    reader: NodeId
    to: Address
    data: bytes
