"""How fit a member is for a task, from 0 to 1: what it has free, how it fared, what it holds, how near it is.

    hard needs ── not met, or no slot free ──► no fitness: it does not bid
        │ met
        ▼
    nine parts, each 0 to 1 ── times its share of the weights ──► their sum: the score of fresh knowledge
        │
        ▼ the older the knowledge, the nearer to 0.5, which is what is known of nobody
    discounted, 0 to 1 ── the uppermost of eight buckets is kept for dedicated members ──► the score:
        seven eighths of it, and one eighth more for a member that is dedicated to the task's queue

A part that is not known counts 0.5 as well, neither good nor bad: else whoever keeps silent about its loop lag would
win. Each part rises with what is good and never falls with it, and so does the score.

Three parts weigh nothing by default, and cannot be set for a queue: checkpoint, warm and zone. Later features fill
them (checkpoints, apps, inputs); until then no member can tell of them, and `weighing.UNKNOWN` says why of each.

It is reckoned by a member of itself, to bid, and of the others called, to estimate its rank. It decides nothing: the
voters do.

Source: our own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Final, NamedTuple

from mesh.contest.bounds import within
from mesh.contest.rank import BUCKETS
from mesh.errors import ConfigError
from mesh.placement.live_view import Wants, suits
from mesh.wire.contest_messages import WEIGHT_MAX
from mesh.wire.records import DEDICATED, GENERAL, Metadata

PRIOR: Final = 0.5
"""What is known of nobody: a part that is not known counts so much, and old knowledge comes to it."""

HALF_LIFE_S: Final = 10.0
"""After so many seconds half of what was known is still believed: slots and load change within seconds."""

LAG_HALF_S: Final = 0.05
"""A loop that is so late, in seconds, is half as fit as one that is on time: leases are renewed from it."""

RTT_HALF_S: Final = 0.02
"""A round trip to the voters of so many seconds makes a member half as near: above any site's, below an ocean's."""

STEP: Final = 1 / BUCKETS
"""So much higher is a dedicated member than another that is as fit: one bucket, be both as fit as can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much each part counts. Only the shares matter: all doubled is the same; 0 leaves a part out."""

    free_slots: float = 0.25
    """The share of its slots that is free. Less: tasks pile up on who is fit otherwise."""

    cpu: float = 0.20
    """Processors that are not busy, with whatever else the host does."""

    lag: float = 0.05
    """Its loop is on time. Nearly always it is: then this part tells nobody apart."""

    history: float = 0.25
    """How many tasks of this kind succeeded on it. As much as free slots: a member on which all fails at once has all of them free."""

    match: float = 0.05
    """How much of what is special about it the task asks for: who offers a rare thing is kept for tasks that need it."""

    checkpoint: float = 0.0
    """It holds the task's checkpoint, so that nothing is fetched."""

    warm: float = 0.0
    """The task's app is loaded. More, if apps take long to start."""

    distance: float = 0.05
    """The round trip to the voters is short: claims and renewals are."""

    zone: float = 0.0
    """It is in the zone that the task is for. More, if inputs are large."""

    def __post_init__(self) -> None:
        """Refuse what weighs nothing or is no weight.

        Raises:
            ConfigError: names the weight that is none, or says that all are 0.
        """
        for name, weight in self._all():
            if not 0 <= weight <= WEIGHT_MAX:  # which no NaN is
                raise ConfigError(
                    f"contest weight {name}: a number from 0 to {WEIGHT_MAX:,} is expected, found {weight}"
                )
        if self.total <= 0:
            raise ConfigError(
                "contest weights: at least one above 0 is expected, found all 0; give one part a weight such as 1"
            )

    @property
    def total(self) -> float:
        """The sum of all weights, above 0."""
        return math.fsum(weight for _, weight in self._all())

    def shares(self) -> list[tuple[str, float]]:
        """Return the name of each part that counts at all and its share, above 0; together they are 1."""
        total = self.total
        shares = [(name, weight / total) for name, weight in self._all()]
        return [(name, share) for name, share in shares if share > 0]

    def _all(self) -> list[tuple[str, float]]:
        return [(field.name, float(getattr(self, field.name))) for field in fields(self)]


DEFAULT_WEIGHTS: Final = Weights()
"""By these members are compared, unless a queue's own weights are set."""

