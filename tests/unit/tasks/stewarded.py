"""A steward with a voter's records under it, and members that answer as a test says."""

from __future__ import annotations

import random

from mesh.contest.known import unknown
from mesh.core.address import Address
from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveMember, LiveView
from mesh.queues.settings import Strategy
from mesh.registers import leases
from mesh.registers.record import Record
from mesh.registers.voter import Voter
from mesh.tasks.body import task_key
from mesh.tasks.calling import Calling
from mesh.tasks.config import TasksConfig
from mesh.tasks.steward import Steward
from mesh.wire.contest_messages import AskVitals, Call
from mesh.wire.records import Metadata
from mesh.wire.register_messages import Accept, Renew, Standing, Value
from mesh.wire.roster_messages import Roster
from mesh.wire.task_messages import Decline, Offer, OfferAnswer
from mesh.wire.work_messages import SlotsFree
from tests.unit.tasks.made import NOON

OWN, SECOND, THIRD = NodeId(1), NodeId(2), NodeId(3)
TIMES = leases.local()
CONFIG = TasksConfig()


def member(node_id: NodeId, free: int = 1) -> LiveMember:
    declared = Metadata(pool="image", offers=(("gpu", 8),), slots=4)
    return LiveMember(
        node_id=node_id,
        boot=1,
        name=f"n{node_id}",
        address=Address("127.0.0.1", 1000 + node_id),
        meta=declared,
        free_slots=free,
    )


class Records:
    """What a steward reads of its desk."""

    def __init__(self, place: int | None = 0) -> None:
        self.voter = Voter(OWN, TIMES, epoch=1, now=0.0)
        self.at = place

    def seats(self, key: bytes) -> Roster:
        others = [SECOND, THIRD]
        if self.at is not None:
            others.insert(self.at, OWN)
        return Roster(1, tuple(others[:3]))

    def place(self, key: bytes) -> int | None:
        return self.at


class Stewarded:
    """A steward, the members it knows, and what it said."""

    def __init__(self, *members: LiveMember, place: int | None = 0) -> None:
        self.now = 0.0
        self.strategies: dict[str, Strategy] = {}
        self.records = Records(place)
        self.view = LiveView()
        for one in members:
            self.view.put(one)
        self.steward = Steward(
            own_id=OWN,
            desk=self.records,
            view=self.view,
            rng=random.Random(1),
            unix_offset_s=NOON,
            config=CONFIG,
            calling=Calling(self.view, unknown, CONFIG),
            strategy_of=lambda _now, queue: self.strategies.get(queue, Strategy.RENDEZVOUS),
        )
        self.offers: list[tuple[NodeId, Offer]] = []
        self.calls: list[tuple[NodeId, Call]] = []
        """Those of the offers that were calls."""

        self._n = 0

    def hold(self, task_id: str, value: Value, *, node: NodeId = OWN) -> Ballot:
        """Let the voter accept a value under a new ballot, and the steward hear of it."""
        self._n += 1
        ballot = Ballot(1, 1, self._n, node)
        self.write(task_id, ballot, 0, value)
        return ballot

    def write(self, task_id: str, ballot: Ballot, seq: int, value: Value) -> None:
        """Let the voter accept a write, and the steward hear of it."""
        key = task_key(task_id)
        self.records.voter.handle(self.now, Accept(key, 1, ballot, seq, value))
        self.steward.handle_changed(self.now, key, self.records.voter.record(key))
        self.look()

    def renew(self, task_id: str, ballot: Ballot) -> None:
        self.records.voter.handle(self.now, Renew(1, 1, ((task_key(task_id), ballot),)))

    def record(self, task_id: str) -> Record:
        return self.records.voter.record(task_key(task_id))

    def answer(self, node: NodeId, task_id: str, decline: Decline, free: int = 0) -> None:
        """Let a member answer the latest offer of a task."""
        offer = next(one for to, one in reversed(self.offers) if one.task_id == task_id)
        message = OfferAnswer(task_id, offer.attempt, decline, free)
        self.steward.handle_message(self.now, node, message)
        self.look()

    def hear_free(self, node: NodeId, free: int) -> None:
        self.steward.handle_message(self.now, node, SlotsFree(free))
        self.look()

    def lose(self, node: NodeId) -> None:
        """Let a member seem gone."""
        self.view.drop(node)
        self.steward.handle_member_down(self.now, node)
        self.look()

    def look(self) -> None:
        """Offer what can be offered."""
        for step in self.steward.offer_ready(self.now):
            self._note(step)
        self.steward.check_invariants()

    def wait(self, seconds: float) -> None:
        """Let the time pass, and do what is due meanwhile."""
        end = self.now + seconds
        while (due := self.steward.next_timeout()) is not None and due < end:
            self.now = max(self.now, due)
            for step in self.steward.handle_timeout(self.now):
                self._note(step)
            self.look()
        self.now = end

    def take(self) -> list[tuple[NodeId, str]]:
        """Return who was offered what since the last take."""
        taken = [(to, offer.task_id) for to, offer in self.offers]
        self.offers.clear()
        return taken

    def _note(self, step: object) -> None:
        assert isinstance(step, tuple)
        to, message = step
        if isinstance(message, AskVitals):
            return
        assert isinstance(message, Offer | Call)
        if isinstance(message, Call):
            self.calls.append((to, message))
        self.offers.append((to, message if isinstance(message, Offer) else message.offer))


def is_leased(value: Value | None) -> bool:
    return value is not None and value.standing is Standing.LEASED
