"""What is being asked of whom: an offer to one member, or a contest among several.

    rendezvous   the best that may have a slot is asked; when it declined, is gone or says nothing, there is a contest
    contest      a contest from the start
    round_robin  the members are asked in turn, one after the other
    pull         whoever has the most slots free is asked; when it declined, whoever has then

However many are called, one of them is expected to take the task, and a slot of that one is counted as asked
for: so a voter holds no more contests at once than there are slots.

Source: our own.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from mesh.contest.estimate import wants_of
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveMember
from mesh.queues.settings import Strategy
from mesh.tasks.calling import Calling
from mesh.tasks.config import TasksConfig
from mesh.tasks.effects import Step
from mesh.tasks.entry import Entry, Phase
from mesh.tasks.ready_queue import ReadyQueue
from mesh.wire.contest_messages import VitalsTold
from mesh.wire.register_messages import Owner
from mesh.wire.task_messages import Decline, Offer, OfferAnswer, PlacedBy


class Heard(Enum):
    """What an answer means for its task."""

    NOTHING = "nothing"
    CLAIMS = "claims"
    DECLINED = "declined"
    """It is to wait on, in its old place."""

    TAKEN = "taken"
    """It is said to be somebody's, against what is kept here."""

    OVER = "over"


class Offers:
    """The offers and contests of one steward."""

    def __init__(self, queue: ReadyQueue, calling: Calling, config: TasksConfig) -> None:
        self._queue = queue
        self._config = config
        self._offered: dict[NodeId, dict[bytes, None]] = {}
        self.calling = calling
        """Its contests."""

        self.handle_bid = calling.handle_bid
        self.handle_member_down = calling.handle_member_down
        self.handle_timeout = calling.handle_timeout
        self.next_timeout = calling.next_timeout
        self.story = calling.story

    def of_member(self, node_id: NodeId) -> list[bytes]:
        """Return the tasks that this member alone is being asked to run."""
        return [key for key in self._offered.get(node_id, ()) if key not in self.calling]

    def ask(
        self,
        now: float,
        key: bytes,
        entry: Entry,
        offer: Offer,
        member: LiveMember,
        *,
        strategy: Strategy,
    ) -> tuple[list[Step], float]:
        """Ask `member`, or call it with others; return what to send, and until when that is to be answered."""
        able = [member]
        by_home = strategy is Strategy.RENDEZVOUS
        is_called = strategy is Strategy.CONTEST or (by_home and entry.is_contested)
        if is_called and not entry.was_let_pass:
            able = self._queue.able(entry.lane, wants_of(offer), member)
        entry.was_let_pass = False
        if len(able) == 1:  # there is nobody to be fitter
            return [(member.node_id, offer)], now + self._config.offer_timeout_s
        if offer.placement is not None:
            offer = replace(offer, placement=replace(offer.placement, by=PlacedBy.CONTEST))
        steps, expected = self.calling.open(now, key, offer, able)
        if expected is not None and expected != member.node_id:
            self._expect(key, entry, expected)
        return steps, now + self._config.contest_s_max

    def begin(self, key: bytes, entry: Entry, member: LiveMember) -> None:
        """Count a task as asked about: `member` is expected to take it."""
        entry.phase, entry.asked, entry.is_claimed = Phase.ASKED, member.node_id, False
        self._offered.setdefault(member.node_id, {})[key] = None

    def end(self, now: float, key: bytes, entry: Entry, claimed_by: Owner | None = None) -> None:
        """Count a task as asked about no more; `claimed_by`: because this session has it."""
        assert entry.asked is not None
        asked, entry.asked = entry.asked, None
        self._unlist(key, asked)
        winner = None if claimed_by is None else claimed_by.node_id
        entry.was_let_pass = self.calling.close(now, key, winner) is not None and winner is None
        self._queue.end_offer(
            entry.lane, asked, is_claimed=winner == asked, is_told=entry.is_claimed
        )

    def _unlist(self, key: bytes, asked: NodeId) -> None:
        offered = self._offered[asked]
        del offered[key]
        if not offered:
            del self._offered[asked]

    def _expect(self, key: bytes, entry: Entry, expected: NodeId) -> None:
        """Count the slot of another as asked for: the fittest of those called is expected to take the task."""
        assert entry.asked is not None
        self._unlist(key, entry.asked)
        self._queue.slots.end(entry.asked)
        self._queue.slots.ask(expected)
        entry.asked = expected
        self._offered.setdefault(expected, {})[key] = None

    def is_awaited(self, key: bytes, entry: Entry, sender: NodeId, attempt: int) -> bool:
        """Say whether this member may answer about this attempt just now."""
        if entry.attempt != attempt or entry.asked is None:
            return False
        is_contest = key in self.calling
        return self.calling.was_called(key, sender) if is_contest else entry.asked == sender

    def hear(
        self, now: float, key: bytes, entry: Entry, sender: NodeId, answer: OfferAnswer
    ) -> tuple[Heard, list[Step]]:
        """Take an answer that is awaited; return what it means, and what to send."""
        decline, is_called = answer.decline, key in self.calling
        if decline is Decline.OVER or (decline is Decline.TAKEN and not is_called):
            return (Heard.OVER if decline is Decline.OVER else Heard.TAKEN), []
        if decline is Decline.NONE:
            is_news = not entry.is_claimed  # who says so again and again is waited for once
            # It has reserved a slot for this, and says how many it has beside: none is asked for any more.
            if not entry.is_claimed and entry.asked is not None:
                entry.is_claimed = True
                self._queue.slots.end(entry.asked)
            is_noted = True if entry.had_more and not answer.free_slots else None
            self._queue.note_free(sender, answer.free_slots, is_noted=is_noted)
            if is_called:  # the contest's own time is its bound
                return Heard.NOTHING, self.calling.handle_answer(now, key, sender, decline)
            return (Heard.CLAIMS if is_news else Heard.NOTHING), []
        if decline is not Decline.TAKEN:
            self._queue.note_answer(entry.lane, sender, decline, answer.free_slots)
        if is_called:
            return Heard.NOTHING, self.calling.handle_answer(now, key, sender, decline)
        return Heard.DECLINED, []

    def hear_owner(self, entry: Entry, sender: NodeId, answer: OfferAnswer) -> None:
        """Take the word of whoever was named, or still has a task: what it says of its slots. Any other is a late one."""
        if entry.owner is None or entry.owner.node_id != sender:
            return  # its next word is of more use
        if answer.decline in {Decline.UNSUITED, Decline.UNSURE}:
            self._queue.note_answer(entry.lane, sender, answer.decline, answer.free_slots)
            return
        is_noted = None if answer.free_slots else True
        self._queue.note_free(sender, answer.free_slots, is_noted=is_noted)

    def note_silence(self, entry: Entry, node_id: NodeId | None) -> None:
        """Take that a member did not answer an offer, or did not take up what it was named for: it is as good as busy."""
        if node_id is not None:
            self._queue.note_answer(entry.lane, node_id, Decline.BUSY, 0)

    def pause_s(self, entry: Entry, heard: Heard) -> float:
        """Return for how long a task is not offered that is said to be somebody's, or over: each time twice as long."""
        # Whoever found it over has written that back, to this voter too: its word alone ends nothing here.
        pause_s = self._config.taken_pause_s * 2.0 ** min(entry.pauses, 16)
        entry.pauses += 1
        most_s = self._config.taken_pause_s_max
        return most_s if heard is Heard.OVER else min(pause_s, most_s)

    def hear_vitals(self, now: float, sender: NodeId, message: VitalsTold) -> None:
        """Take what a member says of itself: that may be the slot which somebody waits for. O(lanes)."""
        told = self.calling.listener.told(sender)
        self.calling.listener.handle(now, sender, message)
        if told is None or told.free_slots != message.free_slots:  # its load is no news of a slot
            self._queue.note_free(sender, message.free_slots)

    def take_given_up(self) -> list[bytes]:
        """Return the tasks that nobody of those called would have, and forget them."""
        keys, self.calling.given_up = self.calling.given_up, []
        return keys

    def check_invariants(self, asked: dict[bytes, NodeId]) -> None:
        """Raise AssertionError if these tasks, and whom each is asked of, are not what is counted here. O(offers)."""
        assert asked == {key: to for to, keys in self._offered.items() for key in keys}
        self.calling.check_invariants()
        assert len(self.calling) <= len(asked)
