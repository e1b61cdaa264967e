"""Something that only one living member may hold, and who holds it: whoever finds two is told, once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from mesh.core.ids import NodeId

K = TypeVar("K", bound=Hashable)


class Claims(Generic[K]):
    """The living holders of each thing, in the order in which they were met. Nearly all have one."""

    __slots__ = ("_held_by", "_shared", "_sole")

    def __init__(self) -> None:
        self._sole: dict[K, NodeId] = {}
        self._shared: dict[K, dict[NodeId, None]] = {}  # what two or more hold
        self._held_by: dict[NodeId, K] = {}

    def holder(self, thing: K, but: NodeId) -> NodeId | None:
        """Return a holder of `thing` other than `but`, or None."""
        sole = self._sole.get(thing)
        if sole is not None:
            return sole if sole != but else None
        return next((held for held in self._shared.get(thing, ()) if held != but), None)

    def claim(self, node_id: NodeId, thing: K | None) -> NodeId | None:
        """Note what a member holds now (None: nothing); return who held it already, if that is news."""
        old = self._held_by.get(node_id)
        if old == thing:
            return None
        if old is not None:
            del self._held_by[node_id]
            self._give_up(node_id, old)
        if thing is None:
            return None
        rival = self.holder(thing, node_id)
        self._held_by[node_id] = thing
        if rival is None:
            self._sole[thing] = node_id
        else:
            self._sole.pop(thing, None)
            self._shared.setdefault(thing, {rival: None})[node_id] = None
        return rival

    def is_shared(self, thing: K) -> bool:
        """Say whether two or more members hold `thing`."""
        return thing in self._shared

    def _give_up(self, node_id: NodeId, thing: K) -> None:
        if thing in self._sole:
            del self._sole[thing]
            return
        holders = self._shared[thing]
        del holders[node_id]
        if len(holders) == 1:
            (self._sole[thing],) = self._shared.pop(thing)
