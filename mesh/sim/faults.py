"""What can go wrong, as values, and a plan of it drawn from a seed.

A fault has a beginning and an end. The lengths that are drawn straddle the profile's pause tolerance,
where verdicts are closest. Hosts that crash or leave for good stay off; the seed hosts always come
back, and the first keeps its disk, so that whoever seeks the mesh can find it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final

from mesh.sim.fleet import SEED_HOSTS


class FaultKind(StrEnum):
    """Everything that can go wrong."""

    CRASH = "crash"  # the process dies; it restarts from its disk when the fault ends
    POWER = "power"  # the whole host goes off, so that nothing refuses
    MOVE = "move"  # crash, then restart at another address
    DISK = "disk"  # crash and lose the disk: a new node starts there
    ROLL_BACK = "roll-back"  # crash, and restart from an older copy of the disk, the clock set back
    OUTAGE = "outage"  # every process dies at once
    RESTART = "restart"  # that, and they return without seeds
    UPROOT = "uproot"  # that, and every address has changed but one
    PAUSE = "pause"
    STANDSTILL = "standstill"  # the whole host stops, with all that runs on it; its clock goes on
    DEAF = "deaf"  # messages wait, while timers run and what the node sends goes out
    HALVES = "halves"  # a partition between the hosts named and all others
    LONG_CUT = "long-cut"  # that, for longer than anybody is remembered who left, or was forgotten
    ONE_WAY = "one-way"  # nothing gets out of the hosts named
    ISOLATE = "isolate"  # a partition round each of the hosts named
    LOSS = "loss"  # of every datagram, everywhere, `amount` is lost
    LINK = "link"  # one direction of one link loses `amount`
    CLOG = "clog"
    CLOCK = "clock"  # the clock runs at 1 + `amount`
    EARLY = "early"  # timers are looked at though nothing is due
    LEAVE = "leave"  # what runs there may go on for `amount` seconds
    JOIN = "join"
    UNFIT = "unfit"  # its health check fails: it takes no more tasks, and what runs there goes on
    FORGET = "forget"  # one that is held dead is forgotten, as if somebody had asked for it


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong from `at_s` for `duration_s` (inf: for good)."""

    at_s: float
    kind: FaultKind
    hosts: tuple[int, ...] = ()
    duration_s: float = 0.0
    amount: float = 0.0

    def __str__(self) -> str:
        """Return the fault for people."""
        whom = ", ".join(f"node-{index}" for index in self.hosts)
        amount = f" {self.amount:g}" if self.amount else ""
        length = "for good" if self.duration_s == inf else f"for {self.duration_s:.2f} s"
        return f"{self.kind}{amount} {whom} {length}".replace("  ", " ")


def plan(
    rng: random.Random,
    nodes: int,
    window: tuple[float, float],
    pause_tolerance_s: float,
    *,
    long_s: float = 0.0,
    kinds: Sequence[FaultKind] = (),
) -> tuple[Fault, ...]:
    """Draw the faults of a run: their number grows with the mesh, their lengths straddle the tolerance.

    `long_s` is what a long cut lasts at least. 0: there is none. `kinds`: some of these, else of all.
    """
    begin_s, end_s = window
    count = rng.randint(3, 6 + nodes // 3)
    all_kinds = list(kinds) or [kind for kind in FaultKind if kind not in _NOT_DRAWN]
    drawn = rng.sample(all_kinds, rng.randint(2, len(all_kinds)))
    faults = []
    if long_s:
        at_s = rng.uniform(begin_s, begin_s + 0.2 * (end_s - begin_s))
        faults.append(_draw(rng, FaultKind.LONG_CUT, nodes, at_s, long_s * rng.uniform(1.0, 1.5)))
    for _ in range(count):
        kind = rng.choice(drawn)
        at_s = rng.uniform(begin_s, end_s)
        duration_s = pause_tolerance_s * rng.uniform(0.1, 3.0)
        faults.append(_draw(rng, kind, nodes, at_s, duration_s))
    return tuple(sorted(faults, key=lambda fault: fault.at_s))


def _draw(rng: random.Random, kind: FaultKind, nodes: int, at_s: float, duration_s: float) -> Fault:
    victim = rng.randrange(nodes)
    whom: tuple[int, ...] = (victim,)
    amount = 0.0
    if kind in {FaultKind.HALVES, FaultKind.LONG_CUT}:
        whom = tuple(sorted(rng.sample(range(nodes), rng.randint(1, nodes - 1))))
    elif kind in {FaultKind.DISK, FaultKind.ROLL_BACK}:
        whom = (rng.randrange(1, nodes),)
    elif kind in _EVERYBODY:
        whom = tuple(range(nodes))
    elif kind in _FEW:
        whom = tuple(sorted(rng.sample(range(nodes), rng.randint(1, max(1, nodes // 4)))))
    if kind in _MAY_BE_FOR_GOOD and rng.random() < 0.4:
        whom = tuple(index for index in whom if index >= SEED_HOSTS)
        duration_s = inf
    if kind is FaultKind.LOSS:
        whom, amount = (), rng.choice((0.05, 0.2, 0.5))
    elif kind is FaultKind.LINK:
        whom, amount = tuple(rng.sample(range(nodes), 2)), rng.choice((0.5, 0.9, 1.0))
    elif kind is FaultKind.CLOCK:
        amount = rng.choice((-1, 1)) * 10 ** rng.uniform(-4, -2)
    elif kind is FaultKind.JOIN:
        whom = ()
    return Fault(at_s, kind, whom, duration_s, amount)


_NOT_DRAWN: Final = frozenset({FaultKind.LONG_CUT, FaultKind.STANDSTILL, FaultKind.UNFIT})
"""Where nothing runs, a host that stands still is a node that is paused, and one that is unfit misses nothing."""

_FEW: Final = frozenset(
    {
        FaultKind.CRASH,
        FaultKind.PAUSE,
        FaultKind.STANDSTILL,
        FaultKind.DEAF,
        FaultKind.ONE_WAY,
        FaultKind.ISOLATE,
    }
)
_EVERYBODY: Final = frozenset({FaultKind.OUTAGE, FaultKind.RESTART, FaultKind.UPROOT})
_MAY_BE_FOR_GOOD: Final = frozenset({FaultKind.CRASH, FaultKind.POWER, FaultKind.LEAVE})
