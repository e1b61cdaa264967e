"""Which sessions are proved to be over: of each node the latest, and of no more nodes than can be at hand.

A proof that is forgotten makes nothing unsafe: a lease of that session ends by its clock then, as without the proof.

Source: our own.
"""

from __future__ import annotations

from typing import Final

from mesh.core.ids import NodeId
from mesh.wire.register_messages import Owner

NODES_MAX: Final = 20_000
"""Nodes whose ended sessions are remembered, each of some hundred bytes; whose was proved over longest ago goes first."""


class EndedSessions:
    """The proofs that were heard. O(1) throughout."""

    def __init__(self) -> None:
        self._boots: dict[NodeId, int] = {}  # who was heard of last is last

    def __len__(self) -> int:
        return len(self._boots)

    def note(self, node_id: NodeId, boot: int) -> None:
        """Take the proof that a session is over, and with it all before it."""
        self._boots[node_id] = max(boot, self._boots.pop(node_id, 0))
        if len(self._boots) > NODES_MAX:
            del self._boots[next(iter(self._boots))]

    def has(self, owner: Owner) -> bool:
        """Say whether a session is known to be over."""
        return owner.boot <= self._boots.get(owner.node_id, 0)
