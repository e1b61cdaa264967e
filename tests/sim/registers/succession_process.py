"""A session whose desk follows the roster: it knows what its disk and others tell, and what view it is given."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from mesh.registers.admission import Member, Pace
from mesh.registers.asker import SET_ASIDE
from mesh.registers.desk import Desk
from mesh.registers.keeping import Keeping
from mesh.registers.numbers import Numbers
from mesh.registers.outbox import Commit
from mesh.registers.succession import Succession
from mesh.registers.upkeep import UpkeepTimes
from mesh.registers.voter import Voter
from mesh.wire.register_messages import Owner
from mesh.wire.roster_messages import Roster
from tests.sim.registers.desk_client import Client
from tests.sim.registers.desk_disk import Writing
from tests.sim.registers.desk_process import DOMAIN, DeskProcess, DeskSurroundings
from tests.sim.registers.succession_judge import SuccessionJudge

UPKEEP: Final = UpkeepTimes(compare_s=2, settle_s=2)
PACE: Final = Pace(stand_s=2, ask_s=2)


@dataclass(frozen=True, slots=True)
class SuccessionHabits:
    """The machines of a host; the defaults are right."""

    voter: type[Voter] = Voter
    succession: type[Succession] = Succession
    minds_words: bool = True
    """False: what is wrong is to be seen by what comes of it alone."""


@dataclass(slots=True, kw_only=True)
class SuccessionSurroundings(DeskSurroundings):
    """What a session lives with."""

    judge_of_epochs: SuccessionJudge
    is_founder: bool
    view: Callable[[], Iterable[Member]]
    """Who is alive and unsuspected, as it seems just now."""

    machines: SuccessionHabits = field(default_factory=SuccessionHabits)


class _Watched(Writing):
    """A way to the disk that shows each commit to the judge of epochs before its records."""

    def __init__(self, around: SuccessionSurroundings, committed: Callable[[int], None]) -> None:
        super().__init__(around.disk, around.judge, around.rng, around.host.later, committed)
        self._around = around

    def _apply(self, commit: Commit) -> None:
        self._around.judge_of_epochs.committing(self._around.disk, commit)
        super()._apply(commit)


class SuccessionProcess(DeskProcess):
    """One session of a host that begins with its disk alone."""

    def __init__(self, around: SuccessionSurroundings) -> None:
        self._around = around
        self._view = around.view
        self._host, disk, rng = around.host, around.disk, around.rng
        now = self._host.clock()
        disk.boot += 1
        self._boot = disk.boot
        self._epoch, sealed = disk.epoch
        machines = around.machines
        voter = machines.voter(
            disk.own,
            around.times,
            epoch=self._epoch,
            sealed=sealed,
            now=now,
            records=disk.records.items(),
        )
        succession = machines.succession(
            disk.own, voter, PACE, random.Random(rng.getrandbits(32)), now
        )
        self._desk = desk = Desk(
            own_id=disk.own,
            boot=disk.boot,
            domain=DOMAIN,
            times=around.times,
            numbers=Numbers(disk.numbers.get(SET_ASIDE, 0)),
            rng=random.Random(rng.getrandbits(32)),
            voter=voter,
            roster=None,
        )
        desk.succession = succession
        desk.keeping = Keeping(
            disk.own,
            voter=voter,
            roster=None,
            times=UPKEEP,
            expires=lambda key, record: None,
            rng=random.Random(rng.getrandbits(32)),
            now=now,
        )
        self._succession = succession
        owner = Owner(disk.own, disk.boot)
        self._client = Client(owner, desk, around.judge, rng, now)
        self._writing = _Watched(around, self._on_committed)
        self._is_over = False
        self._wakes_at: float | None = None
        if around.is_founder and succession.roster is None:
            self._host.later(0, lambda: self._do(self._found))

    @property
    def roster(self) -> Roster | None:
        return self._succession.roster

    def tick(self) -> None:
        """Look at who is alive, now and then, and let the client do what it wants."""
        if self._around.rng.random() < 0.2:
            members = list(self._view())
            self._do(
                lambda now: self._desk.carry_out(now, self._succession.note_members(now, members))
            )
        super().tick()

    def _found(self, now: float) -> None:
        self._desk.carry_out(now, self._succession.found(now))
