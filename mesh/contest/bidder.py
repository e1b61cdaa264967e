"""A member that is called: it waits as long as its rank says, and bids unless a fitter one has spoken.

    Call ──► waits ──its time──► bids: tells the others, and claims ──granted──► tells them so
               │  ▲                └── refused, or no slot any more ──► out of it
      a fitter │  │ no grant was
          bid  ▼  │ told in time
            suspended ──Settled──► out of it

The fittest waits least, so mostly nobody else has to speak. A word that is lost costs a claim in vain: the
quorum grants a task once, whoever asks.

A bid may overtake the call that it answers: the latest are remembered for a moment.

What anybody may say wrongly costs time alone, and not much of it: a word counts from those alone who were called
too, holds a member up once, and no caller's contest bars another's.

Source: our own; the waiting rule is that of the design, section "The contest".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from mesh.contest.rank import bucket, held
from mesh.core.ageing import take_aged
from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.wire.contest_messages import SCORE_MAX, Bid, Call, Settled

CALLS_MAX: Final = 4_096
"""Contests that a member takes part in at once; with so many, a further call is not heard."""

CALLS_OF_ONE_MAX: Final = 256
"""Of these, those of one caller: several times as many as a voter holds at once, and no caller shuts out the others."""

HEARD_S: Final = 2.0
HEARD_MAX: Final = 1_024
"""Bids and grants that came before their call are remembered for so long, and so many of them."""


def level(score: int) -> int:
    """Return the bucket of a score on the wire, 0 to 7: within one, whoever speaks first is as good as any."""
    return bucket(score / SCORE_MAX)


class Standing(Enum):
    """How a member stands in a contest."""

    WAITS = "waits"
    SUSPENDED = "suspended"
    HAS_BID = "has bid"


class BidTurn(NamedTuple):
    """That a member's time has come: it is to bid and claim now, if it still can."""

    caller: NodeId
    call: Call


class Word(NamedTuple):
    """What was heard of a contest: somebody's bid, or (None) that it has the task."""

    sender: NodeId
    score: int | None


@dataclass(slots=True)
class Part:
    """A member's part in one contest. Invariant: it has a timer, unless it has bid."""

    caller: NodeId
    call: Call
    score: int
    again_s: float
    """The wait after which it bids, once whoever was fitter turns out to be gone."""

    placed: Mapping[NodeId, float] = field(default_factory=dict)
    """What the caller's table makes of each of those called, 0 to 1: it holds their bids as it does their ranks."""

    standing: Standing = Standing.WAITS
    suspended_by: NodeId | None = None
    waited_for: set[NodeId] = field(default_factory=set)
    """Whose bids have suspended it: each does so once, so that nobody holds it up by saying it again."""

    def heeds(self, sender: NodeId) -> bool:
        """Say whether this member's word counts here: it was called too, or called."""
        return sender == self.caller or any(one.node_id == sender for one in self.call.called)

    def is_behind(self, sender: NodeId, score: int) -> bool:
        """Say whether this bid is as good as this member's own, or better."""
        found = score / SCORE_MAX
        return bucket(held(found, self.placed.get(sender, found))) >= level(self.score)


_Key: TypeAlias = tuple[str, NodeId]
"""A task and who called: each caller's contest is one of its own, and no caller ends, or bars, another's."""


