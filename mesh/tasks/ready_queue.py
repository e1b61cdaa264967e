"""The tasks that wait for somebody to run them, and which of them is worth offering to whom right now.

Tasks that want the same of a member, stand in the same named queue and are seen to by the same voters
before this one form a **lane**, the oldest first (`lane.py`). Since all tasks of a lane have the same
candidates (in another order each), a lane whose first task finds nobody is blocked as a whole, and
costs nothing until news of a slot comes in. Lanes take turns:

    turns:   lane a (queue A) ► lane b (queue A) ► lane c (queue C) ► lane a …
             rendezvous, contest: each lane's oldest task, in its turn
             round_robin, pull:   in each turn of a lane of queue A, the oldest task of *all* its lanes that may find somebody

So queues share what is free by their lanes, and in a queue whose oldest goes first no younger task is offered
before an older one that somebody may have a slot for; one that nobody has room for holds up none behind it.

A lane that another voter sees to first, as long as that one seems alive, asks one member now and then:
enough that no task waits for ever for a voter that only seems alive, and no more.

Whom to ask rests on what was heard last (`free_slots.py`) and on the queue's strategy (`choosing.py`), which is
looked up at every offer: a change needs nothing else. As a net below all that, a blocked lane asks one member,
another one each time, about every `offer_retry_s`; and where there are many lanes, each more seldom, so that all
together ask no more.

Nothing here costs more than the logarithm of the tasks, but news of a slot costs time in the lanes: each is looked
at, whether it may use that slot. And there are as many lanes as the tasks differ in queue, wants and the voters
before this one. So lanes grow with what users write: where each customer has a queue of its own, with the customers
that have a task here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from mesh.core.chain import Chain
from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.placement.live_view import LiveMember, LiveView, Wants, fits
from mesh.queues.settings import Strategy
from mesh.tasks.body import Head
from mesh.tasks.choosing import OLDEST_FIRST, Choosing, Picked, can_ask
from mesh.tasks.config import TasksConfig
from mesh.tasks.free_slots import FreeSlots
from mesh.tasks.lane import Lane, LaneKey, Queued
from mesh.wire.task_messages import Decline, PlacedBy, Placement

WantsOf: TypeAlias = Callable[[Lane, bytes], Wants]
"""Returns what a task of a lane wants, with the key that ranks the members."""

StrategyOf: TypeAlias = Callable[[float, str], Strategy]
"""Returns a queue's strategy as it is known now."""

_BY_RETRY: Final = Placement(PlacedBy.ANYBODY)


