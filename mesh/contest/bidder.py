"""A member that is called: it waits as long as its rank says, and bids unless a fitter one has spoken.

    Call ──► waits ──its time──► bids: tells the others, and claims ──granted──► tells them so
               │  ▲                └── refused, or no slot any more ──► out of it
      a fitter │  │ no grant was
          bid  ▼  │ told in time
            suspended ──Settled──► out of it

The fittest waits least, so mostly nobody else has to speak. A word that is lost costs a claim in vain: the
quorum grants a task once, whoever asks.

A bid may overtake the call that it answers: the latest are remembered for a moment.

Source: our own; the waiting rule is that of the design, section "The contest".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from mesh.contest.rank import bucket
from mesh.core.ageing import take_aged
from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.wire.contest_messages import SCORE_MAX, Bid, Call, Settled

CALLS_MAX: Final = 4_096
"""Contests that a member takes part in at once; with so many, a further call is not heard."""

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


class Turn(NamedTuple):
    """That a member's time has come: it is to bid and claim now, if it still can."""

    caller: NodeId
    call: Call


@dataclass(slots=True)
class Part:
    """A member's part in one contest. Invariant: it has a timer, unless it has bid."""

    caller: NodeId
    call: Call
    score: int
    again_s: float
    """The wait after which it bids, once whoever was fitter turns out to be gone."""

    standing: Standing = Standing.WAITS
    suspended_by: NodeId | None = None


class Bidder:
    """All contests in which a member is called. Pure: it is told the time, and says when it wants to be asked."""

    def __init__(self) -> None:
        self._parts: dict[str, Part] = {}
        self._timers: Timers[str] = Timers()
        self._heard: dict[tuple[str, int], tuple[NodeId, int] | None] = {}  # None: it is granted
        self._heard_at: dict[tuple[str, int], float] = {}
        self.dropped = 0
        """Calls that were not heard, for want of room."""

    def __len__(self) -> int:
        return len(self._parts)

    def handle_call(
        self, now: float, caller: NodeId, call: Call, *, score: int, wait_s: float, again_s: float
    ) -> None:
        """Take part, with a fitness of `score` (0 to SCORE_MAX): bid after `wait_s`, or `again_s` after a suspension.

        The same call again changes nothing; a later round, or attempt, of the same task takes its place.
        """
        offer = call.offer
        known = self._parts.get(offer.task_id)
        if known is not None:
            before = (known.call.offer.attempt, known.call.round)
            if (offer.attempt, call.round) <= before:
                return
            self._leave(offer.task_id)
        elif len(self._parts) >= CALLS_MAX:
            self.dropped += 1
            return
        self._forget_old(now)
        key = (offer.task_id, offer.attempt)
        if key in self._heard and self._heard[key] is None:
            return
        part = self._parts[offer.task_id] = Part(caller, call, score, again_s)
        self._timers.set(offer.task_id, now + wait_s)
        heard = self._heard.get(key)
        if heard is not None and level(heard[1]) >= level(score):
            self._suspend(now, offer.task_id, part, heard[0])

    def handle_bid(self, now: float, sender: NodeId, bid: Bid) -> None:
        """Take another's bid: a better one suspends this member's own, unless that is made."""
        part = self._parts.get(bid.task_id)
        if part is None or part.call.offer.attempt < bid.attempt:
            self._note(now, (bid.task_id, bid.attempt), (sender, bid.score))
            return
        is_other = part.call.offer.attempt != bid.attempt or part.standing is Standing.HAS_BID
        if is_other or level(bid.score) < level(part.score):
            return
        self._suspend(now, bid.task_id, part, sender)

    def handle_settled(self, now: float, settled: Settled) -> None:
        """Take that this attempt is somebody's: there is nothing to bid for any more."""
        part = self._parts.get(settled.task_id)
        if part is not None and part.call.offer.attempt <= settled.attempt:
            self._leave(settled.task_id)
        if part is None or part.call.offer.attempt < settled.attempt:
            self._note(now, (settled.task_id, settled.attempt), None)

    def handle_member_down(self, now: float, node_id: NodeId) -> None:
        """Take that a member seems gone: whoever waits for its grant goes on. O(contests here)."""
        for task_id, part in self._parts.items():
            if part.suspended_by == node_id:
                self._timers.set(task_id, now + part.again_s)

    def end(self, task_id: str) -> None:
        """Take no part any more: this member's claim is over, one way or the other."""
        if task_id in self._parts:
            self._leave(task_id)

    def handle_timeout(self, now: float) -> list[Turn]:
        """Return the turns that have come. Whoever is given one makes its bid, or calls `end`."""
        turns = []
        for task_id in self._timers.take_due(now):
            part = self._parts[task_id]
            part.standing, part.suspended_by = Standing.HAS_BID, None
            turns.append(Turn(part.caller, part.call))
        return turns

    def next_deadline(self) -> float | None:
        """Return when `handle_timeout` has something, or None."""
        return self._timers.next_deadline()

    def rivals(self, task_id: str, own_id: NodeId) -> tuple[NodeId, ...]:
        """Return who is to hear this member's bid: the others called, and the caller; each once."""
        part = self._parts.get(task_id)
        if part is None:
            return ()
        called: Iterable[NodeId] = (one.node_id for one in part.call.called)
        return tuple(one for one in dict.fromkeys([part.caller, *called]) if one != own_id)

    def check_invariants(self) -> None:
        """Raise AssertionError if a part has no timer, or a timer no part."""
        waiting = {
            task_id
            for task_id, part in self._parts.items()
            if part.standing is not Standing.HAS_BID
        }
        assert waiting == set(self._timers)
        assert all(
            (part.suspended_by is not None) == (part.standing is Standing.SUSPENDED)
            for part in self._parts.values()
        )
        assert self._heard.keys() == self._heard_at.keys()
        assert len(self._heard) <= HEARD_MAX

    # Inside.

    def _suspend(self, now: float, task_id: str, part: Part, by: NodeId) -> None:
        part.standing, part.suspended_by = Standing.SUSPENDED, by
        self._timers.set(task_id, now + part.call.patience_us / 1e6 + part.again_s)

    def _leave(self, task_id: str) -> None:
        del self._parts[task_id]
        self._timers.cancel(task_id)

    def _note(self, now: float, key: tuple[str, int], word: tuple[NodeId, int] | None) -> None:
        """Remember a word about a contest that this member was not called to yet: the best bid, or that it is over."""
        self._forget_old(now)
        if key in self._heard:
            known = self._heard[key]
            if word is None or (known is not None and word[1] > known[1]):
                self._heard[key] = word
            return
        if len(self._heard) >= HEARD_MAX:
            oldest = next(iter(self._heard_at))
            del self._heard[oldest], self._heard_at[oldest]
        self._heard[key], self._heard_at[key] = word, now

    def _forget_old(self, now: float) -> None:
        for key in take_aged(self._heard_at, now, HEARD_S):
            del self._heard[key]
