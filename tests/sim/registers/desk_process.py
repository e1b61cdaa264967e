"""A session with a desk: what its driver does with what the desk hands out, and when it wakes it up."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mesh.core.ids import NodeId
from mesh.registers.asker import SET_ASIDE
from mesh.registers.desk import Desk
from mesh.registers.keeping import Keeping
from mesh.registers.leases import LeaseTimes
from mesh.registers.numbers import Numbers
from mesh.registers.outbox import PURGED, Changed, Commit, Post
from mesh.registers.voter import Voter
from mesh.wire.register_messages import Owner
from mesh.wire.roster_messages import Roster
from tests.sim.registers.desk_client import Client
from tests.sim.registers.desk_disk import DeskDisk, Writing
from tests.sim.registers.desk_judge import DeskJudge
from tests.sim.registers.hosts import Host

DOMAIN: Final = 1

KeepingOf = Callable[[NodeId, Voter, Roster | None, random.Random, float], Keeping]
"""Makes what compares and purges for one session."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The proof that a session is over, as it comes to another host."""

    boot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskHabits:
    """The desk of a host, and what it does around it; the defaults are right."""

    desk: type[Desk] = Desk
    keeps_numbers: bool = True
    """Numbers that were set aside are not used by the next session."""

    voter: type[Voter] = Voter
    keeping: KeepingOf | None = None
    """What compares and purges; None: nobody does."""

    client: type[Client] = Client
    keeps_purges: bool = True
    """A number below which nothing begins any more is known to the next session."""


@dataclass(slots=True, kw_only=True)
class DeskSurroundings:
    """What a session lives with."""

    host: Host
    disk: DeskDisk
    judge: DeskJudge
    rng: random.Random
    roster: Roster
    times: LeaseTimes
    habits: DeskHabits
    send: Callable[[NodeId, object], None]
    tell_all: Callable[[object], None]
    """What comes to all other hosts, by another way than this network."""


class DeskProcess:
    """One session of a host."""

    def __init__(self, around: DeskSurroundings) -> None:
        self._around = around
        self._host, disk, rng = around.host, around.disk, around.rng
        now = self._host.clock()
        disk.boot += 1
        owner = Owner(disk.own, disk.boot)
        self._epoch, sealed = disk.epoch
        voter = around.habits.voter(
            disk.own,
            around.times,
            epoch=self._epoch,
            sealed=sealed,
            purged_n=disk.numbers.get(PURGED, 0) if around.habits.keeps_purges else 0,
            now=now,
            records=disk.records.items(),
        )
        knows_roster = rng.random() < 0.8
        self._desk = around.habits.desk(
            own_id=disk.own,
            boot=disk.boot,
            domain=DOMAIN,
            times=around.times,
            numbers=Numbers(disk.numbers.get(SET_ASIDE, 0) if around.habits.keeps_numbers else 0),
            rng=random.Random(rng.getrandbits(32)),
            voter=voter,
            roster=around.roster if knows_roster else None,
        )
        if around.habits.keeping is not None:
            seed = rng.getrandbits(32)
            self._desk.keeping = around.habits.keeping(
                disk.own, voter, self._desk.roster, random.Random(seed), now
            )
        self._boot = disk.boot
        self._client = around.habits.client(owner, self._desk, around.judge, rng, now)
        self._writing = Writing(disk, around.judge, rng, self._host.later, self._on_committed)
        self._is_over = False
        self._wakes_at: float | None = None
        if not knows_roster:
            self._host.later(rng.uniform(0, 2), lambda: self._do(self._desk.adopt, around.roster))

    @property
    def is_owner(self) -> bool:
        return self._client.is_owner

    def handle(self, sender: NodeId, message: object) -> None:
        """Take what comes from another host: messages to its desk, or a proof."""
        if isinstance(message, Ended):
            self._do(self._desk.end, sender, message.boot)
            return
        assert isinstance(message, tuple)
        for one in message:
            self._do(self._desk.handle, sender, one)

    def tick(self) -> None:
        """Let the client do what it wants."""
        self._do(self._client_ticks)

    def end(self) -> None:
        """Crash."""
        self._is_over = True
        self._writing.end()
        self._client.end()
        if self._around.rng.random() < 0.3:
            self._around.tell_all(Ended(self._boot))

    # Inside.

    def _client_ticks(self, now: float) -> None:
        self._client.tick(now)

    def _on_committed(self, number: int) -> None:
        self._do(self._desk.committed, number)

    def _do(self, act: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401 - of whatever is called
        """Do what is due, then this; carry out all that the desk hands out, and see when it is due again."""
        if self._is_over:
            return
        now = self._host.clock()
        if self._is_due(now):
            self._desk.handle_timeout(now)
            self._carry_out(now)
        act(now, *arguments)
        self._carry_out(now)
        self._desk.check_invariants()
        self._watch_work(now)
        self._set_alarm(now)

    def _is_due(self, now: float) -> bool:
        at = self._desk.next_deadline()
        return at is not None and now >= at

    def _carry_out(self, now: float) -> None:
        around, judge = self._around, self._around.judge
        while outputs := self._desk.take():
            for output in outputs:
                if isinstance(output, Commit):
                    self._writing.put(output)
                elif isinstance(output, Post):
                    for message in output.messages:
                        judge.leaves(around.disk, message)
                    around.send(output.to, output.messages)
                elif isinstance(output, Changed):
                    judge.changed(around.disk, output)
                else:
                    self._client.on(now, output)

    def _watch_work(self, now: float) -> None:
        host, judge = self._host, self._around.judge
        for key, token in self._client.held():
            who, until = (host.own, self._boot), self._desk.trusted_until(key)
            judge.working(who, key, now, until)
            if until is not None:
                judge.of[key].sure(host.true_time(now), who, token, host.true_time(until))

    def _set_alarm(self, now: float) -> None:
        at = self._desk.next_deadline()
        if at is None or (self._wakes_at is not None and self._wakes_at <= at):
            return
        self._wakes_at = at
        self._host.later(max(0.0, at - now) / self._host.rate + 1e-9, lambda: self._wake(at))

    def _wake(self, at: float) -> None:
        if self._wakes_at == at:
            self._wakes_at = None
            self._do(lambda now: None)
