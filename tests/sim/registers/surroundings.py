"""What a process of a host lives with: its disk and clock, its habits, and an outbox that keeps order.

What a process sends leaves in order, after everything it was to store before; a crash takes what waits.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from mesh.core.ids import NodeId
from mesh.registers.leases import LeaseTimes
from mesh.registers.proposal import Proposal
from mesh.registers.record import Record
from mesh.registers.trust import Trust
from mesh.registers.voter import Store, Voter
from tests.sim.registers.judge import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """The machines of a host, and what it does around them; the defaults are right."""

    voter: type[Voter] = Voter
    proposal: type[Proposal] = Proposal
    trust: type[Trust] = Trust
    times: LeaseTimes | None = None
    remembers: bool = True
    """A process reads its voter's records when it starts."""

    answers_wait: bool = True
    heeds_hold: bool = True
    rounds_differ: bool = True
    keeps_numbers: bool = True
    """Numbers that were set aside are not used by the next session."""

    asks_roster: bool = True
    """Voters are those of the roster, not the first three of whom it sees alive."""

    counts_majority: bool = True
    """A renewal needs a majority."""

    first_alone: bool = True
    """Nobody but the first voter creates without asking."""


@dataclass(slots=True)
class Disk:
    """What survives a crash."""

    records: dict[bytes, Record] = field(default_factory=dict)
    set_aside: int = 0
    boot: int = 0


@dataclass(slots=True, kw_only=True)
class Surroundings:
    """What a process lives with."""

    own: NodeId
    roster: tuple[NodeId, ...]
    all: tuple[NodeId, ...]
    times: LeaseTimes
    habits: Habits
    disk: Disk
    judge: Judge
    rng: random.Random
    clock: Callable[[], float]
    """The host's own."""

    true_time: Callable[[float], float]
    """Of a moment of the host's clock."""

    send: Callable[[NodeId, object], None]
    later: Callable[[float, Callable[[], None]], None]


class Outbox:
    """Stores and messages of a process, in order."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._waiting: list[tuple[NodeId, object] | Store | int] = []
        self._is_committing = False
        self.is_closed = False

    def put(self, *items: tuple[NodeId, object] | Store | int) -> None:
        """Store records and set numbers aside, and send what follows when that is durable."""
        for item in items:
            if isinstance(item, tuple) and not self._around.habits.answers_wait:
                self._around.send(*item)
            else:
                self._waiting.append(item)
        self._go_on()

    def _go_on(self) -> None:
        if self._is_committing:
            return
        while self._waiting and isinstance(head := self._waiting[0], tuple):
            del self._waiting[0]
            self._around.send(*head)
        if self._waiting:
            self._is_committing = True
            rng, count = self._around.rng, len(self._waiting)
            takes_s = rng.expovariate(200) + (rng.random() < 0.02) * rng.uniform(0, 2)
            self._around.later(takes_s, lambda: self._commit(count))

    def _commit(self, count: int) -> None:
        if self.is_closed:
            return
        done, self._waiting = self._waiting[:count], self._waiting[count:]
        self._is_committing = False
        for item in done:
            if isinstance(item, Store):
                self._around.disk.records[item.key] = item.record
                self._around.judge.committed(self._around.own, item.record)
            elif isinstance(item, int):
                self._around.disk.set_aside = item
        for item in done:
            if isinstance(item, tuple):
                self._around.send(*item)
        self._go_on()
