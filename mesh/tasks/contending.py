"""A member's side of contests: what it makes of itself and of the others called, and the bid when its time has come.

    Call ── cannot take it now ─► declined, to the caller
         └─ fitness, of itself and of the others ─► rank ─► Bidder waits ─► its turn:
                still able ─► Bid to all called, and the claim ── granted ─► Settled to all called
                not any more ─► declined

Source: our own.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from mesh.contest.bidder import Bidder, Turn
from mesh.contest.estimate import COMPARED, compared_fitness, estimate, wants_of
from mesh.contest.fitness import Circumstances, Fitness, Weights
from mesh.contest.known import Known
from mesh.contest.rank import estimate_rank
from mesh.contest.vitals import Teller
from mesh.contest.window import wait_s
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveView, Wants
from mesh.registers.asker import Done
from mesh.tasks.claiming import Claiming
from mesh.tasks.effects import Step
from mesh.wire.contest_messages import SCORE_MAX, AskVitals, Bid, Call, Called, Settled
from mesh.wire.records import Card


class Contending:
    """All contests in which this node is called."""

    def __init__(
        self,
        *,
        claiming: Claiming,
        card: Callable[[], Card],
        view: LiveView,
        load_pct: Callable[[], int],
        rng: random.Random,
        weights: Weights = COMPARED,
    ) -> None:
        """`load_pct` tells how busy this host is, in hundredths of all its processors."""
        self._claiming = claiming
        self._card = card
        self._view = view
        self._load_pct = load_pct
        self._rng = rng
        self._weights = weights
        self._bidder = Bidder()
        self._teller = Teller()
        self.check_invariants = self._bidder.check_invariants

    def __len__(self) -> int:
        return len(self._bidder)

    @property
    def dropped(self) -> int:
        """Calls that were not heard, for want of room."""
        return self._bidder.dropped

    def handle_message(
        self, now: float, sender: NodeId, message: Call | Bid | Settled | AskVitals
    ) -> list[Step]:
        """Take a call, another's bid, that a contest is over, or that a voter wants to hear of this node."""
        match message:
            case Call():
                return self._on_call(now, sender, message)
            case Bid():
                self._bidder.handle_bid(now, sender, message)
            case Settled():
                self._bidder.handle_settled(now, sender, message)
            case AskVitals():
                self._teller.handle(now, sender, message)
        return []

    def handle_member_down(self, now: float, node_id: NodeId) -> None:
        """Take that a member seems gone: nobody waits for its grant. O(contests here)."""
        self._bidder.handle_member_down(now, node_id)

    def handle_timeout(self, now: float) -> list[Step]:
        """Bid where the time has come."""
        return [step for turn in self._bidder.handle_timeout(now) for step in self._bid(now, turn)]

    def handle_done(self, now: float, done: Done) -> list[Step]:
        """Take how a claim has ended; whoever was called with this node hears of a grant."""
        assert isinstance(done.tag, tuple)
        claim = self._claiming.claim_of(done.tag[1])
        steps = self._claiming.handle_done(now, done)
        if claim is None or self._claiming.is_claiming(claim[0]):
            return steps  # it is asked again
        task_id, attempt = claim
        rivals = self._rivals(task_id)
        self._bidder.end(task_id)
        if not self._claiming.holds(task_id):
            return steps
        return [*((one, Settled(task_id, attempt)) for one in rivals), *steps]

    def tell(self, now: float) -> list[Step]:
        """Return what is to be told of this node to whoever wants to hear. Call it after every input."""
        return list(self._teller.step(now, self._claiming.free_slots, self._load_pct()))

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` or `tell` has something."""
        dues = (self._bidder.next_deadline(), self._teller.next_deadline())
        return min((at for at in dues if at is not None), default=None)

    # Inside.

    def _on_call(self, now: float, caller: NodeId, call: Call) -> list[Step]:
        offer = call.offer
        if not self._bidder.heeds(caller, call):
            return []
        declined = self._claiming.decline(caller, offer, is_called=True)
        if declined:
            return declined
        wants = wants_of(offer)
        own = self._fitness(wants)
        if own is None:
            return []  # it could take it a moment ago, and cannot now: the caller hears of the others
        own_id, score = self._card().node_id, sent_score(own.score)
        others = {
            one.node_id: sent_score(found) / SCORE_MAX
            for one in call.called
            if one.node_id != own_id and (found := self._estimate(now, one, wants)) is not None
        }
        rank = estimate_rank(own_id, score / SCORE_MAX, others, wants.key)
        window_s = call.window_us / 1e6
        self._bidder.handle_call(
            now,
            caller,
            call,
            score=score,
            wait_s=wait_s(window_s, rank, self._rng.random()),
            again_s=wait_s(window_s, max(1, rank - 1), self._rng.random()),
        )
        return []

    def _bid(self, now: float, turn: Turn) -> list[Step]:
        offer = turn.call.offer
        own = self._fitness(wants_of(offer))
        steps = self._claiming.handle_message(now, turn.caller, offer)
        if own is None or not self._claiming.is_claiming(offer.task_id):
            self._bidder.end(offer.task_id)
            return steps
        bid = Bid(
            offer.task_id,
            offer.attempt,
            turn.call.round,
            sent_score(own.score),
            tuple(sorted((part.name, round(255 * part.value)) for part in own.parts)),
        )
        hearers = dict.fromkeys(self._rivals(offer.task_id))
        hearers[turn.caller] = None  # it counts the bids, its own too
        return [*((one, bid) for one in hearers), *steps]

    def _rivals(self, task_id: str) -> tuple[NodeId, ...]:
        return self._bidder.rivals(task_id, self._card().node_id)

    def _fitness(self, wants: Wants) -> Fitness | None:
        meta = self._card().meta
        free = self._claiming.free_slots
        circumstances = Circumstances(meta=meta, free_slots=free, cpu_pct=self._load_pct())
        return compared_fitness(wants, circumstances, self._weights)

    def _estimate(self, now: float, called: Called, wants: Wants) -> float | None:
        """Return what another that was called is expected to make of itself, by what its caller knows of it."""
        member = self._view.get(called.node_id)
        if member is None:
            return None
        as_called = replace(member, free_slots=called.free_slots, load_pct=called.load_pct)
        known = Known(heard_at=now - called.age_ds / 10)
        return estimate(now, as_called, wants, known, self._weights)


def sent_score(score: float) -> int:
    """Return a fitness of 0 to 1 as it is sent: ranks go by that, one's own too."""
    return round(min(max(score, 0.0), 1.0) * SCORE_MAX)
