"""A voter that calls: it names the members that may be fittest, and looks after the contest until somebody has the task.

    called, the first 4 ──no grant in time, or all decline──► the next 4 ──► 32 at a time ──► given up
       │ a bid is heard: it has as long as a grant takes
       └ the task is seen to be somebody's: settled

The caller decides nothing. It knows how a contest went: who bid, when, what it took until the grant was seen; so
it is the one who keeps the window right, and who can tell why somebody has a task.

Source: our own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mesh.contest.window import wait_s
from mesh.core.ids import NodeId
from mesh.core.round_trip import RoundTrip
from mesh.core.timers import Timers
from mesh.wire.contest_messages import (
    CALLED_MAX,
    ROUND_MAX,
    SCORE_MAX,
    Bid,
    Call,
    Called,
    Weighing,
)
from mesh.wire.task_messages import Decline, Offer

RINGS: Final = (4, 4)
"""So many are called first, and next; after that as many as one call names."""

LAST: Final = 1 - 2.0**-32
"""The latest lot that anybody may draw."""

PATIENCE_S_MIN: Final = 0.005
PATIENCE_S_MAX: Final = 10.0
PATIENCE_SHARE: Final = 1.5
"""A grant is waited for as long as it takes at worst, by what was seen, and half as long again: others hear of it later."""

GONE: Final = Decline.NONE
"""Why a member does not bid that seems gone: it said nothing, and is waited for no more."""

STORIES_MAX: Final = 256
"""Contests that are remembered once they are over, the latest."""


class Said(NamedTuple):
    """A word in a contest: when, after the call, in seconds; who; a bid's score (0 to 1) and parts, or why it does not bid (`GONE`: it seems gone)."""

    after_s: float
    node_id: NodeId
    score: float | None
    parts: tuple[tuple[str, float], ...] = ()
    decline: Decline = Decline.NONE

    def is_bid_of(self, node_id: NodeId) -> bool:
        """Say whether it is this member's bid."""
        return self.node_id == node_id and self.score is not None


@dataclass(slots=True, eq=False)
class Story:
    """How one contest went, for whoever asks why."""

    task_id: str
    attempt: int
    at: float
    """When it began, by the session's clock."""

    window_s: float
    weights: Weighing = ()
    """What the parts of the scores weigh, as the call says; none: what they do by default."""

    called: list[tuple[NodeId, float]] = field(default_factory=list)
    """Who was called, in the caller's order, and the fitness (0 to 1) that it expected."""

    said: list[Said] = field(default_factory=list)
    winner: NodeId | None = None
    after_s: float | None = None
    """Until the grant was seen."""

    first_round: int = 0
    """The number of its first round: this attempt may have been called out before, and rounds are counted on."""

    rounds: int = 0
    is_first_window: bool = False
    is_over: bool = False
    first_s: float = 0.0
    """How long its first window lasted."""

    @property
    def bids(self) -> int:
        """How many spoke in the first window."""
        return sum(one.score is not None and one.after_s <= self.first_s for one in self.said)


class Candidate(NamedTuple):
    """A member to call: what the caller knows of it, and the fitness (0 to 1) that follows."""

    called: Called
    fitness: float


@dataclass(slots=True, eq=False)
class Contest:
    """One that is under way."""

    offer: Offer
    story: Story
    left: deque[Candidate]
    weights: Weighing = ()
    open: set[NodeId] = field(default_factory=set)
    """Who was called in this round and has not declined."""

    called: set[NodeId] = field(default_factory=set)
    """Who was called in any: the word of others is none here."""

    claiming: set[NodeId] = field(default_factory=set)
    """Who has said that it claims: for that each is waited for once."""

    until: float = 0.0
    patience_s: float = 0.0
    """How long after a bid its grant is to be seen."""


class Step(NamedTuple):
    """What a contest wants: a call to be sent to those that it names, or (None) to be given up."""

    key: bytes
    call: Call | None


