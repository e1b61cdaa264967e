"""One seed: desks whose voters compare, ship and purge, through bad times in which registers have one life after another.

Trouble, clocks and network are those of the other worlds; besides, hosts are away or stopped for so long that
what they were about is purged, and made anew, when they come back.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from mesh.core.ids import NodeId
from mesh.registers.keeping import Keeping
from mesh.registers.leases import local
from mesh.registers.proposal import majority
from mesh.registers.record import Record
from mesh.registers.roster import FIRST, FULL
from mesh.registers.seating import Seating
from mesh.registers.upkeep import UpkeepTimes
from mesh.registers.voter import Voter
from mesh.wire.roster_messages import Roster
from tests.sim.registers.clockwork import Clockwork, Network
from tests.sim.registers.desk_client import Client
from tests.sim.registers.desk_disk import DeskDisk
from tests.sim.registers.desk_process import DeskHabits, DeskProcess, DeskSurroundings, KeepingOf
from tests.sim.registers.hosts import Host
from tests.sim.registers.trouble import Trouble
from tests.sim.registers.upkeep_judge import UpkeepJudge
from tests.sim.registers.world import TIGHT

BAD_S: Final = 150.0
"""Where registers are purged: time for some lives. In its first half all goes wrong that can."""

KEPT_BAD_S: Final = 30.0
"""Where they are kept."""

HEALED_S_MAX: Final = 200.0
"""What was late comes, a lease lapses, somebody claims and works (`desk_world.py`); then what differs is found within
two comparisons, and what is over is purged within some lives of a message: a voter may have been away."""

ABSENT_S: Final = (40.0, 80.0)
"""Long enough for what was written before to end, and to be purged where that is done wrongly."""

KEYS: Final = (b"task/a", b"task/b", b"task/c")
TIMES: Final = UpkeepTimes(compare_s=2, settle_s=2, message_life_s=18)
"""A message lives for 9 s at most, or as long as a host is stopped that is no voter."""


class Resubmitting(Client):
    """Makes a register anew when it was purged, until the world closes; then it only ends what is begun."""

    def tick(self, now: float) -> None:
        judge = self._judge
        assert isinstance(judge, UpkeepJudge)
        if not judge.is_closing:
            super().tick(now)
            return
        jobs = self._jobs
        for job in jobs.values():
            job.creates = False
        self._jobs = {
            key: job
            for key, job in jobs.items()
            if judge.lives_of[key].is_live or job.asks or job.token is not None
        }
        for key in self._jobs:
            self._jobs[key].knows_end = False
        super().tick(now)
        self._jobs = jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepHabits:
    """The machines of a host; the defaults are right."""

    desk: DeskHabits = DeskHabits(client=Resubmitting)  # noqa: RUF009 - frozen
    keeping: type[Keeping] = Keeping
    times: UpkeepTimes = TIMES


@dataclass(frozen=True, slots=True)
class UpkeepOutcome:
    """How a seed went."""

    fault: str
    lives: int
    """So many were purged, at one voter at least."""

    filled: int
    ended_s: float


class UpkeepWorld:
    """One run; `purges`: False where everything is kept, and has to become equal."""

    def __init__(self, seed: int, habits: UpkeepHabits, *, purges: bool) -> None:
        self._rng = rng = random.Random(seed)
        self._habits = habits
        self._purges = purges
        self._filled = 0
        self._times = rng.choice((TIGHT, local()))
        self._clockwork = Clockwork()
        nodes = tuple(NodeId(n + 1) for n in range(rng.choice((3, 4, 5))))
        voters = nodes[: rng.choice((1, 2, 3, 3, 3, 3, 4))]
        self._roster = Roster(FIRST, voters)
        self._idle = nodes[len(voters) :]
        keys = KEYS[: rng.choice((1, 2, 3))]
        self._disks = {node: DeskDisk(node, (FIRST * (node in voters), 0)) for node in nodes}
        seating = Seating(nodes[0], self._roster)
        self._judge = UpkeepJudge(
            dict.fromkeys(keys, majority(min(FULL, len(voters)))),
            {key: {one: self._disks[one] for one in seating.seats(key).voters} for key in keys},
        )
        self._network = Network(self._clockwork, rng, self._deliver)
        self._keepings: list[Keeping] = []
        rho = self._times.rho
        self._hosts = {node: Host(node, self._clockwork, rng, rho, self._begin) for node in nodes}
        for host in self._hosts.values():
            self._clockwork.after(rng.uniform(0, 0.5), host.start)

    def run(self) -> UpkeepOutcome:
        judge, clockwork = self._judge, self._clockwork
        trouble = Trouble(clockwork, self._network, self._hosts, self._rng, self._times.voter_s)
        bad_s = BAD_S if self._purges else KEPT_BAD_S
        trouble.begin(bad_s / 2 if self._purges else bad_s)
        if self._purges:
            self._plan_absences()
        clockwork.run(bad_s, lambda: bool(judge.fault))
        trouble.end()
        judge.is_closing = True
        clockwork.run(bad_s + HEALED_S_MAX, lambda: bool(judge.fault) or self._is_over())
        fault = judge.fault or ("" if self._is_over() else self._unfinished())
        lives = sum(one.lives for one in judge.lives_of.values())
        filled = sum(one.repair.filled for one in self._keepings)
        return UpkeepOutcome(fault, lives, filled, clockwork.now)

    # Inside.

    def _is_over(self) -> bool:
        lives = self._judge.lives_of.values()
        return all(one.is_gone if self._purges else one.is_equal for one in lives)

    def _unfinished(self) -> str:
        held = {
            key: {disk.own: disk.record(key) for disk in self._disks.values()}
            for key, one in self._judge.lives_of.items()
            if not (one.is_gone if self._purges else one.is_equal)
        }
        return f"it did not come to its end: {held}"

    def _plan_absences(self) -> None:
        """Cut off, or stop, who does not vote for long; and a voter now and then."""
        rng = self._rng
        for node in self._idle:
            for _ in range(rng.choice((1, 2, 3))):
                self._clockwork.after(rng.uniform(0, BAD_S / 2), self._absence(node))
        for _ in range(rng.choice((0, 1, 2))):
            self._clockwork.after(
                rng.uniform(0, BAD_S / 2), self._absence(rng.choice(self._roster.voters))
            )

    def _absence(self, node: NodeId) -> Callable[[], None]:
        rng, cuts = self._rng, self._network.cuts
        seconds, is_cut = rng.uniform(*ABSENT_S), rng.random() < 0.7
        both = {pair for other in self._hosts for pair in ((node, other), (other, node))}

        def begin() -> None:
            if is_cut:
                cut(self._clockwork.now + seconds)
            else:
                self._hosts[node].pause(seconds)

        def cut(until: float) -> None:
            """Cut it off, again and again: another cut that heals would end this one."""
            if self._clockwork.now < until:
                cuts.update(both)
                self._clockwork.after(0.5, lambda: cut(until))
            else:
                cuts.difference_update(both)

        return begin

    def _begin(self, host: Host) -> DeskProcess:
        around = DeskSurroundings(
            host=host,
            disk=self._disks[host.own],
            judge=self._judge,
            rng=self._rng,
            roster=self._roster,
            times=self._times,
            habits=replace(self._habits.desk, keeping=self._keeping),
            send=lambda to, message: self._network.send(host.own, to, message),
            tell_all=lambda message: None,
        )
        return DeskProcess(around)

    def _keeping(
        self, own: NodeId, voter: Voter, roster: Roster | None, rng: random.Random, now: float
    ) -> Keeping:
        keep_s = self._rng.uniform(0, 3)

        def expires(key: bytes, record: Record) -> float | None:
            return now + keep_s if self._purges else None

        keeping = self._habits.keeping(
            own,
            voter=voter,
            roster=roster,
            times=self._habits.times,
            expires=expires,
            rng=rng,
            now=now,
        )
        self._keepings.append(keeping)
        return keeping

    def _deliver(self, sender: NodeId, to: NodeId, message: object) -> None:
        self._hosts[to].deliver(sender, message)


def keeping(habits: UpkeepHabits) -> KeepingOf:
    """Return what makes those that compare and keep everything, for other worlds."""

    def made(
        own: NodeId, voter: Voter, roster: Roster | None, rng: random.Random, now: float
    ) -> Keeping:
        return habits.keeping(
            own,
            voter=voter,
            roster=roster,
            times=habits.times,
            expires=lambda key, record: None,
            rng=rng,
            now=now,
        )

    return made


def run(seed: int, habits: UpkeepHabits, *, purges: bool = True) -> UpkeepOutcome:
    """Run one seed."""
    return UpkeepWorld(seed, habits, purges=purges).run()
