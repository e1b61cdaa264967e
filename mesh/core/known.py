"""A member as it is remembered from one session of this node to the next: who, and where it was last."""

from __future__ import annotations

from typing import NamedTuple

from mesh.core.address import Address
from mesh.core.ids import NodeId


class KnownMember(NamedTuple):
    """One entry of the snapshot. It is a place to ask at, and says nothing about who lives."""

    node_id: NodeId
    name: str
    address: Address
