"""Tasks that wait for the voters before this one to offer them first: a while for each that seems alive.

    created, due, or lost ──a stagger for each voter ahead──► this voter offers it as well
                             └─ one of them seems gone: its stagger is not waited for ─┘

Source: our own.
"""

from __future__ import annotations

from collections.abc import Iterable

from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveView
from mesh.tasks.by_node import TasksByNode


class StandingBy:
    """Which tasks wait for which voters."""

    def __init__(self, view: LiveView, stagger_s: float) -> None:
        """Begin with none."""
        self._view = view
        self._stagger_s = stagger_s
        self._behind = TasksByNode()

    def begin_s(self, key: bytes, ahead: Iterable[NodeId]) -> float:
        """Let a task wait for those of the voters `ahead` that seem alive, for the others will not; return for how many seconds."""
        alive = [voter for voter in ahead if self._view.get(voter) is not None]
        for voter in alive:
            self._behind.add(voter, key)
        return len(alive) * self._stagger_s

    def end(self, key: bytes, ahead: Iterable[NodeId]) -> None:
        """Let a task wait for nobody any more; nothing happens if it does not."""
        for voter in ahead:
            self._behind.drop(voter, key)

    def take_behind(self, node_id: NodeId) -> list[bytes]:
        """Return the tasks that wait for this voter, which do no more. O(their number)."""
        keys = self._behind.of(node_id)
        for key in keys:
            self._behind.drop(node_id, key)
        return keys

    def check_invariants(self, waiting: set[bytes]) -> None:
        """Raise AssertionError if one stands by that is not among these. O(tasks that do)."""
        assert self._behind.keys() <= waiting, self._behind.keys() - waiting
