"""A steward's contests: whom to call for a task, how long a rank waits, and what came of it.

    contested: its queue asks for it, its home declined or is gone, it was lost, or let go
        │
        ▼                                   fitness, as far as this voter knows it, by the queue's own weights
    candidates with room ──by fitness, then by rendezvous──► Caller ──Call──► the first four, the next, …
                                                               ▲ bids, declines, the claim that was seen

Source: our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from mesh.contest.caller import RINGS, Caller, Candidate, Story
from mesh.contest.caller import Step as Move
from mesh.contest.estimate import expected, in_order, wants_of
from mesh.contest.histories import Histories
from mesh.contest.known import KnownOf
from mesh.contest.vitals import Listener
from mesh.contest.weighing import weights_of
from mesh.contest.window import Window, base_s, delay_s
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveMember, LiveView
from mesh.tasks.config import TasksConfig
from mesh.tasks.contest_json import told as contest_told
from mesh.tasks.effects import Step
from mesh.wire.contest_messages import (
    HISTORY_MAX,
    RTT_US_MAX,
    AskContest,
    Bid,
    Called,
    ContestTold,
    Weighing,
)
from mesh.wire.task_messages import Decline, Offer

WINDOW_SHARE_MAX: Final = 0.25
"""No window is longer than this part of the longest contest: the first four have spoken then in a third of its time."""

GRANT_TRIPS: Final = 3
"""Round trips from a bid to where its grant is seen: two of the claim, and one for what is on its way before and after."""

FAR_FADES: Final = 0.99
"""By so much, each contest, the farthest that was called of late counts less."""

WeighingOf: TypeAlias = Callable[[float, str], Weighing]
"""Returns the weights that are set for a queue, as they are known now."""


def by_default(_now: float, _queue: str) -> Weighing:
    """Weigh all queues by the default weights."""
    return ()


class Calling:
    """All contests of one steward. What returns steps returns calls to be sent; `given_up` collects whom nobody took."""

    def __init__(
        self,
        view: LiveView,
        known_of: KnownOf,
        config: TasksConfig,
        unix_offset_s: float = 0.0,
        weighing_of: WeighingOf = by_default,
    ) -> None:
        self.unix_offset_s = unix_offset_s
        self._view = view
        self._weighing_of = weighing_of
        self._known_of = known_of
        self.caller = Caller(config.grant_s)
        """Its contests, for whoever looks at them."""

        self.window = Window()
        self.listener = Listener()
        """What members tell of themselves while contests are held here, and with their renewals."""

        self.histories = Histories()
        """How tasks of each queue fared on each member, as far as this voter saw them end."""

        self._claim_s = config.claim_timeout_s
        self._window_s_max = WINDOW_SHARE_MAX * config.contest_s_max
        self._far_s = 0.0  # the round trip to the farthest that was called of late
        self.given_up: list[bytes] = []
        """Tasks that all who were called have let pass; whoever takes them clears it."""

        self.story = self.caller.story
        self.was_called = self.caller.was_called

    def __contains__(self, key: bytes) -> bool:
        return key in self.caller

    def __len__(self) -> int:
        return len(self.caller)

    def open(
        self, now: float, key: bytes, offer: Offer, members: Iterable[LiveMember]
    ) -> tuple[list[Step], NodeId | None]:
        """Call those of `members`, which fit and may have a slot, that seem fittest. O(n log n).

        Returns what to send, and who is expected to win; None: nobody was called.
        """
        self.listener.use(now)
        found: dict[NodeId, Candidate] = {}
        wants, weighing = wants_of(offer), self._weighing_of(now, offer.queue)
        weights = weights_of(weighing)
        for member in members:
            called = self._called(now, member, offer.queue)
            fitness = expected(member.meta, called, wants, weights)
            if fitness is not None:
                found[member.node_id] = Candidate(called, fitness)
        scores = {node_id: one.fitness for node_id, one in found.items()}
        candidates = [found[node_id] for node_id in in_order(scores, wants.key)]
        window_s = self._window_s(candidates)
        least_s = GRANT_TRIPS * self._far_s
        move = self.caller.open(
            now, key, offer, candidates, window_s=window_s, least_s=least_s, weights=weighing
        )
        winner = candidates[0].called.node_id if candidates else None
        return self._carry_out([move]), winner

    def handle_bid(self, now: float, key: bytes, sender: NodeId, bid: Bid) -> None:
        """Take a bid."""
        self.caller.handle_bid(now, key, sender, bid)

    def handle_answer(self, now: float, key: bytes, sender: NodeId, decline: Decline) -> list[Step]:
        """Take what a called member answers: that it claims, or why it does not bid."""
        move = self.caller.handle_answer(now, key, sender, decline, self._claim_s)
        return self._carry_out([] if move is None else [move])

    def handle_member_down(self, now: float, node_id: NodeId) -> list[Step]:
        """Take that a member seems gone. O(contests)."""
        self.listener.forget(node_id)
        return self._carry_out(self.caller.handle_member_down(now, node_id))

    def close(self, now: float, key: bytes, winner: NodeId | None) -> Story | None:
        """End a contest, and learn from it if somebody won it."""
        story = self.caller.close(now, key, winner)
        if story is not None and winner is not None and len(story.called) > 1:
            self.window.note(story.bids, is_first_window=story.is_first_window)
        return story

    def tell(self, asked: AskContest) -> ContestTold:
        """Return how the latest contest for a task went, if one was held here and is remembered."""
        story = self.caller.story(asked.task_id)
        found = None if story is None else contest_told(story, self.unix_offset_s)
        return ContestTold(asked.task_id, found)

    def handle_timeout(self, now: float) -> list[Step]:
        """Call the next where nobody has taken a task in time; ask members of their vitals."""
        steps = self._carry_out(self.caller.handle_timeout(now))
        due = self.listener.next_deadline()
        if due is not None and now >= due:
            steps += self.listener.ask(now, [one.node_id for one in self._view.members()])
        return steps

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something, or a member is to be asked."""
        dues = (self.caller.next_deadline(), self.listener.next_deadline())
        return min((at for at in dues if at is not None), default=None)

    def check_invariants(self) -> None:
        """Raise AssertionError if a contest would be forgotten."""
        self.caller.check_invariants()
        self.histories.check_invariants()

    # Inside.

    def _called(self, now: float, member: LiveMember, queue: str) -> Called:
        """Return all that is known of a member: what it told or what acks said of it, whichever is younger.

        Acks do not say how late its loop is. Of its slots the queue knows more: what was offered and claimed since.
        """
        node_id = member.node_id
        known, told = self._known_of(node_id), self.listener.told(node_id)
        busy_pct, lag_ms, age_s = member.busy_pct, None, known.age_s(now)
        if told is not None and told.age_s(now) <= age_s:
            busy_pct, lag_ms, age_s = told.busy_pct, told.lag_ms, told.age_s(now)
        rtt_s = known.rtt_s if known.rtt_s is not None or told is None else told.rtt_s
        return Called(
            node_id=node_id,
            free_slots=min(member.free_slots, 0xFFFF),
            busy_pct=min(busy_pct, 0xFF),
            age_ds=round(10 * age_s),
            lag_ms=lag_ms,
            history=round(HISTORY_MAX * self.histories.share(now, queue, node_id)),
            rtt_us=None if rtt_s is None else min(round(rtt_s * 1e6), RTT_US_MAX),
        )

    def _window_s(self, candidates: list[Candidate]) -> float:
        """Return c for these: twice the delay to the farthest that is called first, longer where all are loaded."""
        first = [one.called for one in candidates[: RINGS[0]]]
        rtts = [rtt for one in first if (rtt := self._rtt_s(one.node_id)) is not None]
        self._far_s = max(self._far_s * FAR_FADES, *rtts, 0.0)
        # Who is not measured yet may be as far as anybody that was of late.
        far_s = self._far_s if len(rtts) < len(first) else max(rtts, default=0.0)
        delay = delay_s(far_s)
        load = sum(one.busy_pct for one in first) / (100 * max(1, len(first)))
        least_s, grant_s = base_s(delay, load), self.caller.grant_s
        # What a window spares is claims in vain: it is not widened beyond what one of them takes.
        widest_s = self._window_s_max if grant_s is None else max(least_s, grant_s)
        return min(self.window.c_s(least_s), widest_s, self._window_s_max)

    def _rtt_s(self, node_id: NodeId) -> float | None:
        """Return the longest round trip to a member that is to be reckoned with; None: none was measured."""
        measured = self._known_of(node_id).rtt_high_s
        if measured is not None:
            return measured
        told = self.listener.told(node_id)
        return None if told is None else told.rtt_s

    def _carry_out(self, moves: Iterable[Move]) -> list[Step]:
        steps: list[Step] = []
        for key, call in moves:
            if call is None:
                self.given_up.append(key)
                # Nobody had it: where no bid was made, no width of the window would have helped.
                self.window.note(0, is_first_window=False)
            else:
                steps += [(one.node_id, call) for one in call.called]
        return steps
