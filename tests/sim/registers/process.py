"""A process of a host, which votes on a register and asks for it.

A process asks for the register until it knows the end of it: it creates it, claims it, renews, writes down
how far it is, and writes its result. All of that goes through the machines of `mesh.registers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from mesh.core.ballot import NO_BALLOT, Ballot
from mesh.core.ids import NodeId
from mesh.registers.asker import SET_ASIDE
from mesh.registers.numbers import Numbers
from mesh.registers.outbox import Commit, Message, Outbox, Post
from mesh.registers.proposal import Chosen, Proposal, Reason, Refused
from mesh.registers.trust import Hold, Trust
from mesh.registers.voter import Forget, Step, Store, StoreEpoch
from mesh.registers.writer import Writer
from mesh.wire.register_messages import (
    Accept,
    Accepted,
    Answer,
    Outbid,
    Owner,
    Prepare,
    Read,
    Renew,
    Renewed,
    Request,
    Standing,
    Value,
)
from tests.sim.registers.hosts import TICK_S
from tests.sim.registers.slow_disk import SlowDisk
from tests.sim.registers.surroundings import Surroundings

KEY: Final = b"register"
EPOCH: Final = 1
PATIENCE_S: Final = 2.0
"""So long a proposal may take before its asker tries another ballot."""


class _Writing(SlowDisk):
    """One session's way to its disk, under the judge's eyes."""

    def __init__(self, around: Surroundings, committed: Callable[[int], None]) -> None:
        super().__init__(around.rng, around.later, committed)
        self._around = around

    def _apply(self, commit: Commit) -> None:
        around, disk = self._around, self._around.disk
        for key, record in commit.records:
            disk.records[key] = record
            around.judge.committed(around.own, record)
        disk.numbers.update(commit.numbers)


class Process:
    """One session of a host."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._rng = around.rng
        habits, disk = around.habits, around.disk
        disk.boot += 1
        self.boot = disk.boot
        now = around.clock()
        kept = disk.records.items() if habits.remembers else ()
        self._voter = habits.voter(around.own, around.times, epoch=EPOCH, now=now, records=kept)
        self._numbers = Numbers(disk.numbers.get(SET_ASIDE, 0) if habits.keeps_numbers else 0)
        # Nothing is its own here: what it sends to itself takes as long as what it sends to others.
        self._outbox = Outbox(NodeId(0), self._deliver_nothing)
        self._writing = _Writing(around, self._on_committed)
        self._above = 0
        self._rounds = 1000 * self.boot if habits.rounds_differ else 0
        self._next_ask = now + self._rng.uniform(0, 1)
        self._give_up_at = 0.0
        self._creates = self._rng.random() < 0.5
        self._proposal: Proposal | None = None
        self._creating: set[NodeId] | None = None
        self._created: Value | None = None
        self._known_before = 0
        self.knows_end = False
        self._forget_lease()

    @property
    def who(self) -> tuple[NodeId, int]:
        return self._around.own, self.boot

    @property
    def is_owner(self) -> bool:
        return self._trust is not None

    def handle(self, sender: NodeId, message: object) -> None:
        """Take a message: a request for the voter, or an answer for the asker."""
        self._hear(sender, message)
        self._carry_out()

    def _hear(self, sender: NodeId, message: object) -> None:
        now = self._around.clock()
        if isinstance(message, Prepare | Accept | Renew | Read):
            self._vote(now, sender, message)
            return
        assert isinstance(message, Answer)
        if isinstance(message, Renewed):
            self._on_renewed(now, sender, message)
            return
        if isinstance(message, Accepted) and message.ballot.n == 0:
            self._on_created(sender)
        if self._proposal is not None:
            self._send(self._proposal.handle(now, sender, message))
            self._look_at_result(now)
        if self._writer is not None and isinstance(message, Accepted | Outbid):
            self._writer.handle(sender, message)
            self._look_at_writer()

    def tick(self) -> None:
        """Do what is due."""
        self._act()
        self._carry_out()

    def _act(self) -> None:
        now = self._around.clock()
        if self._trust is not None:
            self._own(now)
        elif self._proposal is not None:
            self._send(self._proposal.handle_timeout(now))
            if now >= self._give_up_at:
                self._proposal = None
                self._next_ask = now + self._rng.uniform(0, 0.5)
        elif now >= self._next_ask and (not self.knows_end or self._rng.random() < 0.02):
            self._ask(now)

    def end(self) -> None:
        """Crash."""
        self._writing.end()
        self._around.judge.let_go(self.who)

    # Voting.

    def _vote(self, now: float, sender: NodeId, request: Request) -> None:
        steps = self._voter.handle(now, request)
        self._voter.check_invariants()
        self._store(steps, sender)

    def _store(self, steps: Iterable[Step], asker: NodeId) -> None:
        """Store, then answer."""
        for step in steps:
            assert not isinstance(step, StoreEpoch | Forget)
            if isinstance(step, Store):
                self._outbox.store(step.key, step.record)
            else:
                self._send([(asker, step)])

    def _send(self, sent: Iterable[tuple[NodeId, Message]]) -> None:
        for to, message in sent:
            self._outbox.send(to, message, waits=self._around.habits.answers_wait)

    def _carry_out(self) -> None:
        for output in self._outbox.take():
            if isinstance(output, Commit):
                self._writing.put(output)
            elif isinstance(output, Post):
                for message in output.messages:
                    self._around.send(output.to, message)

    def _on_committed(self, number: int) -> None:
        self._outbox.committed(number)
        self._carry_out()

    def _deliver_nothing(self, now: float, message: Message) -> None:
        raise AssertionError(message)

    # Asking.

    def _ask(self, now: float) -> None:
        around, habits = self._around, self._around.habits
        own, body = around.own, b"made by %d in %d" % (around.own, self.boot)
        may_create = own == around.roster[0] or not habits.first_alone
        if self._creates and may_create and self._create(now, Value(Standing.OPEN, body)):
            self._next_ask = now + self._rng.uniform(0.5, 1.5)
            return
        n, limit = self._numbers.take(self._above)
        if limit is not None:
            self._outbox.set_aside({SET_ASIDE: limit})
        owner = Owner(own, self.boot)

        def change(found: Value | None) -> Value | None:
            if self._creates:
                return found or Value(Standing.OPEN, body)
            if found is None:
                return None
            return Value(Standing.LEASED, found.body.split(b",")[0], owner)

        self._proposal = habits.proposal(
            key=KEY,
            ballot=Ballot(1, EPOCH, n, own),
            boot=self.boot,
            voters=self._voters(),
            change=change,
        )
        self._known_before = around.judge.known_count
        self._give_up_at = now + PATIENCE_S
        self._send(self._proposal.start(now))

    def _voters(self) -> tuple[NodeId, ...]:
        around = self._around
        if around.habits.asks_roster:
            return around.roster
        seen = [node for node in around.all if node == around.own or self._rng.random() < 0.8]
        return tuple(seen[: len(around.roster)])

    def _create(self, now: float, value: Value) -> bool:
        steps = self._voter.create(now, KEY, 1, value)
        if steps is None:
            return False
        own, roster = self._around.own, self._around.roster
        accept = Accept(KEY, EPOCH, Ballot(1, EPOCH, 0, own), 0, value)
        self._creating, self._created = set(), value
        self._store(steps, own)
        self._send((voter, accept) for voter in roster if voter != own)
        return True

    def _on_created(self, sender: NodeId) -> None:
        if self._creating is None or self._created is None:
            return
        self._creating.add(sender)
        if 2 * len(self._creating) > len(self._around.roster):
            self._around.judge.told(self.who, self._created)
            self._creating, self._creates = None, False

    def _look_at_result(self, now: float) -> None:
        proposal = self._proposal
        if proposal is None or proposal.result is None:
            return
        self._proposal, result = None, proposal.result
        if isinstance(result, Refused):
            self._next_ask = now + self._rng.uniform(0.02, 0.3)
            if result.above != NO_BALLOT:
                self._above = max(self._above, result.above.n)
            if result.reason is Reason.UNCHANGED:
                self._around.judge.absent(self.who, self._known_before)
                self._creates = True
            return
        self._next_ask = now + self._rng.uniform(0.2, 1)
        self._creates = False
        self._around.judge.told(self.who, result.value)
        if result.value.standing is Standing.FINAL:
            self.knows_end = True
        elif result.value.owner == (self._around.own, self.boot):
            self._take(now, result)

    # Owning.

    def _forget_lease(self) -> None:
        self._trust: Trust | None = None
        self._writer: Writer | None = None
        self._value: Value | None = None
        self._is_granted = False
        self._work_left_s = self._rng.uniform(0.5, 20)
        self._renew_at = 0.0
        self._around.judge.let_go(self.who)

    def _take(self, now: float, chosen: Chosen) -> None:
        self._trust = self._around.habits.trust(chosen.ballot, self._around.times, chosen.sent_at)
        self._writer = Writer(KEY, chosen.ballot)
        self._value = chosen.value
        self._renew_at = now
        self._notice(now)

    def _notice(self, now: float) -> None:
        """Look at what may be done, and tell the judge."""
        trust, around = self._trust, self._around
        if trust is None:
            return
        hold = trust.hold(now)
        if hold is Hold.LOST:
            self._forget_lease()
            return
        if hold is Hold.SURE:
            around.judge.sure(
                around.true_time(now), self.who, trust.token, around.true_time(trust.trusted_until)
            )
        if not self._is_granted and (hold is Hold.SURE or not around.habits.heeds_hold):
            self._is_granted = True
            around.judge.granted(self.who, trust.token)

    def _own(self, now: float) -> None:
        self._notice(now)
        trust, writer, value = self._trust, self._writer, self._value
        if trust is None or writer is None or value is None:
            return
        if now >= self._renew_at:
            self._renew_at = now + self._around.times.renew_s
            self._rounds += 1
            voters = self._around.roster
            counted = voters if self._around.habits.counts_majority else voters[:1]
            trust.begin(now, self._rounds, EPOCH, counted)
            renew = Renew(EPOCH, self._rounds, ((KEY, trust.token),))
            self._send((voter, renew) for voter in voters)
        self._send(writer.handle_timeout(now))
        if trust.hold(now) is not Hold.SURE or value.standing is Standing.FINAL:
            return
        self._work_left_s -= TICK_S
        if self._work_left_s <= 0:
            final = b"%s, done by %d in %d" % (value.body.split(b",")[0], *self.who)
            self._write(now, Value(Standing.FINAL, final))
        elif self._rng.random() < 0.03:
            self._write(now, replace(value, body=value.body + b", on"))

    def _write(self, now: float, value: Value) -> None:
        assert self._writer is not None
        self._value = value
        self._send(self._writer.write(now, value, EPOCH, self._around.roster))

    def _look_at_writer(self) -> None:
        writer, value = self._writer, self._value
        if writer is None or value is None:
            return
        if writer.is_settled and writer.seq:
            self._around.judge.told(self.who, value)
            if value.standing is Standing.FINAL:
                self.knows_end = True
                self._forget_lease()
        elif writer.fenced_by != NO_BALLOT:
            self._forget_lease()

    def _on_renewed(self, now: float, sender: NodeId, answer: Renewed) -> None:
        trust = self._trust
        if trust is None:
            return
        if isinstance(trust, HasClock):
            trust.now = now
        if 0 in answer.renewed:
            trust.renewed(sender, answer.round, answer.epoch)
        for _, higher in answer.lost:
            trust.outbid(higher)
        self._notice(now)


class HasClock(Trust):
    """A wrong one, which looks at the clock when it is answered."""

    now = 0.0
