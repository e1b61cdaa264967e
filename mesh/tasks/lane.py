"""Tasks of a voter's that want the same of a member: one lane, the oldest first.

    lane ──► its tasks that wait, a heap by age:   created ── then who was begun ── then who came first
    a task ──add──► waits ──remove──► does not; it may stand in the heap still, until that is cleared

A task keeps its age whatever becomes of it: who was declined, or lost with its owner, or is due again after a pause,
waits in its old place. So the order is the same under every strategy, and a change of strategy moves nobody.

Source: our own; a heap whose dead are left until they reach the top, or are the most of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from mesh.core.chain import Link
from mesh.core.ids import NodeId
from mesh.placement.live_view import Wants
from mesh.wire.records import Metadata
from mesh.wire.task_messages import Placement

DEAD_MIN: Final = 32
"""So many that wait no more may stand in a heap, however few do wait."""


class LaneKey(NamedTuple):
    """What the tasks of a lane have in common."""

    wants: Wants
    """Without the key of the task: that ranks the members, and rules out none."""

    ahead: tuple[NodeId, ...]
    """The voters that see to these tasks before this one."""

    @property
    def queue(self) -> str:
        """The queue of these tasks."""
        return self.wants.queue


@dataclass(slots=True, eq=False)
class Queued:
    """A task that belongs to a lane. Nothing that makes its age is changed while it stands in a heap."""

    key: bytes
    created: float
    """When it was made (Unix), and no later than when this voter heard of it: else one whose maker's clock is ahead
    would wait for as long as others come."""

    was_begun: bool = field(default=False, init=False)
    """Somebody had it, and could not finish: of those made at one time it goes first."""

    number: int = field(default=0, init=False)
    """Of those made at one time, in one batch perhaps, the lower goes first."""

    placement: Placement | None = field(default=None, init=False)
    """Why whoever is asked about it is asked."""

    is_waiting: bool = field(default=False, init=False)
    is_heaped: bool = field(default=False, init=False)

    def __lt__(self, other: Queued) -> bool:
        """Say whether it is the older."""
        if self.created != other.created:
            return self.created < other.created
        return (not self.was_begun, self.number) < (not other.was_begun, other.number)


class ByAge:
    """Tasks that wait, the oldest first. Invariant: who stands first in the heap waits.

    To add or to remove one is O(log n) in what is here; what was here before costs as much again, at most.
    """

    __slots__ = ("_heap", "_length")

    def __init__(self) -> None:
        """Begin with none."""
        self._heap: list[Queued] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def first(self) -> Queued | None:
        """The oldest; None: there is none. O(1)."""
        return self._heap[0] if self._heap else None

    def add(self, task: Queued) -> None:
        """Let a task wait that does not."""
        assert not task.is_waiting, "it waits already"
        task.is_waiting = True
        self._length += 1
        if not task.is_heaped:
            task.is_heaped = True
            heappush(self._heap, task)

    def remove(self, task: Queued) -> None:
        """Let a task wait no more that waits here."""
        assert task.is_waiting, "it waits nowhere"
        task.is_waiting = False
        self._length -= 1
        heap = self._heap
        if len(heap) > 2 * self._length + DEAD_MIN:
            for one in heap:
                one.is_heaped = one.is_waiting
            heap[:] = [one for one in heap if one.is_waiting]
            heapify(heap)
        while heap and not heap[0].is_waiting:
            heappop(heap).is_heaped = False

    def check_invariants(self) -> None:
        """Raise AssertionError if somebody is counted who is not here, or stands first and does not wait. O(n)."""
        heap = self._heap
        assert self._length == sum(one.is_waiting for one in heap)
        assert all(one.is_heaped for one in heap)
        assert len(heap) <= 2 * self._length + DEAD_MIN
        assert not heap or heap[0].is_waiting
        assert not any(heap[n] < heap[(n - 1) // 2] for n in range(1, len(heap)))


@dataclass(slots=True, eq=False)
class Lane(Link):
    """Tasks with the same candidates; it is chained while it has a turn to come.

    Invariant: a blocked lane is in no turn, and its retry is armed.
    """

    key: LaneKey
    waiting: ByAge = field(default_factory=ByAge)
    tasks: int = 0  # that belong here, waiting or not
    asked: int = 0  # of them, those that somebody is being asked to run
    busy: dict[NodeId, int] = field(default_factory=dict)  # who declined, and its news count then
    unsuited: dict[NodeId, Metadata] = field(
        default_factory=dict
    )  # who never can, and its card then
    turn: int = 0  # whose turn it is to be asked anyway
