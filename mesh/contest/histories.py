"""How tasks of each queue fared on each member, as one voter saw it: the kind of a task is its queue.

    the record of an attempt that ended ──► (queue, member) ──► History ──► what a call says of the member

A member on which all fails at once is always idle, and would be the fittest for whatever comes next: so its voters
remember. What is kept is bounded; the pair that was noted longest ago is forgotten first.

Source: our own.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from mesh.contest.history import History
from mesh.core.ids import NodeId

PAIRS_MAX: Final = 4_096
"""Pairs of a queue and a member that are kept, each of some hundred bytes."""

_Pair: TypeAlias = tuple[str, NodeId]


class Histories:
    """What one voter has seen of the ends of attempts. All of it O(1). Times are of one clock, in seconds."""

    def __init__(self, pairs_max: int = PAIRS_MAX) -> None:
        self._pairs_max = pairs_max
        self._of: dict[_Pair, History] = {}  # the one noted longest ago first

    def __len__(self) -> int:
        return len(self._of)

    def note(self, now: float, queue: str, node_id: NodeId, *, ok: bool) -> None:
        """Take in that an attempt at a task of this queue ended on this member, well or not."""
        pair = (queue, node_id)
        history = self._of.pop(pair, None) or History()
        history.note(now, ok)
        self._of[pair] = history
        if len(self._of) > self._pairs_max:
            del self._of[next(iter(self._of))]

    def share(self, now: float, queue: str, node_id: NodeId) -> float:
        """Return how tasks of this queue fared on this member, above 0 and up to 1; see `History.share`."""
        history = self._of.get((queue, node_id))
        return 1.0 if history is None else history.share(now)

    def check_invariants(self) -> None:
        """Raise AssertionError if more is kept than may be."""
        assert len(self._of) <= self._pairs_max
