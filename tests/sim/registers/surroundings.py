"""What a process of a host lives with: its disk and clock, and its habits."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from mesh.core.ids import NodeId
from mesh.registers.leases import LeaseTimes
from mesh.registers.proposal import Proposal
from mesh.registers.record import Record
from mesh.registers.trust import Trust
from mesh.registers.voter import Voter
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
    numbers: dict[str, int] = field(default_factory=dict)
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
