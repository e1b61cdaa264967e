"""The tasks that wait for somebody to run them, and which of them is worth offering to whom right now.

Tasks that want the same of a member, stand in the same named queue and are seen to by the same voters
before this one form a **lane**, first come first served. Since all tasks of a lane have the same
candidates (in another order each), a lane whose first task finds nobody is blocked as a whole, and
costs nothing until news of a slot comes in. Lanes take turns.

A lane that another voter sees to first, as long as that one seems alive, asks one member now and then:
enough that no task waits for ever for a voter that only seems alive, and no more.

Whom to ask rests on what was heard last: declines, `SlotsFree` and vitals say how many slots a member
has for us, and each claim of ours takes one. A member with none is asked once all the same, so that it
notes us and tells us of its next free slot; from then on it is left alone until it, or its vitals, say
otherwise. As a net below all that, a blocked lane asks one member, another one each time, about every
`offer_retry_s`; and where there are many lanes, each more seldom, so that all together ask no more.

Nothing here costs time in the tasks, but news of a slot costs time in the lanes: each is looked at, whether it
may use that slot. And there are as many lanes as the tasks differ in queue, wants and the voters before this
one. So lanes grow with what users write: where each customer has a queue of its own, with the customers that
have a task here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from mesh.core.chain import Chain, Link
from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.placement.live_view import LiveMember, LiveView, Wants, fits
from mesh.tasks.body import Head
from mesh.tasks.config import TasksConfig
from mesh.tasks.lacking import lacking
from mesh.wire.records import Metadata
from mesh.wire.task_messages import Decline


class LaneKey(NamedTuple):
    """What the tasks of a lane have in common."""

    queue: str
    wants: Wants
    """Without the key of the task: that ranks the members, and rules out none."""

    ahead: tuple[NodeId, ...]
    """The voters that see to these tasks before this one."""


@dataclass(slots=True, eq=False)
class Queued(Link):
    """A task that belongs to a lane, and waits there when it is chained."""

    key: bytes


@dataclass(slots=True, eq=False)
class Lane(Link):
    """Tasks with the same candidates; it is chained while it has a turn to come.

    Invariant: a blocked lane is in no turn, and its retry is armed.
    """

    key: LaneKey
    waiting: Chain[Queued] = field(default_factory=Chain)
    tasks: int = 0  # that belong here, waiting or not
    asked: int = 0  # of them, those that somebody is being asked to run
    busy: dict[NodeId, int] = field(default_factory=dict)  # who declined, and its news count then
    unfit: dict[NodeId, Metadata] = field(default_factory=dict)  # who never can, and its card then
    turn: int = 0  # whose turn it is to be asked anyway


WantsOf: TypeAlias = Callable[[Lane, bytes], Wants]
"""Returns what a task of a lane wants, with the key that ranks the members."""


class ReadyQueue:
    """Waiting tasks by lane, and what is known of every member's free slots. O(1) in the tasks throughout, not in the lanes."""

    def __init__(self, view: LiveView, rng: random.Random, config: TasksConfig) -> None:
        self._view = view
        self._rng = rng
        self._config = config
        self._lanes: dict[LaneKey, Lane] = {}
        self._turns: Chain[Lane] = Chain()  # lanes that may find somebody, next one first
        self._free: dict[NodeId, int] = {}
        self._news: dict[NodeId, int] = {}
        self._noted: set[NodeId] = set()  # members that will tell us of their next free slot
        self._asking: dict[NodeId, int] = {}  # offers under way
        self._offers = 0
        self._retries: Timers[LaneKey] = Timers()
        self.next_timeout = self._retries.next_deadline
        """Returns when `take_retries` may have something."""

    # Lanes and what waits in them.

    def enter(self, key: LaneKey) -> Lane:
        """Count one more task to a lane; it does not wait yet."""
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(key)
        lane.tasks += 1
        return lane

    def leave(self, lane: Lane, task: Queued) -> None:
        """Count a task to its lane no more, waiting or not. Nobody is being asked about it."""
        if task.is_chained:
            lane.waiting.remove(task)
        lane.tasks -= 1
        if not lane.tasks:
            del self._lanes[lane.key]
            if lane.is_chained:
                self._turns.remove(lane)
            self._retries.cancel(lane.key)

    def add(self, now: float, lane: Lane, task: Queued, *, is_first: bool = False) -> None:
        """Let a task wait for its turn, or (`is_first`) wait on in its old place."""
        is_blocked = bool(lane.waiting) and not lane.is_chained
        (lane.waiting.add_first if is_first else lane.waiting.add)(task)
        if self._is_slow(lane):
            if lane.key not in self._retries:
                self._arm(lane.key, now)
        elif not is_blocked:
            self._give_turn(lane)

    # Whom to ask.

    def name_home(self, head: Head) -> LiveMember | None:
        """Return the best member that is known to have a slot for a new task of this voter's, and count that as taken.

        None: nobody is known to, or others wait before it. O(members log members).
        """
        lane = self._lanes.get(LaneKey(head.queue, replace(head.wants, key=""), ()))
        if lane is not None and lane.waiting:
            return None
        for member in self._view.candidates(head.wants):
            node_id = member.node_id
            if lane is not None and not self._has_room(lane, member):
                continue  # it has declined the like of this
            free = self._free.get(node_id, member.free_slots)
            if free > self._asking.get(node_id, 0):
                self._free[node_id] = free - 1
                return member
        return None

    def take_offer(self, now: float, wants_of: WantsOf) -> tuple[bytes, LiveMember] | None:
        """Take the next task that somebody may have a slot for, and return both.

        O(members log members) for each lane that is looked at; one that finds nobody is not looked at again before news.
        """
        while self._offers < self._config.offers_max:
            lane = self._turns.first
            if lane is None:
                return None
            self._turns.remove(lane)
            task = lane.waiting.first
            if task is None:
                continue
            if not self._is_slow(lane):
                for member in self._view.candidates(wants_of(lane, task.key)):
                    if self._has_room(lane, member):
                        self._give_turn(lane)
                        return self._ask(lane, task, member)
            if lane.key not in self._retries:
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
            able = [m for m in self._view.candidates(wants_of(lane, task.key)) if _can_ask(lane, m)]
            if able:
                lane.turn += 1
                found.append(self._ask(lane, task, able[(lane.turn - 1) % len(able)]))
        return found

    def able(self, lane: Lane, wants: Wants, first: LiveMember) -> list[LiveMember]:
        """Return who has a slot for a task of this lane, with the slots that are known here. O(n log n).

        `first` is among them, with that slot of it that is counted as asked for this task already. It may have none:
        then it is to be asked for the sake of its word alone, and is no match for the others.
        """
        found = []
        for one in self._view.candidates(wants):
            asking = self._asking.get(one.node_id, 0) - (one is first)
            free = self._free.get(one.node_id, one.free_slots) - asking
            if one is first or (free > 0 and self._has_room(lane, one)):
                found.append(replace(one, free_slots=max(0, free)))
        return found

    def end_offer(self, lane: Lane, node_id: NodeId, *, is_claimed: bool = False) -> None:
        """Note that nobody waits any more for this member's word about a task of this lane. O(lanes).

        Who claimed it has one slot less, as far as we know.
        """
        if is_claimed:
            member = self._view.get(node_id)
            free = self._free.get(node_id, 0 if member is None else member.free_slots)
            self._free[node_id] = max(0, free - 1)
        lane.asked -= 1
        self._offers -= 1
        self._asking[node_id] -= 1
        if not self._asking[node_id]:
            del self._asking[node_id]
        self._wake(node_id)

    # What is heard of members.

    def note_free(self, node_id: NodeId, free_slots: int, *, is_noted: bool | None = None) -> None:
        """Take news of a member's free slots: `SlotsFree`, vitals, or its silence. O(lanes).

        `is_noted`: whether the member will tell us of its next free slot (None: as before).
        """
        self._free[node_id] = free_slots
        if free_slots > 0:
            self._news[node_id] = self._news.get(node_id, 0) + 1
        if is_noted is not None:
            (self._noted.add if is_noted else self._noted.discard)(node_id)
        self._wake(node_id)

    def note_answer(
        self,
        lane: Lane,
        node_id: NodeId,
        decline: Decline,
        free_slots: int,
        *,
        had_more: bool = True,
    ) -> None:
        """Take what a member's answer to an offer says of it. O(lanes).

        Who claims has `free_slots` beside the one that it claims for, and tells us of more if it knows that we
        wait for them: it was told that we `had_more`.
        """
        if decline is Decline.NONE:
            self._free[node_id] = free_slots + 1  # until the claim is seen
            if had_more and not free_slots:
                self._noted.add(node_id)
            self._wake(node_id)
            return
        self._free[node_id] = free_slots
        member = self._view.get(node_id)
        if decline is Decline.UNFIT and member is not None:
            lane.unfit[node_id] = member.meta
        else:
            lane.busy[node_id] = self._news.get(node_id, 0)
        (self._noted.add if decline is Decline.BUSY else self._noted.discard)(node_id)

    def drop_member(self, now: float, node_id: NodeId) -> None:
        """Forget what is known of a member that is gone; see to what it would have seen to first. O(lanes)."""
        self._free.pop(node_id, None)
        self._news.pop(node_id, None)
        self._noted.discard(node_id)
        for key, lane in self._lanes.items():
            lane.busy.pop(node_id, None)
            lane.unfit.pop(node_id, None)
            if node_id in key.ahead and lane.waiting:
                self._give_turn(lane)
                if key not in self._retries:
                    self._arm(key, now)

    def waits_for(self, lane: Lane) -> str:
        """Say in one sentence what a task that waits in this lane waits for. O(members)."""
        wants, members = lane.key.wants, self._view.members()
        candidates = [member for member in members if fits(member, wants)]
        if not candidates:
            return f"a member that can run it: {lacking(wants, [one.meta for one in members])}"
        if any(self._has_room(lane, member) for member in candidates):
            return "its turn"
        names = ", ".join(member.name for member in candidates[:5])
        more = f" and {len(candidates) - 5} more" if len(candidates) > 5 else ""
        if not any(_can_ask(lane, member) for member in candidates):
            return f"a member that can run it: {names}{more} declined it, though it seemed to fit"
        are = "is" if len(candidates) == 1 else "are all"
        return f"a free slot: {names}{more} {are} busy"

    def check_invariants(
        self, sizes: Mapping[LaneKey, int], waiting: Mapping[LaneKey, int]
    ) -> None:
        """Raise AssertionError if a lane or a count is out of step with how many tasks it has, and wait. O(tasks)."""
        assert sizes == {key: lane.tasks for key, lane in self._lanes.items()}
        assert self._offers == sum(lane.asked for lane in self._lanes.values())
        assert self._offers == sum(self._asking.values())
        turns = list(self._turns)
        assert len(turns) == len(self._turns) == sum(one.is_chained for one in self._lanes.values())
        assert all(self._lanes[lane.key] is lane for lane in turns)
        for key, lane in self._lanes.items():
            assert 0 <= lane.asked <= lane.tasks, key
            assert lane.asked + len(lane.waiting) <= lane.tasks, key
            assert waiting[key] == len(lane.waiting) == len(list(lane.waiting)), key
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

    def _room(self, member: LiveMember) -> int:
        free = self._free.get(member.node_id, member.free_slots)
        if free <= 0 and member.node_id not in self._noted:
            free = 1  # ask once, so that it notes us
        return free - self._asking.get(member.node_id, 0)

    def _has_room(self, lane: Lane, member: LiveMember) -> bool:
        is_busy = lane.busy.get(member.node_id) == self._news.get(member.node_id, 0)
        return not is_busy and _can_ask(lane, member) and self._room(member) > 0

    def _ask(self, lane: Lane, task: Queued, member: LiveMember) -> tuple[bytes, LiveMember]:
        lane.waiting.remove(task)
        lane.asked += 1
        self._offers += 1
        self._asking[member.node_id] = self._asking.get(member.node_id, 0) + 1
        return task.key, member

    def _wake(self, node_id: NodeId) -> None:
        """Give lanes a turn that may use this member. O(lanes)."""
        member = self._view.get(node_id)
        if member is None or self._room(member) <= 0:
            return
        for lane in self._lanes.values():
            if lane.waiting and not lane.is_chained and fits(member, lane.key.wants):
                self._give_turn(lane)


def _can_ask(lane: Lane, member: LiveMember) -> bool:
    return lane.unfit.get(member.node_id) != member.meta