class ReadyQueue:
    """Waiting tasks by lane, and whom to ask. O(log tasks) throughout, but not in the lanes."""

    def __init__(
        self,
        *,
        own_id: NodeId,
        view: LiveView,
        rng: random.Random,
        config: TasksConfig,
        strategy_of: StrategyOf,
    ) -> None:
        """Begin with none; `rng` is for jitter."""
        self._view = view
        self._rng = rng
        self._config = config
        self._strategy_of = strategy_of
        self._lanes: dict[LaneKey, Lane] = {}
        self._queues: dict[str, list[Lane]] = {}
        self._turns: Chain[Lane] = Chain()  # lanes that may find somebody, next one first
        self.slots = FreeSlots(view)
        """What is known of every member's slots, and how many of them are asked for."""

        self._choosing = Choosing(view, self.slots, own_id)
        self.able = self._choosing.able
        self.waits_for = self._choosing.waits_for
        self._offers = 0
        self._last = 0  # task that came in
        self._retries: Timers[LaneKey] = Timers()
        self.next_timeout = self._retries.next_deadline
        """Returns when `take_retries` may have something."""

    # Lanes and what waits in them.

    def enter(self, key: LaneKey) -> Lane:
        """Count one more task to a lane; it does not wait yet."""
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(key)
            self._queues.setdefault(key.queue, []).append(lane)
        lane.tasks += 1
        return lane

    def leave(self, lane: Lane, task: Queued) -> None:
        """Count a task to its lane no more, waiting or not. Nobody is being asked about it. O(log tasks), O(lanes of its queue)."""
        if task.is_waiting:
            lane.waiting.remove(task)
        lane.tasks -= 1
        if not lane.tasks:
            del self._lanes[lane.key]
            lanes = self._queues[lane.key.queue]
            lanes.remove(lane)
            if not lanes:
                del self._queues[lane.key.queue]
            if lane.is_chained:
                self._turns.remove(lane)
            self._retries.cancel(lane.key)

    def add(self, now: float, lane: Lane, task: Queued) -> None:
        """Let a task wait for its turn, in the place that its age gives it."""
        is_blocked = bool(lane.waiting) and not lane.is_chained
        if not task.number:
            self._last += 1
            task.number = self._last
        lane.waiting.add(task)
        if self._is_slow(lane):
            if lane.key not in self._retries:
                self._arm(lane.key, now)
        elif not is_blocked:
            self._give_turn(lane)

    # Whom to ask.

    def name_home(self, head: Head) -> Picked | None:
        """Return the best member that is known to have a slot for a new task of this voter's, and count that as taken; and why it.

        None: nobody is known to, or others wait before it. O(members log members).
        """
        lane = self._lanes.get(LaneKey(replace(head.wants, key=""), ()))
        if lane is not None and lane.waiting:
            return None
        candidates = self._view.candidates(head.wants)
        for member in candidates:
            node_id = member.node_id
            if lane is not None and not self._choosing.has_room(lane, member):
                continue  # it has declined the like of this
            if self.slots.unasked(member) > 0:
                self.slots.take(node_id)
                placement = self._choosing.in_rank(lane, member, candidates[0])
                return member, replace(placement, by=PlacedBy.NAMED)
        return None

    def take_offer(self, now: float, wants_of: WantsOf) -> tuple[bytes, LiveMember] | None:
        """Take the next task that somebody may have a slot for, and return both.

        O(members log members) for each lane that is looked at; one that finds nobody is not looked at again before news.
        Where the oldest goes first, each offer costs time in the lanes of its queue too.
        """
        while self._offers < self._config.offers_max:
            turn = self._turns.first
            if turn is None:
                return None
            self._turns.remove(turn)
            strategy = self._strategy_of(now, turn.key.queue)
            lane = self._oldest(turn) if strategy in OLDEST_FIRST else turn
            if lane is not turn:
                self._turns.add(turn)  # its turn is over, be it another's task that is looked at
            task = lane.waiting.first
            if task is not None and not self._is_slow(lane):
                picked = self._choosing.choose(lane, strategy, partial(wants_of, lane, task.key))
                if picked is not None:
                    self._give_turn(lane)
                    return self._ask(lane, task, *picked)
            if lane.is_chained:
                self._turns.remove(lane)
            if task is not None and lane.key not in self._retries:
                self._arm(lane.key, now)
        return None

    def take_retries(self, now: float, wants_of: WantsOf) -> list[tuple[bytes, LiveMember]]:
        """Return the first task of each lane that is blocked for long, or slow, and whom to ask in spite of what we know."""
        found = []
        for key in self._retries.take_due(now):
            lane = self._lanes.get(key)
            task = None if lane is None else lane.waiting.first
            if lane is None or task is None:
                continue
            self._arm(key, now)
            if lane.is_chained or self._offers >= self._config.offers_max:
                continue
            able = [m for m in self._view.candidates(wants_of(lane, task.key)) if can_ask(lane, m)]
            if able:
                lane.turn += 1
                found.append(self._ask(lane, task, able[(lane.turn - 1) % len(able)], _BY_RETRY))
        return found

    def end_offer(
        self, lane: Lane, node_id: NodeId, *, is_claimed: bool = False, is_told: bool = False
    ) -> None:
        """Note that nobody waits any more for this member's word about a task of this lane. O(lanes).

        Who claimed it has one slot less, as far as we know, unless it has told so itself (`is_told`).
        """
        lane.asked -= 1
        self._offers -= 1
        if not is_told:
            if is_claimed:
                self.slots.take(node_id)
            self.slots.end(node_id)
        self._wake(node_id)

    # What is heard of members.

    def note_free(self, node_id: NodeId, free_slots: int, *, is_noted: bool | None = None) -> None:
        """Take news of a member's free slots: `SlotsFree`, vitals, or its silence. O(lanes).

        `is_noted`: whether the member will tell us of its next free slot (None: as before).
        """
        self.slots.hear(node_id, free_slots, is_news=True, is_noted=is_noted)
        self._wake(node_id)

    def note_vitals(self, node_id: NodeId) -> None:
        """Take what a member's vitals say of its slots; the view knows already. O(lanes)."""
        member = self._view.get(node_id)
        if member is not None:
            self.note_free(node_id, member.free_slots)

    def note_answer(
        self,
        lane: Lane,
        node_id: NodeId,
        decline: Decline,
        free_slots: int,
    ) -> None:
        """Take why a member declined what it was asked, and how many slots it has for us. O(1)."""
        member = self._view.get(node_id)
        if decline is Decline.UNSUITED and member is not None:
            lane.unsuited[node_id] = member.meta
        else:
            lane.busy[node_id] = self.slots.news(node_id)
        self.slots.hear(node_id, free_slots, is_news=False, is_noted=decline is Decline.BUSY)

    def drop_member(self, now: float, node_id: NodeId) -> None:
        """Forget what is known of a member that is gone; see to what it would have seen to first. O(lanes)."""
        self.slots.forget(node_id)
        for key, lane in self._lanes.items():
            lane.busy.pop(node_id, None)
            lane.unsuited.pop(node_id, None)
            if node_id in key.ahead and lane.waiting:
                self._give_turn(lane)
                if key not in self._retries:
                    self._arm(key, now)

    def check_invariants(
        self, sizes: Mapping[LaneKey, int], waiting: Mapping[LaneKey, int]
    ) -> None:
        """Raise AssertionError if a lane or a count is out of step with how many tasks it has, and wait. O(tasks)."""
        assert sizes == {key: lane.tasks for key, lane in self._lanes.items()}
        assert self._offers == sum(lane.asked for lane in self._lanes.values())
        self.slots.check_invariants(self._offers)
        assert sum(map(len, self._queues.values())) == len(self._lanes)
        turns = list(self._turns)
        assert len(turns) == len(self._turns) == sum(one.is_chained for one in self._lanes.values())
        assert all(self._lanes[lane.key] is lane for lane in turns)
        for key, lane in self._lanes.items():
            assert 0 <= lane.asked <= lane.tasks, key
            assert lane.asked + len(lane.waiting) <= lane.tasks, key
            lane.waiting.check_invariants()
            assert waiting[key] == len(lane.waiting), key
            assert lane in self._queues[key.queue], key
            if lane.waiting:
                assert lane.is_chained or key in self._retries, f"{key} is never looked at again"

    # Inside.

    def _give_turn(self, lane: Lane) -> None:
        """Put a lane behind all others whose turn is to come, unless its own is."""
        if not lane.is_chained:
            self._turns.add(lane)

    def _arm(self, key: LaneKey, now: float) -> None:
        share = max(1.0, len(self._lanes) / self._config.offer_retries_max)
        pause_s = self._config.offer_retry_s * share * self._rng.uniform(0.5, 1.5)
        self._retries.set(key, now + pause_s)

    def _is_slow(self, lane: Lane) -> bool:
        return any(self._view.get(voter) is not None for voter in lane.key.ahead)

    def _oldest(self, turn: Lane) -> Lane:
        """Return the lane of this one's queue whose turn is to come and whose first task is the oldest. O(lanes of the queue)."""
        found, oldest = turn, turn.waiting.first
        for lane in self._queues[turn.key.queue]:
            first = lane.waiting.first
            if lane.is_chained and first is not None and (oldest is None or first < oldest):
                found, oldest = lane, first
        return found

    def _ask(
        self, lane: Lane, task: Queued, member: LiveMember, placement: Placement
    ) -> tuple[bytes, LiveMember]:
        task.placement = placement
        lane.waiting.remove(task)
        lane.asked += 1
        self._offers += 1
        self.slots.ask(member.node_id)
        return task.key, member

    def _wake(self, node_id: NodeId) -> None:
        """Give lanes a turn that may use this member. O(lanes)."""
        member = self._view.get(node_id)
        if member is None or self.slots.room(member) <= 0:
            return
        for lane in self._lanes.values():
            if lane.waiting and not lane.is_chained and fits(member, lane.key.wants):
                self._give_turn(lane)
