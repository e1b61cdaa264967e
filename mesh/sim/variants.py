"""Detectors side by side: SWIM alone, with Lifeguard, and ours, over a grid of anomalies.

Every cell blocks and kills the same members at the same times for each variant. The command is
`mesh sim --experiment lifeguard`.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from mesh.node.config import LifeguardConfig, paper, plain_swim
from mesh.sim.anomalies import Anomalies, Harm, run_anomalies

VARIANTS: Final[dict[str, Callable[[], LifeguardConfig]]] = {
    "SWIM": plain_swim,
    "SWIM + Lifeguard": paper,
    "Mesh": LifeguardConfig,
}
BLOCKED: Final = (1, 4, 8, 16, 32)
BLOCK_S: Final = (0.5, 2.0, 8.0, 16.0, 32.0)
_QUICK: Final = (Anomalies(members=32), (2, 8), (2.0, 8.0, 16.0))


@dataclass(frozen=True, slots=True)
class Cell:
    """One variant under one pair of thresholds."""

    variant: str
    anomalies: Anomalies
    harm: Harm

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "variant": self.variant,
            "blocked": self.anomalies.blocked,
            "block_s": self.anomalies.block_s,
            **self.harm.to_json(),
        }


def grid(*, is_quick: bool) -> Iterator[Anomalies]:
    """Yield every pair of thresholds of the sweep."""
    base, blocked, block_s = _QUICK if is_quick else (Anomalies(), BLOCKED, BLOCK_S)
    for duration_s in block_s:
        for count in blocked:
            yield replace(base, blocked=count, block_s=duration_s)


def run_cell(seed: int, variant: str, anomalies: Anomalies) -> Cell:
    """Run one variant once."""
    return Cell(variant, anomalies, run_anomalies(seed, anomalies, VARIANTS[variant]()))


def run_lifeguard(
    seed: int = 1, *, is_quick: bool = False, progress: Callable[[str], None] | None = None
) -> list[Cell]:
    """Run the sweep, one cell after the other; quick: 32 members and six pairs instead of 128 and 25."""
    cells: list[Cell] = []
    for anomalies in grid(is_quick=is_quick):
        for variant in VARIANTS:
            if progress is not None:
                text = f"{anomalies.blocked} blocked for {anomalies.block_s:g} s: {variant}"
                progress(text)
            cells.append(run_cell(seed, variant, anomalies))
    return cells


def to_text(cells: Sequence[Cell]) -> str:
    """Return the tables, in Markdown: false accusations for each cell, then sums and detection."""
    pairs = list(dict.fromkeys((c.anomalies.block_s, c.anomalies.blocked) for c in cells))
    found = {(c.variant, c.anomalies.block_s, c.anomalies.blocked): c.harm for c in cells}
    head = ["block", "blocked"]
    head += [f"{name}: false, healthy / all" for name in VARIANTS]
    head += [f"{name}: median" for name in VARIANTS]
    rows = [head, ["---"] * len(head)]
    for block_s, blocked in pairs:
        harms = [found[name, block_s, blocked] for name in VARIANTS]
        row = [f"{block_s:g} s", str(blocked)]
        row += [f"{harm.false_at_healthy} / {harm.false_in_total}" for harm in harms]
        row += [_seconds(harm.median_s) for harm in harms]
        rows.append(row)
    head = ["in all", "false at the healthy", "false in total", "blocked held dead by the healthy"]
    head += ["crash: first", "median", "last", "packets"]
    rows += [[], head, ["---"] * len(head)]
    rows += [[name, *_sums([c.harm for c in cells if c.variant == name])] for name in VARIANTS]
    return "\n".join(f"| {' | '.join(row)} |" if row else "" for row in rows)


def _sums(harms: Sequence[Harm]) -> list[str]:
    counts = [
        sum(harm.false_at_healthy for harm in harms),
        sum(harm.false_in_total for harm in harms),
        sum(harm.blocked_accused for harm in harms),
    ]
    times = [
        [harm.first_s for harm in harms],
        [harm.median_s for harm in harms],
        [harm.last_s for harm in harms],
    ]
    means = [_seconds(_mean_of_known(values)) for values in times]
    return [*map(str, counts), *means, str(sum(harm.packets for harm in harms))]


def _mean_of_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f} s"
