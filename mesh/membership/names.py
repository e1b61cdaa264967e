"""Names are for people, and must be unique among the living: who finds two says so, once."""

from __future__ import annotations

from mesh.core.ids import NodeId
from mesh.membership.claims import Claims
from mesh.wire.records import Card


class Names(Claims[str]):
    """The living holders of each name."""

    __slots__ = ()

    def file(self, card: Card, *, is_living: bool) -> NodeId | None:
        """Note a member's name and whether it lives; return who held the name already, if that is news."""
        return self.claim(card.node_id, card.name if is_living else None)
