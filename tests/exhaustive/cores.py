"""The real machines, driven one step at a time from what is worth knowing of their state.

Time is abstract: all that counts of a clock is whether a timer has run out. So each step sets the machine up
anew, through what it offers to everybody, at the moment `NOW` of its node's clock, with a past in which just
those timers have run out that the schedule says have:

    voter    a lease that lives was armed a second ago; one that lapsed, T_voter + grace ago, to the tick
    owner    a round that has ended was sent T_owner ago or longer, to the tick; the others just now

Voters' and owners' clocks share nothing. What binds them is the schedule's rule, which is what LeaseTimes
guarantees: a lease lapses only when T_owner has passed since every round that had been sent when the voter
armed it, because it was armed after that, and T_voter by the fastest clock is longer than T_owner by the
slowest. (Times that break the inequality: it may lapse at any moment.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from mesh.core.ids import NodeId
from mesh.registers.leases import LeaseTimes, lan
from mesh.registers.proposal import Chosen, Proposal, Refused
from mesh.registers.record import Record
from mesh.registers.trust import Hold, Trust
from mesh.registers.voter import Step, Voter
from mesh.registers.writer import Writer
from mesh.wire.register_messages import (
    Accept,
    Accepted,
    Owner,
    Promised,
    Request,
    Standing,
    Value,
)
from tests.exhaustive.scenarios import EPOCH, KEY, VOTERS, Kind, Turn, created

NOW: Final = 0.0
_TICK_S: Final = 1 / 1024
_TIMES: Final = lan()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """The machines at work, and what their hosts do around them."""

    voter: type[Voter] = Voter
    proposal: type[Proposal] = Proposal
    trust: type[Trust] = Trust
    times: LeaseTimes = _TIMES

    remembers: bool = True
    """A voter that restarts goes on with its records."""

    answers_wait: bool = True
    """An answer leaves after everything that its voter was to store before it."""

    copies_wait: bool = True
    """So does an answer that stores nothing itself, as to a copy of what was stored before."""

    renewals_wait: bool = True
    """So does the answer to a renewal."""

    logs_first: bool = True
    """A first voter's own acceptance is durable before it asks the others."""

    heeds_hold: bool = True
    """What was chosen too late to be trusted is not taken for a grant."""

    lets_go: bool = True
    """Who asks under a new ballot trusts nothing it had under an old one."""

    rounds_differ: bool = True
    """No two rounds of a node have one number, whatever its boot."""

    proofs_name_boots: bool = True
    """A proof that a session is over says which."""

    @property
    def has_margin(self) -> bool:
        """Say whether a voter's timer outlasts the owner's trust whatever their clocks' rates."""
        fastest, slowest = 1 + self.times.rho, 1 - self.times.rho
        return self.times.voter_s / fastest >= self.times.owner_s / slowest


class VoterStep(NamedTuple):
    """What a voter is after a step, and what comes out of it."""

    memory: Record | None
    is_live: bool
    is_armed_anew: bool
    steps: tuple[Step, ...]


Proofs = tuple[tuple[NodeId, int], ...]
"""What a voter was shown: node, and the latest of its boots that is over."""


class VoterAtWork:
    """Steps of a real voter of one register."""

    def __init__(self, cores: Cores) -> None:
        self._cores = cores

    def handle(
        self, memory: Record | None, *, is_live: bool, proofs: Proofs, request: Request
    ) -> VoterStep:
        """Give it a request."""
        return self._do(memory, is_live, proofs, lambda voter: voter.handle(NOW, request))

    def create(self, memory: Record | None, turn: Turn, value: Value) -> VoterStep | None:
        """Let it create without asking; None: it knows that it must not."""
        voter = self._voter(memory, is_live=False, proofs=(), own=turn.node)
        steps = voter.create(NOW, KEY, turn.ballot.domain, value)
        return None if steps is None else self._outcome(voter, steps)

    def end(
        self, memory: Record | None, *, is_live: bool, proofs: Proofs, proof: tuple[NodeId, int]
    ) -> VoterStep:
        """Show it that a session is over."""

        def shown(voter: Voter) -> list[Step]:
            voter.end(*proof)
            return []

        return self._do(memory, is_live, proofs, shown)

    def restart(self, durable: Record | None) -> VoterStep:
        """Start it again with what it has stored."""
        kept = [] if durable is None or not self._cores.remembers else [(KEY, durable)]
        voter = self._cores.voter(VOTERS[0], self._cores.times, epoch=EPOCH, now=NOW, records=kept)
        return self._outcome(voter, [])

    # Inside.

    def _do(
        self,
        memory: Record | None,
        is_live: bool,
        proofs: Proofs,
        act: Callable[[Voter], list[Step]],
    ) -> VoterStep:
        voter = self._voter(memory, is_live=is_live, proofs=proofs, own=VOTERS[0])
        return self._outcome(voter, act(voter))

    def _voter(self, memory: Record | None, *, is_live: bool, proofs: Proofs, own: NodeId) -> Voter:
        times = self._cores.times
        ago = 1.0 if is_live else times.voter_s + times.grace_s
        kept = [] if memory is None else [(KEY, memory)]
        voter = self._cores.voter(own, times, epoch=EPOCH, now=NOW - ago, records=kept)
        for proof in proofs:
            voter.end(*proof)
        voter._armed.clear()
        if memory is not None and memory.is_leased:
            voter._arm(NOW - ago, KEY)
        return voter

    def _outcome(self, voter: Voter, steps: list[Step]) -> VoterStep:
        voter.check_invariants()
        memory = dict(voter).get(KEY)
        is_armed_anew = voter._armed.get(KEY) == NOW + self._cores.times.voter_s
        is_live = voter.remaining_s(NOW, KEY) is not None
        return VoterStep(memory, is_live, is_armed_anew, tuple(steps))


