"""The tasks of one voter, for lists: how many there are in each state, and the newest of them.

This is what this node keeps, and no more: where more than three vote, it is a share of the mesh's tasks; and a
record may be older than what a majority holds. Whoever shows it says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from mesh.registers.record import Record
from mesh.tasks.body import is_task_key
from mesh.tasks.entry import KeptTask, head_of
from mesh.wire.task_messages import TaskState


class Listing:
    """Counts by state, and keys in the order in which this node heard of the tasks; at its start, of their making."""

    def __init__(self, kept: Iterable[KeptTask] = ()) -> None:
        """Begin with what is kept, in the order of its making."""
        self._states = {key: head.state for key, _, head in kept}
        self._counts = dict.fromkeys(TaskState, 0)
        for state in self._states.values():
            self._counts[state] += 1

    def changed(self, key: bytes, record: Record) -> TaskState | None:
        """Note what is held of a register now (NOTHING: it was purged); return where the task was, if that is known."""
        if not is_task_key(key):
            return None
        before = self._states.get(key)
        head = head_of(record)
        if before is not None:
            self._counts[before] -= 1
        if head is None:
            self._states.pop(key, None)
        else:
            self._states[key] = head.state
            self._counts[head.state] += 1
        return before

    def counts(self) -> dict[str, int]:
        """Return how many tasks are in each state."""
        return {state.word: count for state, count in self._counts.items()}

    def newest(self, count_max: int) -> list[bytes]:
        """Return the keys of the tasks that came last, newest first."""
        return list(islice(reversed(self._states), count_max))

    def check_invariants(self) -> None:
        """Raise AssertionError if the counts contradict the states. O(tasks)."""
        counts = dict.fromkeys(TaskState, 0)
        for state in self._states.values():
            counts[state] += 1
        assert counts == self._counts