class Bidder:
    """All contests in which a member is called. Pure: it is told the time, and says when it wants to be asked."""

    def __init__(self) -> None:
        self._parts: dict[_Key, Part] = {}
        self._callers: dict[str, dict[NodeId, None]] = {}  # of each task
        self._calls: dict[NodeId, int] = {}  # of each caller
        self._timers: Timers[_Key] = Timers()
        self._heard: dict[tuple[str, int], Word] = {}
        self._heard_at: dict[tuple[str, int], float] = {}
        self.dropped = 0
        """Calls that were not heard, for want of room."""

    def __len__(self) -> int:
        return len(self._parts)

    def heeds(self, caller: NodeId, call: Call) -> bool:
        """Say whether a call is news, and has room; one without is counted. O(1): asked before anything is reckoned."""
        known = self._parts.get((call.offer.task_id, caller))
        if known is not None:
            before = (known.call.offer.attempt, known.call.round)
            return (call.offer.attempt, call.round) > before
        is_full = len(self._parts) >= CALLS_MAX or self._calls.get(caller, 0) >= CALLS_OF_ONE_MAX
        self.dropped += is_full
        return not is_full

    def handle_call(
        self,
        now: float,
        caller: NodeId,
        call: Call,
        *,
        score: int,
        wait_s: float,
        again_s: float,
        placed: Mapping[NodeId, float] | None = None,
    ) -> None:
        """Take part, ranked by `score` (0 to SCORE_MAX): bid after `wait_s`, or `again_s` after a suspension.

        `placed`: the scores (0 to 1) that the others were ranked by.

        The same call again changes nothing; a later round, or attempt, of the same caller takes its place. One for
        which there is no room is dropped.
        """
        offer, key = call.offer, (call.offer.task_id, caller)
        if not self.heeds(caller, call):
            return
        if key in self._parts:
            self._leave(key)
        self._forget_old(now)
        part = Part(caller, call, score, again_s, placed or {})
        heard = self._heard.get((offer.task_id, offer.attempt))
        if heard is not None and not part.heeds(heard.sender):
            heard = None
        if heard is not None and heard.score is None:
            return
        self._parts[key] = part
        self._callers.setdefault(offer.task_id, {})[caller] = None
        self._calls[caller] = self._calls.get(caller, 0) + 1
        self._timers.set(key, now + wait_s)
        if heard is None or heard.score is None:
            return
        if part.is_behind(heard.sender, heard.score):
            self._suspend(now, key, part, heard.sender)

    def handle_bid(self, now: float, sender: NodeId, bid: Bid) -> None:
        """Take another's bid: a better one suspends this member's own, unless that is made. O(its callers)."""
        keys = self._keys(bid.task_id)
        if all(self._parts[key].call.offer.attempt < bid.attempt for key in keys):
            self._note(now, (bid.task_id, bid.attempt), Word(sender, bid.score))
            return
        for key in keys:
            part = self._parts[key]
            is_other = part.call.offer.attempt != bid.attempt or part.standing is Standing.HAS_BID
            if is_other or not part.heeds(sender) or not part.is_behind(sender, bid.score):
                continue
            if sender not in part.waited_for:
                self._suspend(now, key, part, sender)

    def handle_settled(self, now: float, sender: NodeId, settled: Settled) -> None:
        """Take that this attempt is somebody's: there is nothing to bid for any more. O(its callers)."""
        keys = self._keys(settled.task_id)
        if all(self._parts[key].call.offer.attempt < settled.attempt for key in keys):
            self._note(now, (settled.task_id, settled.attempt), Word(sender, None))
        for key in keys:
            part = self._parts[key]
            if part.call.offer.attempt <= settled.attempt and part.heeds(sender):
                self._leave(key)

    def handle_member_down(self, now: float, node_id: NodeId) -> None:
        """Take that a member seems gone: whoever waits for its grant goes on. O(contests here)."""
        for key, part in self._parts.items():
            if part.suspended_by == node_id:
                self._timers.set(key, now + part.again_s)

    def end(self, task_id: str) -> None:
        """Take no part any more: this member's claim is over, one way or the other. O(its callers)."""
        for key in self._keys(task_id):
            self._leave(key)

    def handle_timeout(self, now: float) -> list[BidTurn]:
        """Return the turns that have come. Whoever is given one makes its bid, or calls `end`."""
        turns = []
        for key in self._timers.take_due(now):
            part = self._parts[key]
            part.standing, part.suspended_by = Standing.HAS_BID, None
            turns.append(BidTurn(part.caller, part.call))
        return turns

    def next_deadline(self) -> float | None:
        """Return when `handle_timeout` has something, or None."""
        return self._timers.next_deadline()

    def rivals(self, task_id: str, own_id: NodeId) -> tuple[NodeId, ...]:
        """Return who is to hear this member's bid: the others called, and the callers; each once."""
        found: dict[NodeId, None] = {}
        for key in self._keys(task_id):
            part = self._parts[key]
            found |= dict.fromkeys([part.caller, *(one.node_id for one in part.call.called)])
        return tuple(one for one in found if one != own_id)

    def check_invariants(self) -> None:
        """Raise AssertionError if a part has no timer, or a timer no part; or a count or bound does not hold."""
        waiting = {
            key for key, part in self._parts.items() if part.standing is not Standing.HAS_BID
        }
        assert waiting == set(self._timers)
        for key, part in self._parts.items():
            assert key == (part.call.offer.task_id, part.caller)
            assert (part.suspended_by is not None) == (part.standing is Standing.SUSPENDED)
        pairs = {(task_id, one) for task_id, those in self._callers.items() for one in those}
        assert pairs == set(self._parts)
        assert self._calls == Counter(caller for _, caller in self._parts)
        assert all(count <= CALLS_OF_ONE_MAX for count in self._calls.values())
        assert len(self._parts) <= CALLS_MAX
        assert self._heard.keys() == self._heard_at.keys()
        assert len(self._heard) <= HEARD_MAX

    # Inside.

    def _keys(self, task_id: str) -> list[_Key]:
        return [(task_id, caller) for caller in self._callers.get(task_id, ())]

    def _suspend(self, now: float, key: _Key, part: Part, by: NodeId) -> None:
        part.standing, part.suspended_by = Standing.SUSPENDED, by
        part.waited_for.add(by)
        self._timers.set(key, now + part.call.patience_us / 1e6 + part.again_s)

    def _leave(self, key: _Key) -> None:
        task_id, caller = key
        del self._parts[key]
        self._timers.cancel(key)
        self._calls[caller] -= 1
        if not self._calls[caller]:
            del self._calls[caller]
        callers = self._callers[task_id]
        del callers[caller]
        if not callers:
            del self._callers[task_id]

    def _note(self, now: float, key: tuple[str, int], word: Word) -> None:
        """Remember a word about a contest that this member was not called to yet: the best bid, or that it is over."""
        self._forget_old(now)
        known = self._heard.get(key)
        if known is not None:
            if known.score is not None and (word.score is None or word.score > known.score):
                self._heard[key] = word
            return
        if len(self._heard) >= HEARD_MAX:
            oldest = next(iter(self._heard_at))
            del self._heard[oldest], self._heard_at[oldest]
        self._heard[key], self._heard_at[key] = word, now

    def _forget_old(self, now: float) -> None:
        for key in take_aged(self._heard_at, now, HEARD_S):
            del self._heard[key]