class AskerAtWork:
    """Steps of the real proposal, trust and writer of one turn."""

    def __init__(self, cores: Cores, place: int, turn: Turn) -> None:
        self._cores = cores
        self._place = place
        self._turn = turn
        self._owner = Owner(turn.node, turn.boot)
        self._led_to: dict[Accept, tuple[Promised, Promised]] = {}
        self._holds: dict[tuple[Accept, Times, int | None], Hold] = {}

    def change(self, found: Value | None) -> Value | None:
        """Return what this asker writes in place of what it found."""
        if self._turn.kind is Kind.CLAIM:
            return None if found is None else Value(Standing.LEASED, found.body, self._owner)
        return created(self._place) if found is None else found

    def number(self, round_: int) -> int:
        """Return by what number a round is known."""
        return round_ + (100 * self._turn.boot if self._cores.rounds_differ else 0)

    def ask(self, answers: tuple[Promised, Promised]) -> Accept | Refused:
        """Let it read a majority of promises."""
        proposal = self._asked(NOW, answers)
        result = proposal.result
        if isinstance(result, Refused):
            return result
        sent = proposal._accept
        assert sent is not None
        self._led_to.setdefault(sent, answers)
        return sent

    def hold(self, accept: Accept, times: Times) -> Hold:
        """Say what it may do now."""
        return self.hear(accept, times, None)

    def hear(self, accept: Accept, times: Times, round_: int | None) -> Hold:
        """Let it read that a majority renewed its lease in a round; say what it may do then."""
        key = (accept, times, round_)
        if key not in self._holds:
            trust = self._trust(accept, times)
            for voter in () if round_ is None else VOTERS[:2]:
                trust.renewed(voter, self.number(round_ or 0), EPOCH)
            self._holds[key] = trust.hold(NOW)
        return self._holds[key]

    def complete(self, accept: Accept, times: Times) -> Accept:
        """Let it write its result."""
        writer = Writer(KEY, accept.ballot)
        final = Value(Standing.FINAL, accept.value.body + b", done by turn %d" % self._place)
        (_, written), *_ = writer.write(NOW, final, EPOCH, VOTERS)
        return written

    def is_settled(self, done: Accept) -> bool:
        """Let it read that a majority has its result."""
        writer = Writer(KEY, done.ballot)
        writer.write(NOW, done.value, EPOCH, VOTERS)
        for voter in VOTERS[:2]:
            writer.handle(voter, Accepted(KEY, EPOCH, done.ballot, done.seq))
        return writer.is_settled

    def chosen(self, accept: Accept, sent_at: float) -> Chosen:
        """Let it read that a majority has accepted what it wrote."""
        proposal = self._asked(sent_at, self._led_to[accept])
        for voter in VOTERS[:2]:
            proposal.handle(NOW, voter, Accepted(KEY, EPOCH, accept.ballot, accept.seq))
        assert isinstance(proposal.result, Chosen)
        return proposal.result

    # Inside.

    def _asked(self, now: float, answers: tuple[Promised, Promised]) -> Proposal:
        turn = self._turn
        proposal = self._cores.proposal(
            key=KEY, ballot=turn.ballot, boot=turn.boot, voters=VOTERS, change=self.change
        )
        proposal.start(now)
        for voter, answer in zip(VOTERS, answers, strict=False):
            proposal.handle(now, voter, answer)
        return proposal

    def _trust(self, accept: Accept, times: Times) -> Trust:
        """Return its trust as it is when it has lived through these times."""
        chosen = self.chosen(accept, self._sent_at(times, 0))
        trust = self._cores.trust(accept.ballot, self._cores.times, chosen.sent_at)
        for round_ in range(1, times.started):
            trust.begin(self._sent_at(times, round_), self.number(round_), EPOCH, VOTERS)
        if times.confirmed > 0:
            for voter in VOTERS[:2]:
                trust.renewed(voter, self.number(times.confirmed), EPOCH)
        return trust

    def _sent_at(self, times: Times, round_: int) -> float:
        if round_ < times.ended:
            return NOW - self._cores.times.owner_s - (times.ended - 1 - round_) * _TICK_S
        return NOW - (times.started - 1 - round_) * _TICK_S


class Times(NamedTuple):
    """An owner's rounds; round 0 is the grant, sent with the accept."""

    started: int
    ended: int
    """T_owner has passed since so many were sent; they end in the order in which they began."""

    confirmed: int
    """The latest that a majority answered while it could be trusted; 0: the grant at most."""
