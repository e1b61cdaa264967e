"""The ready tasks, and which of them is worth offering to whom right now.

Tasks that want the same of a member, and stand in the same named queue, form a **lane**, first come
first served. Since all tasks of a lane have the same candidates (in another order each), a lane whose
first task finds nobody is blocked as a whole, and costs nothing until news of a slot comes in. Lanes
take turns.

Whom to ask rests on what was heard last: every answer, report, `SlotsFree` and vitals says how many
slots a member has for us. A member with none is asked once all the same, so that it notes us and tells
us of its next free slot; from then on it is left alone until it, or its vitals, say otherwise. As a
net below all that, a blocked lane asks one member, another one each time, about every `offer_retry_s`.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.placement.live_view import LiveMember, LiveView, Wants, fits
from mesh.wire.records import Metadata
from mesh.wire.work_messages import Decline
from mesh.work.config import WorkConfig
from mesh.work.keeping.task import Task

Pairs: TypeAlias = tuple[tuple[str, str], ...]
LaneKey: TypeAlias = tuple[str, str, str, Pairs, tuple[tuple[str, int], ...]]


@dataclass(slots=True)
class Lane:
    """Ready tasks with the same candidates.

    Invariant: every waiting task stands in the heap at least once; a blocked lane is in no turn.
    """

    key: LaneKey
    wants: Wants
    waiting: dict[str, Task] = field(default_factory=dict)
    heap: list[tuple[int, str]] = field(default_factory=list)
    asked: int = 0  # tasks of this lane that somebody is being asked to run
    busy: dict[NodeId, int] = field(default_factory=dict)  # who declined, and its news count then
    unfit: dict[NodeId, Metadata] = field(default_factory=dict)  # who never can, and its card then
    sentence: tuple[int, int, str] = (-1, -1, "")  # what it waits for, as of (view, news)
    turn: int = 0  # whose turn it is to be asked anyway

    def push(self, task: Task) -> None:
        """Let a task wait in its order."""
        self.waiting[task.task_id] = task
        heapq.heappush(self.heap, (task.order, task.task_id))
        if len(self.heap) > 64 and len(self.heap) > 2 * len(self.waiting):
            self.heap = [(waiting.order, task_id) for task_id, waiting in self.waiting.items()]
            heapq.heapify(self.heap)

    def first(self) -> Task | None:
        """Return the task that waits longest, or None."""
        while self.heap:
            task = self.waiting.get(self.heap[0][1])
            if task is not None and task.order == self.heap[0][0]:
                return task
            heapq.heappop(self.heap)
        return None


class ReadyQueue:
    """Ready tasks by lane, and what is known of every member's free slots."""

    def __init__(self, view: LiveView, rng: random.Random, config: WorkConfig) -> None:
        self._view = view
        self._rng = rng
        self._config = config
        self._lanes: dict[LaneKey, Lane] = {}
        self._turns: dict[LaneKey, None] = {}  # lanes that may find somebody, next one first
        self._free: dict[NodeId, int] = {}
        self._news: dict[NodeId, int] = {}
        self._noted: set[NodeId] = set()  # members that will tell us of their next free slot
        self._asking: dict[NodeId, int] = {}  # offers under way
        self._offers = 0
        self._changes = 0  # counts what may change whom a lane could ask
        self._retries: Timers[LaneKey] = Timers()

    def add(self, task: Task) -> None:
        """Let a ready task wait for its turn. O(log n)."""
        lane = self._lane(task)
        is_blocked = bool(lane.waiting) and lane.key not in self._turns
        lane.push(task)
        if not is_blocked:
            self._turns.setdefault(lane.key)

    def remove(self, task: Task) -> None:
        """Take a waiting task out; nothing happens if it does not wait."""
        lane = self._lanes.get(_lane_key(task))
        if lane is not None:
            lane.waiting.pop(task.task_id, None)
            self._tidy(lane)

    def has_more(self, task: Task) -> bool:
        """Say whether tasks wait that want the same as `task`."""
        lane = self._lanes.get(_lane_key(task))
        return lane is not None and bool(lane.waiting)

    def take_offer(self, now: float) -> tuple[Task, LiveMember] | None:
        """Take the next task that somebody may have a slot for, and return both. O(members log members)."""
        while self._turns and self._offers < self._config.offers_max:
            key = next(iter(self._turns))
            del self._turns[key]
            lane = self._lanes[key]
            task = lane.first()
            if task is None:
                continue
            for member in self._view.candidates(task.wants):
                if self._has_room(lane, member):
                    self._turns[key] = None
                    return self._ask(lane, task, member)
            if key not in self._retries:
                self._arm(key, now)
        return None

    def take_retries(self, now: float) -> list[tuple[Task, LiveMember]]:
        """Return the first task of each lane that is blocked for long, and whom to ask in spite of what we know."""
        found = []
        for key in self._retries.take_due(now):
            lane = self._lanes.get(key)
            task = None if lane is None else lane.first()
            if lane is None or task is None:
                continue
            self._arm(key, now)
            if key in self._turns or self._offers >= self._config.offers_max:
                continue
            able = [m for m in self._view.candidates(task.wants) if self._can_ask(lane, m)]
            if able:
                lane.turn += 1
                found.append(self._ask(lane, task, able[lane.turn % len(able)]))
        return found

    def next_timeout(self) -> float | None:
        """Return when `take_retries` may have something."""
        return self._retries.next_deadline()

    def note_free(self, node_id: NodeId, free_slots: int, *, is_noted: bool | None = None) -> None:
        """Take news of a member's free slots from a report, `SlotsFree`, vitals or its silence. O(lanes).

        `is_noted`: whether the member will tell us of its next free slot (None: as before).
        """
        self._free[node_id] = free_slots
        if free_slots > 0:
            self._news[node_id] = self._news.get(node_id, 0) + 1
        if is_noted is not None:
            (self._noted.add if is_noted else self._noted.discard)(node_id)
        self._wake(node_id)

    def note_answer(
        self, task: Task, node_id: NodeId, decline: Decline, free_slots: int, *, had_more: bool
    ) -> None:
        """Take what a member's answer to an offer says of it. O(lanes)."""
        lane = self._lanes.get(_lane_key(task))
        self._free[node_id] = free_slots
        member = self._view.get(node_id)
        if lane is not None and decline is Decline.UNFIT and member is not None:
            lane.unfit[node_id] = member.meta
        elif lane is not None and decline is not Decline.NONE:
            lane.busy[node_id] = self._news.get(node_id, 0)
        is_noted = (
            had_more and not free_slots if decline is Decline.NONE else decline is Decline.BUSY
        )
        (self._noted.add if is_noted else self._noted.discard)(node_id)
        self._wake(node_id)

    def end_offer(self, task: Task, node_id: NodeId) -> None:
        """Note that nobody waits any more for this member's answer about this task. O(lanes)."""
        lane = self._lanes[_lane_key(task)]
        lane.asked -= 1
        self._offers -= 1
        self._asking[node_id] -= 1
        if not self._asking[node_id]:
            del self._asking[node_id]
        self._tidy(lane)
        self._wake(node_id)

    def drop_member(self, node_id: NodeId) -> None:
        """Forget what is known of a member that is gone. O(lanes)."""
        self._free.pop(node_id, None)
        self._news.pop(node_id, None)
        self._noted.discard(node_id)
        for lane in self._lanes.values():
            lane.busy.pop(node_id, None)
            lane.unfit.pop(node_id, None)

    def waits_for(self, task: Task) -> str:
        """Say in one sentence what a ready task waits for."""
        if task.asked is not None:
            return f"an answer from {task.asked_name}"
        lane = self._lanes.get(_lane_key(task))
        if lane is None:
            return "its turn"
        stamp = self._view.version, self._changes
        if lane.sentence[:2] != stamp:
            lane.sentence = (*stamp, self._sentence(lane))
        return lane.sentence[2]

    def check_invariants(self, idle: Iterable[Task]) -> None:
        """Raise AssertionError if a lane or a count is out of step, or one of the `idle` does not wait. O(tasks)."""
        for task in idle:
            assert task.task_id in self._lanes[_lane_key(task)].waiting, task
        assert self._offers == sum(lane.asked for lane in self._lanes.values())
        assert self._offers == sum(self._asking.values())
        for lane in self._lanes.values():
            assert lane.asked >= 0
            held = {task_id for _, task_id in lane.heap}
            assert all(task_id in held for task_id in lane.waiting)
            if lane.waiting and lane.key not in self._turns:
                assert lane.key in self._retries, f"lane {lane.key} would never be looked at again"

    def _sentence(self, lane: Lane) -> str:
        candidates = [member for member in self._view.members() if fits(member, lane.wants)]
        if not candidates:
            return f"a member that {_demands(lane.wants)} (none now)"
        if any(self._has_room(lane, member) for member in candidates):
            return "its turn"
        names = ", ".join(member.name for member in candidates[:5])
        more = f" and {len(candidates) - 5} more" if len(candidates) > 5 else ""
        are = "is" if len(candidates) == 1 else "are all"
        return f"a free slot: {names}{more} {are} busy"

    def _lane(self, task: Task) -> Lane:
        key = _lane_key(task)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(key, task.wants)
        return lane

    def _tidy(self, lane: Lane) -> None:
        if not lane.waiting and not lane.asked:
            self._lanes.pop(lane.key, None)
            self._turns.pop(lane.key, None)
            self._retries.cancel(lane.key)

    def _arm(self, key: LaneKey, now: float) -> None:
        self._retries.set(key, now + self._config.offer_retry_s * self._rng.uniform(0.5, 1.5))

    def _room(self, member: LiveMember) -> int:
        free = self._free.get(member.node_id, member.free_slots)
        if free <= 0 and member.node_id not in self._noted:
            free = 1  # ask once, so that it notes us
        return free - self._asking.get(member.node_id, 0)

    def _can_ask(self, lane: Lane, member: LiveMember) -> bool:
        return lane.unfit.get(member.node_id) != member.meta

    def _has_room(self, lane: Lane, member: LiveMember) -> bool:
        news = self._news.get(member.node_id, 0)
        is_busy = lane.busy.get(member.node_id) == news
        return not is_busy and self._can_ask(lane, member) and self._room(member) > 0

    def _ask(self, lane: Lane, task: Task, member: LiveMember) -> tuple[Task, LiveMember]:
        del lane.waiting[task.task_id]
        self._changes += 1
        lane.asked += 1
        self._offers += 1
        self._asking[member.node_id] = self._asking.get(member.node_id, 0) + 1
        return task, member

    def _wake(self, node_id: NodeId) -> None:
        """Give lanes a turn that may use this member. O(lanes)."""
        self._changes += 1
        member = self._view.get(node_id)
        if member is None or self._room(member) <= 0:
            return
        for key, lane in self._lanes.items():
            if lane.waiting and key not in self._turns and fits(member, lane.wants):
                self._turns[key] = None


def _lane_key(task: Task) -> LaneKey:
    spec = task.spec
    return spec.queue, spec.pool, spec.node_class, spec.labels, spec.needs


def _demands(wants: Wants) -> str:
    """Return what a member would have to be, as the end of a sentence."""
    parts = []
    if wants.pool:
        parts.append(f"is in pool {wants.pool}")
    if wants.node_class:
        parts.append(f"is of class {wants.node_class}")
    parts += [f"has label {key}={value}" for key, value in wants.labels]
    parts += [f"offers {name} {amount} or more" for name, amount in wants.needs]
    return ", ".join([*parts, "has a slot"]) if parts else "has a slot"