class Caller:
    """The contests of one voter."""

    def __init__(self, patience_s: float) -> None:
        """Begin with none. Until a grant was seen, one may take `patience_s`."""
        self._contests: dict[bytes, Contest] = {}
        self._timers: Timers[bytes] = Timers()
        self.next_deadline = self._timers.next_deadline
        """Returns when `handle_timeout` has something, or None."""

        self._first_patience_s = patience_s
        self._grants: RoundTrip | None = None  # from a bid heard to its grant seen
        self.stories: deque[Story] = deque(maxlen=STORIES_MAX)
        """Those that are over, the oldest first."""

        self.held = 0
        """Contests that were begun."""

        self.won = 0
        """Those that ended with somebody's grant."""

    def __len__(self) -> int:
        return len(self._contests)

    def __contains__(self, key: bytes) -> bool:
        return key in self._contests

    @property
    def patience_s(self) -> float:
        """How long after a bid its grant is to be seen."""
        if self._grants is None:
            return self._first_patience_s
        return min(max(PATIENCE_SHARE * self._grants.patience_s, PATIENCE_S_MIN), PATIENCE_S_MAX)

    @property
    def grant_s(self) -> float | None:
        """How long after its bid a grant is seen, smoothed; None: none was seen yet."""
        return None if self._grants is None else self._grants.mean_s

    def was_called(self, key: bytes, node_id: NodeId) -> bool:
        """Say whether a contest is under way to which this member was called."""
        contest = self._contests.get(key)
        return contest is not None and node_id in contest.called

    def under_way(self) -> list[Story]:
        """Return the stories of those that are under way, the oldest first. O(contests)."""
        return [one.story for one in self._contests.values()]

    def story(self, task_id: str) -> Story | None:
        """Return the latest contest of a task that is still known, under way or over. O(contests)."""
        under_way = (one.story for one in self._contests.values() if one.story.task_id == task_id)
        over = (one for one in reversed(self.stories) if one.task_id == task_id)
        return next(under_way, None) or next(over, None)

    def open(
        self,
        now: float,
        key: bytes,
        offer: Offer,
        candidates: Sequence[Candidate],
        *,
        window_s: float,
        least_s: float = 0.0,
        weights: Weighing = (),
    ) -> Step:
        """Begin a contest among these, the fittest first. One under way for this key is over.

        No grant is expected in less than `least_s`: round trips to them alone take as long. All who are called reckon
        by `weights`.
        """
        self.close(now, key, None)
        self.held += 1
        before = self.story(offer.task_id)
        story = Story(offer.task_id, offer.attempt, now, window_s, weights)
        contest = self._contests[key] = Contest(offer, story, deque(candidates), weights)
        contest.patience_s = min(max(self.patience_s, least_s), PATIENCE_S_MAX)
        if before is not None and before.attempt == offer.attempt:
            story.first_round = before.first_round + before.rounds
        return self._call(now, key, contest)

    def handle_bid(self, now: float, key: bytes, sender: NodeId, bid: Bid) -> None:
        """Take a bid of one that was called: its grant is waited for."""
        contest = self._contests.get(key)
        if contest is None or bid.attempt != contest.offer.attempt:
            return
        if sender not in contest.called:
            return
        parts = tuple((name, value / 255) for name, value in bid.parts)
        said = Said(now - contest.story.at, sender, bid.score / SCORE_MAX, parts)
        if any(one.is_bid_of(sender) for one in contest.story.said):
            return  # the same word twice
        contest.story.said.append(said)
        self._wait(key, contest, now + contest.patience_s)

    def handle_answer(
        self, now: float, key: bytes, sender: NodeId, decline: Decline, claim_s: float
    ) -> Step | None:
        """Take what a called member answers; once all of a round have declined, the next is called at once.

        It claims (`NONE`): what becomes of that it will say, or the record, within `claim_s` of the first time. Somebody has the task
        (`TAKEN`): that is to be seen here too, in a moment. Any other: it does not bid.
        """
        contest = self._contests.get(key)
        if contest is None or sender not in contest.called:
            return None
        if decline is Decline.NONE:
            if (
                sender not in contest.claiming
            ):  # else it could put off the next round for as long as it liked
                contest.claiming.add(sender)
                self._wait(key, contest, now + claim_s)
            return None
        if sender not in contest.open:
            return None
        contest.open.discard(sender)
        self._note_decline(now, contest, sender, decline)
        if decline is Decline.TAKEN:
            self._wait(key, contest, now + contest.patience_s)
            return None
        return None if contest.open else self._call(now, key, contest)

    def handle_member_down(self, now: float, node_id: NodeId) -> list[Step]:
        """Take that a member seems gone: it will not bid. O(contests)."""
        steps = []
        for key in [key for key, one in self._contests.items() if node_id in one.open]:
            contest = self._contests[key]
            contest.open.discard(node_id)
            self._note_decline(now, contest, node_id, GONE)
            if not contest.open:
                steps.append(self._call(now, key, contest))
        return steps

    def close(self, now: float, key: bytes, winner: NodeId | None) -> Story | None:
        """End a contest: somebody has the task (`winner`), or it is no contest's any more. Return how it went."""
        contest = self._contests.pop(key, None)
        self._timers.cancel(key)
        if contest is None:
            return None
        story = contest.story
        story.winner, story.is_over = winner, True
        if winner is not None:
            self.won += 1
            story.after_s = now - story.at
            is_first = story.rounds == 1 and story.after_s <= story.first_s
            story.is_first_window = is_first
            self._note_grant(story, winner)
        self.stories.append(story)
        return story

    def handle_timeout(self, now: float) -> list[Step]:
        """Call the next where nobody has taken a task in time."""
        return [self._call(now, key, self._contests[key]) for key in self._timers.take_due(now)]

    def check_invariants(self) -> None:
        """Raise AssertionError if a contest would never be looked at again."""
        assert set(self._contests) == set(self._timers)

    # Inside.

    def _note_decline(
        self, now: float, contest: Contest, node_id: NodeId, decline: Decline
    ) -> None:
        contest.story.said.append(Said(now - contest.story.at, node_id, None, (), decline))

    def _wait(self, key: bytes, contest: Contest, until: float) -> None:
        contest.until = max(contest.until, until)
        self._timers.set(key, contest.until)

    def _note_grant(self, story: Story, winner: NodeId) -> None:
        bid_s = next((one.after_s for one in story.said if one.is_bid_of(winner)), None)
        if bid_s is None or story.after_s is None:
            return
        grant_s = story.after_s - bid_s
        if self._grants is None:
            self._grants = RoundTrip.first(grant_s)
        else:
            self._grants.measure(grant_s)

    def _call(self, now: float, key: bytes, contest: Contest) -> Step:
        """Call the next ring; a contest with nobody left is given up, and closed."""
        story, round_number = contest.story, contest.story.rounds
        size = RINGS[round_number] if round_number < len(RINGS) else CALLED_MAX
        ring = [contest.left.popleft() for _ in range(min(size, len(contest.left)))]
        if not ring:
            self.close(now, key, None)
            return Step(key, None)
        story.rounds += 1
        story.called += [(one.called.node_id, one.fitness) for one in ring]
        contest.open = {one.called.node_id for one in ring}
        contest.called |= contest.open
        # The last of them has spoken by then, and whoever spoke has its grant.
        contest.until = now + wait_s(story.window_s, len(ring), LAST) + contest.patience_s
        if story.rounds == 1:
            story.first_s = contest.until - now
        self._timers.set(key, contest.until)
        return Step(
            key,
            Call(
                offer=contest.offer,
                round=min(story.first_round + round_number, ROUND_MAX),
                window_us=max(1, round(story.window_s * 1e6)),
                patience_us=max(1, round(contest.patience_s * 1e6)),
                called=tuple(one.called for one in ring),
                weights=contest.weights,
            ),
        )
