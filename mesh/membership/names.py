"""Names are for people, and must be unique among the living: who finds two says so, once."""

from __future__ import annotations

from mesh.core.ids import NodeId
from mesh.wire.records import Card


class Names:
    """The living holders of each name, in the order in which they were met."""

    __slots__ = ("_holders", "_name_of")

    def __init__(self) -> None:
        self._holders: dict[str, dict[NodeId, None]] = {}
        self._name_of: dict[NodeId, str] = {}

    def holder(self, name: str, but: NodeId) -> NodeId | None:
        """Return a living member other than `but` that holds `name`, or None."""
        return next((held for held in self._holders.get(name, ()) if held != but), None)

    def file(self, card: Card, *, is_living: bool) -> NodeId | None:
        """Note a member's name and whether it lives; return who held the name already, if that is news."""
        node_id = card.node_id
        old = self._name_of.get(node_id)
        new = card.name if is_living else None
        if old == new:
            return None
        if old is not None:
            del self._name_of[node_id]
            holders = self._holders[old]
            del holders[node_id]
            if not holders:
                del self._holders[old]
        if new is None:
            return None
        rival = self.holder(new, node_id)
        self._name_of[node_id] = new
        self._holders.setdefault(new, {})[node_id] = None
        return rival

    def is_shared(self, name: str) -> bool:
        """Say whether two or more living members hold `name`."""
        return len(self._holders.get(name, ())) > 1
