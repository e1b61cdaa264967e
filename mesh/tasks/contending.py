"""A member's side of contests: what it makes of itself and of the others called, and the bid when its time has come.

    Call ── cannot take it now ─► declined, to the caller
         └─ fitness, of itself and of the others, by the caller's table and weights ─► rank ─► Bidder waits ─► its turn:
                still able ─► Bid to all called, and the claim ── granted ─► Settled to all called
                not any more ─► declined

Source: our own.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from mesh.contest.bidder import Bidder, BidTurn
from mesh.contest.estimate import expected, own_fitness, sent_score, wants_of
from mesh.contest.fitness import Fitness
from mesh.contest.rank import estimate_rank, held
from mesh.contest.vitals import Rides, Teller, Vitals
from mesh.contest.weighing import weights_of
from mesh.contest.window import wait_s
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveView
from mesh.registers.asker import Done
from mesh.tasks.claiming import Claiming
from mesh.tasks.effects import Step
from mesh.wire.contest_messages import (
    LAG_MS_MAX,
    SCORE_MAX,
    AskVitals,
    Bid,
    Call,
    Called,
    Settled,
    VitalsTold,
)
from mesh.wire.records import Card
from mesh.wire.register_messages import Renew


class Contending:
    """All contests in which this node is called."""

    def __init__(
        self,
        *,
        claiming: Claiming,
        card: Callable[[], Card],
        view: LiveView,
        busy_pct: Callable[[], int],
        lag_ms: Callable[[], int],
        rng: random.Random,
    ) -> None:
        """`busy_pct` tells how busy the processors are that this node may use, in hundredths; `lag_ms` how late its loop runs."""
        self._claiming = claiming
        self._card = card
        self._view = view
        self._busy_pct = busy_pct
        self._lag_ms = lag_ms
        self._rng = rng
        self._bidder = Bidder()
        self._teller = Teller()
        self._rides = Rides()
        self.check_invariants = self._bidder.check_invariants

    def __len__(self) -> int:
        return len(self._bidder)

    @property
    def counters(self) -> dict[str, int]:
        """What was not heard, for want of room: calls, and voters that wanted to be told."""
        return {"dropped_calls": self._bidder.dropped, "dropped_listeners": self._teller.dropped}

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

    @property
    def is_listened_to(self) -> bool:
        """Say whether somebody wants to be told."""
        return len(self._teller) > 0

    def tell(self, now: float) -> list[Step]:
        """Return what is to be told of this node to whoever wants to hear. Call it after every input."""
        return list(self._teller.step(now, self._vitals()))

    def ride(self, now: float, to: NodeId, messages: list[object]) -> None:
        """Add this node's vitals to what leaves for a voter of its leases, if they are to go along just now."""
        if any(type(one) is Renew for one in messages) and self._rides.is_due(now, to):
            messages.append(VitalsTold(*self._vitals()))

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
        own = self._fitness(call)
        if own is None:
            return []  # it could take it a moment ago, and cannot now: the caller hears of the others
        own_id, score = self._card().node_id, sent_score(own.score)
        placed = self._placed(call)
        ranked = held(score / SCORE_MAX, placed.get(own_id, score / SCORE_MAX))
        rank = estimate_rank(own_id, ranked, placed, offer.task_id)
        window_s = call.window_us / 1e6
        self._bidder.handle_call(
            now,
            caller,
            call,
            score=sent_score(ranked),
            wait_s=wait_s(window_s, rank, self._rng.random()),
            again_s=wait_s(window_s, max(1, rank - 1), self._rng.random()),
            placed=placed,
        )
        return []

    def _bid(self, now: float, turn: BidTurn) -> list[Step]:
        offer = turn.call.offer
        own = self._fitness(turn.call)
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

    def _vitals(self) -> Vitals:
        free, busy_pct = self._claiming.free_slots, min(self._busy_pct(), 255)
        return min(free, 0xFFFF), busy_pct, min(self._lag_ms(), LAG_MS_MAX)

    def _fitness(self, call: Call) -> Fitness | None:
        """Return how fit this node is just now; what its caller knows of it counts as for the others."""
        card = self._card()
        told = next((one for one in call.called if one.node_id == card.node_id), None)
        free, busy_pct, _ = self._vitals()
        return own_fitness(
            card.meta,
            told or Called(card.node_id, free, busy_pct, 0),
            wants_of(call.offer),
            weights_of(call.weights),
            free_slots=free,
            busy_pct=busy_pct,
        )

    def _placed(self, call: Call) -> dict[NodeId, float]:
        """Return what each of those called is expected to make of itself, by what its caller knows of it."""
        wants, weights = wants_of(call.offer), weights_of(call.weights)
        own = self._card()
        metas = {own.node_id: own.meta}
        for member in filter(None, (self._view.get(one.node_id) for one in call.called)):
            metas.setdefault(member.node_id, member.meta)
        found: dict[NodeId, float] = {}
        for one in call.called:
            meta = metas.get(one.node_id)
            score = None if meta is None else expected(meta, one, wants, weights)
            if score is not None:
                found[one.node_id] = score
        return found
