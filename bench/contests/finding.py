"""What was asked of an experiment, and what was found; some arithmetic about it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One row of the table at the end."""

    experiment: str
    asked: str
    found: str
    holds: bool
    figures: Mapping[str, Any] = field(default_factory=dict)
    """All that was measured, JSON-ready."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape."""
        return {
            "experiment": self.experiment,
            "asked": self.asked,
            "found": self.found,
            "holds": self.holds,
            "figures": dict(self.figures),
        }


def table(findings: Sequence[Finding]) -> str:
    """Return the findings for people, three lines each."""
    return "\n".join(
        f"{one.experiment:<10}  asked  {one.asked}\n"
        f"{'':<10}  found  {one.found}\n"
        f"{'':<10}  {'holds' if one.holds else 'DOES NOT HOLD'}"
        for one in findings
    )


def spread(times_ms: Sequence[float]) -> dict[str, float | int | None]:
    """Return the count, first, median and worst of some times."""
    if not times_ms:
        return {"count": 0, "first_ms": None, "median_ms": None, "worst_ms": None}
    return {
        "count": len(times_ms),
        "first_ms": round(min(times_ms), 1),
        "median_ms": round(statistics.median(times_ms), 1),
        "worst_ms": round(max(times_ms), 1),
    }


def chance_of_at_most(hits: int, trials: int, share: float) -> float:
    """Return how likely so few hits, or fewer, are in so many trials, each of which hits with this share (binomial)."""
    return math.fsum(
        math.comb(trials, n) * share**n * (1 - share) ** (trials - n) for n in range(hits + 1)
    )