_MOST: Final = {
    "free_slots": math.inf,
    "busy_pct": 255,
    "lag_s": math.inf,
    "history": 1,
    "rtt_s": math.inf,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is known of a member, by itself or by another. None: not known."""

    meta: Metadata
    """What it declares: slots, pool, class, queues, labels, amounts, whether it takes work."""

    free_slots: int | None = None
    """0 or more. More than it declares counts as all: the two are told by different ways."""

    busy_pct: int | None = None
    """How busy the processors are that it may use, in hundredths, 0 to 255: their use now, no load average."""

    lag_s: float | None = None
    """How late its loop runs, smoothed, in seconds."""

    history: float | None = None
    """How tasks of this kind fared on it, 0 to 1: `mesh.contest.history`."""

    zone: str = ""
    """Where it is, in the words of whoever runs the mesh; "": not known."""

    has_checkpoint: bool | None = None
    """Whether it holds this task's checkpoint."""

    is_warm: bool | None = None
    """Whether this task's app is loaded on it."""

    rtt_s: float | None = None
    """The round trip from it to the task's voters, in seconds: to the first of them, where that one alone measured it."""

    age_s: float = 0.0
    """How old all of this is, in seconds; 0 for one's own."""

    def __post_init__(self) -> None:
        """Refuse numbers that are none.

        Raises:
            LocalProtocolError: names the one that is out of its bounds.
        """
        within("age_s", self.age_s, 0)
        for name, most in _MOST.items():
            value = getattr(self, name)
            if value is not None:
                within(name, value, 0, most)


class Part(NamedTuple):
    """One part of a fitness."""

    name: str  # as in Weights
    value: float  # 0 (worst) to 1
    weight: float  # its share of all weights, above 0


@dataclass(frozen=True, slots=True)
class Fitness:
    """A score from 0 to 1, and what it is made of.

    The sum of value times weight over all parts is how fit it is by fresh knowledge: before the discount for its age.
    Seven eighths of that are its score, and one eighth more where it is dedicated.
    """

    score: float
    parts: tuple[Part, ...]


def fitness(
    wants: Wants,
    circumstances: Circumstances,
    weights: Weights = DEFAULT_WEIGHTS,
    *,
    zone: str = "",
) -> Fitness | None:
    """Return how fit a member is for a task; None: it cannot run it, or must not.

    That is so for a member that does not suit what the task asks for (as one dedicated to other queues, one that stands
    by, one that is unfit), and for one that has no free slot.

    Monotone in every part; with age it comes to that of 0.5, so that old knowledge never makes a member look better
    than both what it was and that. O(1) in the mesh's size.

    Args:
        wants: what the task asks of a member.
        circumstances: what is known of the member.
        weights: how much each part counts.
        zone: that the task is for, as that of its inputs; "": any, and all are equal.
    """
    if circumstances.free_slots == 0 or not suits(circumstances.meta, wants):
        return None
    values = _values(wants, circumstances, zone)
    parts = tuple(Part(name, values[name], share) for name, share in weights.shares())
    fresh = sum(part.value * part.weight for part in parts)
    belief = math.exp2(-circumstances.age_s / HALF_LIFE_S)
    discounted = max(0.0, min(1.0, PRIOR + (fresh - PRIOR) * belief))
    is_dedicated = circumstances.meta.node_class == DEDICATED
    return Fitness((1 - STEP) * discounted + STEP * is_dedicated, parts)


def _values(wants: Wants, known: Circumstances, zone: str) -> dict[str, float]:
    """Return all parts by their names in Weights, each from 0 to 1."""
    free = None if known.free_slots is None else min(1.0, known.free_slots / known.meta.slots)
    idle = None if known.busy_pct is None else max(0.0, 1 - known.busy_pct / 100)
    near = None if not (zone and known.zone) else known.zone == zone
    return {
        "free_slots": _or_prior(free),
        "cpu": _or_prior(idle),
        "lag": _or_prior(_less_is_better(known.lag_s, LAG_HALF_S)),
        "history": _or_prior(known.history),
        "match": _match(wants, known.meta),
        "checkpoint": _or_prior(known.has_checkpoint),
        "warm": _or_prior(known.is_warm),
        "distance": _or_prior(_less_is_better(known.rtt_s, RTT_HALF_S)),
        "zone": _or_prior(near),
    }


def _or_prior(value: float | None) -> float:
    return PRIOR if value is None else float(value)


def _less_is_better(value: float | None, half: float) -> float | None:
    return None if value is None else 1 / (1 + value / half)


def _match(wants: Wants, meta: Metadata) -> float:
    """Return how much of what is special about a suitable member the task asks for; 1 where nothing is special.

    Class, labels and amounts are hard needs and all met, so what tells members apart is what they would waste.
    A dedicated member is here only for its own queues, which is what is special about it.
    """
    is_special = meta.node_class != GENERAL
    is_asked = is_special and meta.node_class in (wants.node_class, DEDICATED)
    offered = {name for name, _ in meta.offers}
    asked = len({name for name, _ in wants.labels}) + len(
        offered & {name for name, _ in wants.needs}
    )
    special = len(meta.labels) + len(offered)
    return (1 + asked + is_asked) / (1 + special + is_special)
