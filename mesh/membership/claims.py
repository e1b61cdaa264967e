"""Something that only one living member may hold, and who holds it: whoever finds two is told, once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from mesh.core.ids import NodeId

K = TypeVar("K", bound=Hashable)


class Claims(Generic[K]):
    """The living holders of each thing, in the order in which they were met."""

    __slots__ = ("_held_by", "_holders")

    def __init__(self) -> None:
        self._holders: dict[K, dict[NodeId, None]] = {}
        self._held_by: dict[NodeId, K] = {}

    def holder(self, thing: K, but: NodeId) -> NodeId | None:
        """Return a holder of `thing` other than `but`, or None."""
        return next((held for held in self._holders.get(thing, ()) if held != but), None)

    def claim(self, node_id: NodeId, thing: K | None) -> NodeId | None:
        """Note what a member holds now (None: nothing); return who held it already, if that is news."""
        old = self._held_by.get(node_id)
        if old == thing:
            return None
        if old is not None:
            del self._held_by[node_id]
            holders = self._holders[old]
            del holders[node_id]
            if not holders:
                del self._holders[old]
        if thing is None:
            return None
        rival = self.holder(thing, node_id)
        self._held_by[node_id] = thing
        self._holders.setdefault(thing, {})[node_id] = None
        return rival

    def is_shared(self, thing: K) -> bool:
        """Say whether two or more members hold `thing`."""
        return len(self._holders.get(thing, ())) > 1
