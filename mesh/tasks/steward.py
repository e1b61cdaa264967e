"""A voter's side of tasks: whatever is ready here and nobody runs is offered, until somebody claims it.

    ready ─────────────► waits ──stagger──► queued ──► asked ──claim seen──► leased
    scheduled ──when due──┘ ▲                 ▲  └─────declined, silent─────┐   │
                            │                 └─────────────────────────────┘   │
                            └────── its timer and the grace are over, or ───────┘
                                    its owner's session is proved over

The first voter of a task offers it at once, the others later, each by a stagger (`standing_by.py`): they see no
claim if there is none. Where a task is created here and somebody is known to have a slot, no offer is needed: the creating
write names that member, which is told once it is durable (`naming.py`); where no lease follows, it is offered.
All of this is advice. What a voter keeps may be old, and an offer wrong; only the claim decides, at a
majority. So nothing here is stored, and every word may be lost: a timer asks again.

Of tasks alike the oldest goes first (`lane.py`): what somebody had and lost, let go, or is to try again, keeps its age.
Whom it is offered to is its queue's strategy's to say (`offers.py`, `choosing.py`), and that is looked up at every
offer. Nobody is given more than it has slots for.

A task costs its voters one entry here, and one timer where something is waited for; its value stays in
the voter's record and is read again when it is offered. Every event costs about as much with 100,000 ready
tasks of one lane as with one (a heap's depth), but for those that tell of all at once: `adopt` and a session's
end. News of a slot (`SlotsFree`, an answer, vitals, a claim seen) costs time in the lanes (`ready_queue.py`).

Source: our own.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.placement.live_view import LiveMember, LiveView, Wants
from mesh.queues.settings import Strategy
from mesh.registers.ended import EndedSessions
from mesh.registers.record import Record
from mesh.tasks.body import Head, is_task_key, task_key
from mesh.tasks.by_node import TasksByNode
from mesh.tasks.calling import Calling
from mesh.tasks.choosing import Picked
from mesh.tasks.config import TasksConfig
from mesh.tasks.effects import Step
from mesh.tasks.ends import note_ends
from mesh.tasks.entry import Entry, KeptTask, Loss, Phase, head_of, in_order_of_making
from mesh.tasks.lane import Lane, LaneKey
from mesh.tasks.offers import Heard, Offers
from mesh.tasks.ready_queue import ReadyQueue, StrategyOf
from mesh.tasks.seats import Seats
from mesh.tasks.standing_by import StandingBy
from mesh.wire.contest_messages import Bid, VitalsTold
from mesh.wire.register_messages import Owner, Standing
from mesh.wire.task_messages import AttemptCause, Named, OfferAnswer, TaskState
from mesh.wire.work_messages import SlotsFree


class Steward:
    """Offers what this node keeps as a voter."""

    def __init__(
        self,
        *,
        own_id: NodeId,
        desk: Seats,
        view: LiveView,
        rng: random.Random,
        unix_offset_s: float,
        config: TasksConfig,
        calling: Calling,
        strategy_of: StrategyOf,
    ) -> None:
        """Begin with nothing: `adopt`."""
        self._desk = desk
        self._view = view
        self._unix_offset_s = unix_offset_s
        self._config = config
        self._strategy_of = strategy_of
        self._queue = ReadyQueue(
            own_id=own_id, view=view, rng=rng, config=config, strategy_of=strategy_of
        )
        self._tasks: dict[bytes, Entry] = {}
        self._timers: Timers[bytes] = Timers()
        self._owned = TasksByNode()
        self._standing_by = StandingBy(view, config.stagger_s)
        self.handle_member_up = self._queue.note_vitals
        self._offers = Offers(self._queue, calling, config)
        self._pending: list[Step] = []
        """What is to be said with the next offers: to whom the creations named that are durable here, and calls."""

        self._ended = EndedSessions()
        self._now = float("-inf")  # as heard last: nothing that lasts until a time is over sooner

    def __len__(self) -> int:
        return len(self._tasks)

    def name_home(self, head: Head) -> Picked | None:
        """Return whom the write that creates a task may name its owner; see `ReadyQueue`. None: its queue wants no home."""
        is_by_home = self._strategy_of(self._now, head.queue) is Strategy.RENDEZVOUS
        return self._queue.name_home(head) if is_by_home else None

    # What changes a task.

    def handle_changed(self, now: float, key: bytes, record: Record) -> None:
        """Take what this voter's disk holds of a register from now on. O(1), or O(lanes) where it ends an offer."""
        if not is_task_key(key):
            return
        entry = self._tasks.get(key)
        if entry is not None and (entry.ballot, entry.seq) == (record.ballot, record.seq):
            return  # a promise alone: nobody has it yet
        value, head = record.value, head_of(record)
        if entry is not None:
            note_ends(now, self._offers.calling.histories, entry, record, head)
            is_its = value is not None and head is not None and head.attempt == entry.attempt
            self._forget(now, key, entry, claimed_by=value.owner if value and is_its else None)
        if value is not None and value.standing is not Standing.FINAL:
            self._begin(now, key, record, head, is_new=True)

    def _begin(
        self, now: float, key: bytes, record: Record, head: Head | None, *, is_new: bool = False
    ) -> None:
        """See to a task from now on; whom it names is told if it is new, and never again: it may have run it since."""
        value, place = record.value, self._desk.place(key)
        if value is None or head is None or place is None:
            return
        lane = self._queue.enter(self._lane_key(key, head, place))
        made = min(head.created, now + self._unix_offset_s)
        entry = Entry(key, made, lane, record.ballot, record.seq, value.owner, head.attempt + 1)
        is_begun = value.owner is not None or head.cause is AttemptCause.RELEASED
        entry.was_begun = entry.is_contested = is_begun
        self._tasks[key] = entry
        if value.owner is not None:
            self._owned.add(value.owner.node_id, key)
            if record.is_named and not self._ended.has(value.owner):
                self._await_named(now, key, entry)
                if is_new and not lane.key.ahead:
                    self._pending.append((value.owner.node_id, Named(record.ballot, value)))
            else:
                self._watch(now, key, entry)
        else:
            due = max(now, head.not_before - self._unix_offset_s)
            self._wait(now, key, entry, due + self._standing_by.begin_s(key, lane.key.ahead))

    def end(self, now: float, node_id: NodeId, boot: int) -> list[bytes]:
        """Take that a session is proved over, the desk being told before; return what it ran. O(its leases)."""
        self._ended.note(node_id, boot)
        self._offers.calling.listener.forget(node_id)  # its next session was not asked yet
        lost = []
        for key in self._owned.of(node_id):
            entry = self._tasks[key]
            if entry.phase is Phase.LEASED and entry.owner is not None and entry.owner.boot <= boot:
                self._watch(now, key, entry)
                lost.append(key)
        return lost

    def adopt(self, now: float, kept: Sequence[KeptTask] | None = None) -> None:
        """Look at everything anew: it may be other voters' now, and this node may vote on more. O(tasks).

        `kept` is all that this voter keeps of tasks, in the order of their making, if it was read just now.
        """
        before = dict(self._tasks)
        for key, entry in before.items():
            self._forget(now, key, entry)
        for key, record, head in in_order_of_making(self._desk.voter) if kept is None else kept:
            if record.value is not None and record.value.standing is not Standing.FINAL:
                self._begin(now, key, record, head)
            if key in before and key in self._tasks:
                self._tasks[key].lost_at = before[key].lost_at

    # What members say.

    def handle_message(
        self, now: float, sender: NodeId, message: OfferAnswer | SlotsFree | Bid | VitalsTold
    ) -> None:
        """Take a member's answer, its bid, or that it has a slot now. O(lanes)."""
        match message:
            case SlotsFree():
                self._queue.note_free(sender, message.free_slots, is_noted=False)
            case VitalsTold():
                self._offers.hear_vitals(now, sender, message)
            case Bid():
                self._offers.handle_bid(now, task_key(message.task_id), sender, message)
            case OfferAnswer():
                self._on_answer(now, sender, message)

    def _on_answer(self, now: float, sender: NodeId, message: OfferAnswer) -> None:
        key = task_key(message.task_id)
        entry = self._tasks.get(key)
        if entry is None:
            return
        if not self._offers.is_awaited(key, entry, sender, message.attempt):
            self._offers.hear_owner(entry, sender, message)
            return
        heard, steps = self._offers.hear(now, key, entry, sender, message)
        self._pending += steps
        if heard is Heard.CLAIMS:
            self._timers.set(key, now + self._config.claim_timeout_s)
        elif heard is Heard.DECLINED:
            entry.is_contested = True  # its home would not have it
            self._wait_on(now, key, entry)
        elif heard is not Heard.NOTHING:
            self._offers.end(now, key, entry)
            self._wait(now, key, entry, now + self._offers.pause_s(entry, heard))
        self._give_up(now)

    def handle_member_down(self, now: float, node_id: NodeId) -> None:
        """Ask a member no more that seems gone, and wait for it no longer. The view knows already. O(lanes + offers + tasks that wait for it to offer them)."""
        self._pending += self._offers.handle_member_down(now, node_id)
        self._give_up(now)
        for key in self._offers.of_member(node_id):
            self._tasks[key].is_contested = True  # its home is gone
            self._wait_on(now, key, self._tasks[key])
        self._queue.drop_member(now, node_id)
        for key in self._standing_by.take_behind(node_id):
            until = self._timers.deadline(key)
            assert until is not None, key
            self._wait(now, key, self._tasks[key], until - self._config.stagger_s)

    # What is to be done.

    def offer_ready(self, now: float) -> list[Step]:
        """Offer whatever may find a slot."""
        steps, self._pending = self._pending, []
        self._now = now
        while True:
            picked = self._queue.take_offer(now, self._wants)
            if picked is None:
                break
            steps += self._offer(now, *picked)
        return steps

    def handle_timeout(self, now: float) -> list[Step]:
        """See to what is due: a time, a silence, a lease."""
        for key in self._timers.take_due(now):
            entry = self._tasks[key]
            if entry.phase is Phase.WAITS:
                self._wait(now, key, entry, now)
            elif entry.phase is Phase.LEASED:
                voter = self._desk.voter
                if voter.record(key).is_named and voter.remaining_s(now, key) is None:
                    self._offers.note_silence(
                        entry, None if entry.owner is None else entry.owner.node_id
                    )
                self._watch(now, key, entry)
            elif entry.asked is not None:
                self._offers.note_silence(entry, entry.asked)
                entry.is_contested = True  # its home says nothing
                self._wait_on(now, key, entry)
        steps = self._offers.handle_timeout(now)
        self._give_up(now)
        for task, member in self._queue.take_retries(now, self._wants):
            steps += self._offer(now, task, member)
        return steps

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do."""
        dues = (
            self._timers.next_deadline(),
            self._queue.next_timeout(),
            self._offers.next_timeout(),
        )
        return min((due for due in dues if due is not None), default=None)

    def waits_for(self, key: bytes) -> str:
        """Say in one sentence what a task waits for, as this voter sees it; "": it does not know."""
        entry = self._tasks.get(key)
        if entry is None:
            return ""
        if entry.phase is Phase.LEASED:
            return "its run to end, or its lease"
        if entry.phase is Phase.WAITS:
            head = head_of(self._desk.voter.record(key))
            is_scheduled = head is not None and head.state is TaskState.SCHEDULED
            return "its time" if is_scheduled else "being offered again, in a moment"
        return "an answer" if entry.asked is not None else self._queue.waits_for(entry.lane)

    def loss(self, key: bytes) -> Loss | None:
        """Return how whoever had a task lost it, as this voter sees it; None: it may run it, or nobody has it."""
        entry = self._tasks.get(key)
        if entry is None or entry.owner is None or entry.lost_at is None:
            return None
        if self._desk.voter.remaining_s(self._now, key) is not None:
            return None  # it was renewed after all
        return Loss(entry.owner, entry.attempt - 1, self._loss(entry.owner), entry.lost_at)

    def check_invariants(self) -> None:
        """Raise AssertionError if a task would be forgotten by all timers, or an index disagrees. O(tasks)."""
        lanes: Counter[LaneKey] = Counter()
        waiting: Counter[LaneKey] = Counter()
        for key, entry in self._tasks.items():
            lanes[entry.lane.key] += 1
            assert (entry.asked is not None) == (entry.phase is Phase.ASKED), (key, entry)
            assert entry.is_waiting == (entry.phase is Phase.QUEUED), (key, entry)
            waiting[entry.lane.key] += entry.is_waiting
            assert (key in self._timers) == (entry.phase is not Phase.QUEUED), (key, entry)
            if entry.owner is not None:
                assert self._owned.has(entry.owner.node_id, key), key
        assert len(self._timers) <= len(self._tasks)
        asked = {key: entry.asked for key, entry in self._tasks.items() if entry.asked is not None}
        self._offers.check_invariants(asked)
        self._queue.check_invariants(lanes, waiting)
        assert len(self._owned) == sum(one.owner is not None for one in self._tasks.values())
        waits = {key for key, one in self._tasks.items() if one.phase is Phase.WAITS}
        self._standing_by.check_invariants(waits)

    # Inside.

    def _offer(self, now: float, key: bytes, member: LiveMember) -> list[Step]:
        entry, record = self._tasks[key], self._desk.voter.record(key)
        self._offers.begin(key, entry, member)
        head = head_of(record)
        if head is None or (record.ballot, record.seq) != (entry.ballot, entry.seq):
            self._offers.end(now, key, entry)  # something newer is on its way to the disk
            self._wait(now, key, entry, now + self._config.offer_timeout_s)
            return []
        if entry.owner is not None and self._desk.voter.remaining_s(now, key) is not None:
            self._offers.end(now, key, entry)  # it was renewed after all
            self._watch(now, key, entry)
            return []
        entry.had_more = bool(entry.lane.waiting)
        offer = entry.offer(head, head.cause if entry.owner is None else self._loss(entry.owner))
        strategy = self._strategy_of(now, entry.lane.key.queue)
        steps, until = self._offers.ask(now, key, entry, offer, member, strategy=strategy)
        self._timers.set(key, until)
        self._give_up(now)
        return steps

    def _give_up(self, now: float) -> None:
        """Let tasks wait on that nobody of those called would have."""
        for key in self._offers.take_given_up():
            entry = self._tasks.get(key)
            if entry is not None and entry.asked is not None:
                self._wait_on(now, key, entry)
                entry.was_let_pass = (
                    True  # one of them is asked alone next, and what it says counts
                )

    def _loss(self, owner: Owner) -> AttemptCause:
        return AttemptCause.CRASH if self._ended.has(owner) else AttemptCause.LAPSE

    def _await_named(self, now: float, key: bytes, entry: Entry) -> None:
        """Give whom a creation named as long as an offer to have its lease."""
        remaining_s = self._desk.voter.remaining_s(now, key)
        entry.phase = Phase.LEASED
        self._timers.set(key, now + (remaining_s or self._config.offer_timeout_s))

    def _watch(self, now: float, key: bytes, entry: Entry) -> None:
        """Wait until the lease is over, or let the task wait for the next one to run it."""
        remaining_s = self._desk.voter.remaining_s(now, key)
        if remaining_s is not None:
            entry.phase = Phase.LEASED
            self._timers.set(key, now + remaining_s)
        else:
            if entry.phase is Phase.LEASED or (entry.owner and self._ended.has(entry.owner)):
                # Else this voter was told of it just now, and its owner may renew it.
                entry.lost_at = now
            ahead_s = self._standing_by.begin_s(key, entry.lane.key.ahead)
            self._wait(now, key, entry, now + ahead_s)

    def _wait(self, now: float, key: bytes, entry: Entry, until: float) -> None:
        if until > now:
            entry.phase = Phase.WAITS
            self._timers.set(key, until)
        else:
            entry.phase = Phase.QUEUED
            self._timers.cancel(key)
            self._standing_by.end(key, entry.lane.key.ahead)
            self._queue.add(now, entry.lane, entry)

    def _wait_on(self, now: float, key: bytes, entry: Entry) -> None:
        """Let a task that was declined wait in its old place."""
        self._queue.add(now, entry.lane, entry)
        self._offers.end(now, key, entry)
        entry.phase = Phase.QUEUED
        self._timers.cancel(key)

    def _forget(
        self, now: float, key: bytes, entry: Entry, claimed_by: Owner | None = None
    ) -> None:
        if entry.asked is not None:
            self._offers.end(now, key, entry, claimed_by)
        if entry.owner is not None:
            self._owned.drop(entry.owner.node_id, key)
        self._standing_by.end(key, entry.lane.key.ahead)
        self._timers.cancel(key)
        self._queue.leave(entry.lane, entry)
        del self._tasks[key]

    def _lane_key(self, key: bytes, head: Head, place: int) -> LaneKey:
        wants = replace(head.wants, key="")
        return LaneKey(wants, self._desk.seats(key).voters[:place])

    def _wants(self, lane: Lane, key: bytes) -> Wants:
        head = head_of(self._desk.voter.record(key))
        return lane.key.wants if head is None else head.wants
