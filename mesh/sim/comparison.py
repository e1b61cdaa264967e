"""Runs of several seeds pooled: false accusations added up, detection compared crash by crash.

A time in one cell is mostly the wait for somebody to probe the victim, seconds of pure chance. So each
crash is compared with itself: the same member at the same time of the same seed, under ours and under
SWIM with Lifeguard; the mean of these differences has an interval that says what chance may have done.

    left out, in all variants: a crash that one of them "found" sooner than a suspicion lasts (ours:
    before it happened, if its host was left to tell). It had accused the victim before the crash: a
    false accusation, which is counted as one, no detection.

Processes that were killed and hosts that were lost are told apart: of the first a host has more to say.

The interval is Student's, for 95 %: in one cell of twenty it misses the true mean by chance.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from mesh.sim.anomalies import Anomalies, Crash, Harm
from mesh.sim.variants import MODEL, OURS, VARIANTS, Run

_Z: Final = 1.959964  # of the normal distribution, for 95 %
_ENOUGH: Final = 3  # differences, for an interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The mean of some differences, between `low_s` and `high_s` with 95 %; None: too few to tell."""

    mean_s: float
    low_s: float | None
    high_s: float | None
    count: int

    @property
    def side(self) -> str:
        """Where the interval lies: ``above`` 0, ``below`` it, or ``around`` it."""
        if self.low_s is None or self.high_s is None or self.low_s <= 0 <= self.high_s:
            return "around"
        return "above" if self.low_s > 0 else "below"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """One variant over some runs. Times are means over the crashes that were compared; None: there is none."""

    false_at_healthy: int
    false_in_total: int
    blocked_accused: int
    missing: int
    """How many healthy observers never noticed a crash."""

    packets: int
    killed_s: float | None
    """How long the median observer took to notice a process that was killed, its host alive."""

    lost_s: float | None
    """The same of a host that was lost."""

    lost_last_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One pair of thresholds, or several, over all seeds. `killed`, `lost`: ours minus SWIM with Lifeguard."""

    crashes: int
    left_out: int
    sums: dict[str, Sum]
    killed: Estimate | None
    lost: Estimate | None

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        found = asdict(self)
        for kind, difference in (("killed", self.killed), ("lost", self.lost)):
            if difference is not None:
                found[kind]["side"] = difference.side
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Every cell by its thresholds, and all of them together."""

    seeds: tuple[int, ...]
    cells: dict[Anomalies, Cell]
    total: Cell

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        cells = [
            {"blocked": where.blocked, "block_s": where.block_s, **cell.to_json()}
            for where, cell in self.cells.items()
        ]
        return {"seeds": list(self.seeds), "total": self.total.to_json(), "cells": cells}

    def sides(self, *, is_lost: bool) -> dict[str, int]:
        """Return in how many cells the interval of the difference lies above 0, below it, or around it."""
        differences = [cell.lost if is_lost else cell.killed for cell in self.cells.values()]
        sides = [found.side for found in differences if found is not None]
        return {side: sides.count(side) for side in ("above", "below", "around")}

    def worse(self) -> int:
        """Return in how many cells ours accused falsely more often than SWIM with Lifeguard."""
        return sum(
            cell.sums[OURS].false_in_total > cell.sums[MODEL].false_in_total
            for cell in self.cells.values()
        )


_Trial = dict[str, Harm]  # what each variant did in one cell of one seed


def compare(runs: Iterable[Run]) -> Comparison:
    """Pool the runs; what not every variant has run, in one cell of one seed, is left out."""
    trials: dict[Anomalies, dict[int, _Trial]] = {}
    for run in runs:
        job = run.job
        trials.setdefault(job.anomalies, {}).setdefault(job.seed, {})[job.variant] = run.harm
    complete = {
        where: {seed: trial for seed, trial in found.items() if trial.keys() == VARIANTS.keys()}
        for where, found in trials.items()
    }
    whole = {where: found for where, found in complete.items() if found}
    seeds = sorted({seed for found in whole.values() for seed in found})
    pairs = [(where, trial) for where, found in whole.items() for trial in found.values()]
    return Comparison(
        seeds=tuple(seeds),
        cells={
            where: _pool([(where, trial) for trial in whole[where].values()]) for where in whole
        },
        total=_pool(pairs),
    )


def estimate(differences: Sequence[float]) -> Estimate | None:
    """Return the mean with its interval, or None of nothing."""
    count = len(differences)
    if not count:
        return None
    mean_s = statistics.fmean(differences)
    if count < _ENOUGH:
        return Estimate(mean_s=mean_s, low_s=None, high_s=None, count=count)
    half_s = student(count - 1) * statistics.stdev(differences) / math.sqrt(count)
    return Estimate(mean_s=mean_s, low_s=mean_s - half_s, high_s=mean_s + half_s, count=count)


def student(freedom: int) -> float:
    """Return the quantile of Student's distribution for 95 %, from both sides.

    By its expansion around the normal one: 3 % too small at 2 degrees of freedom, 0.1 % at 5.
    """
    z, wide = _Z, 1 / freedom
    return (
        z
        + (z**3 + z) / 4 * wide
        + (5 * z**5 + 16 * z**3 + 3 * z) / 96 * wide**2
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384 * wide**3
    )


def _pool(pairs: Sequence[tuple[Anomalies, _Trial]]) -> Cell:
    crashes = [
        (where, dict(zip(trial, row, strict=True)))
        for where, trial in pairs
        for row in zip(*(harm.crashes for harm in trial.values()), strict=True)
    ]
    kept = [crash for where, crash in crashes if _is_fair(where, crash)]
    return Cell(
        crashes=len(crashes),
        left_out=len(crashes) - len(kept),
        sums={
            name: _sum([trial[name] for _, trial in pairs], [crash[name] for crash in kept])
            for name in VARIANTS
        },
        killed=estimate(_differences(kept, is_lost=False)),
        lost=estimate(_differences(kept, is_lost=True)),
    )


def _differences(crashes: Sequence[dict[str, Crash]], *, is_lost: bool) -> list[float]:
    return [
        crash[OURS].median_s - crash[MODEL].median_s
        for crash in crashes
        if crash[OURS].is_lost == is_lost
        and crash[OURS].median_s is not None
        and crash[MODEL].median_s is not None
    ]


def _is_fair(where: Anomalies, crash: dict[str, Crash]) -> bool:
    """Say whether no variant found a crash sooner than it can."""
    return all(
        seen.median_s >= where.shortest_suspicion_s or _is_told(name, seen)
        for name, seen in crash.items()
        if seen.median_s is not None
    )


def _is_told(variant: str, seen: Crash) -> bool:
    """Say whether the victim's host told of its crash: ours hears that, after it happened."""
    return variant == OURS and not seen.is_lost and bool(seen.median_s)


def _sum(harms: Sequence[Harm], crashes: Sequence[Crash]) -> Sum:
    killed = [crash for crash in crashes if not crash.is_lost]
    lost = [crash for crash in crashes if crash.is_lost]
    return Sum(
        false_at_healthy=sum(harm.false_at_healthy for harm in harms),
        false_in_total=sum(harm.false_in_total for harm in harms),
        blocked_accused=sum(harm.blocked_accused for harm in harms),
        missing=sum(crash.missing for harm in harms for crash in harm.crashes),
        packets=sum(harm.packets for harm in harms),
        killed_s=_mean(killed, lambda crash: crash.median_s),
        lost_s=_mean(lost, lambda crash: crash.median_s),
        lost_last_s=_mean(lost, lambda crash: crash.last_s),
    )


def _mean(crashes: Sequence[Crash], value: Callable[[Crash], float | None]) -> float | None:
    known = [at_s for at_s in map(value, crashes) if at_s is not None]
    return statistics.fmean(known) if known else None


# As text.


def to_text(comparison: Comparison) -> str:
    """Return the tables, in Markdown: sums, then each cell, and what they come to."""
    total = comparison.total
    rows = [
        ["in all", "false at the healthy", "false in total", "blocked held dead by the healthy"],
        *([name, *_counts(total.sums[name])] for name in VARIANTS),
    ]
    rows[0] += ["killed: median", "lost: median", "lost: last", "never noticed", "packets"]
    names = [*VARIANTS]
    cells = [
        ["block", "blocked"]
        + [f"{name}: false, healthy / all" for name in names]
        + ["crashes", "left out"]
        + [f"{name}: killed / lost" for name in names]
        + [f"{OURS} minus {MODEL}: {kind}" for kind in ("killed", "lost")]
    ]
    for where, cell in comparison.cells.items():
        sums = [cell.sums[name] for name in names]
        row = [f"{where.block_s:g} s", str(where.blocked)]
        row += [f"{found.false_at_healthy} / {found.false_in_total}" for found in sums]
        row += [str(cell.crashes), str(cell.left_out)]
        row += [f"{_seconds(found.killed_s)} / {_seconds(found.lost_s)}" for found in sums]
        cells.append([*row, _interval(cell.killed), _interval(cell.lost)])
    return "\n".join([*_table(rows), "", *_table(cells), "", *_reading(comparison)])


def _reading(comparison: Comparison) -> list[str]:
    total, cells = comparison.total, len(comparison.cells)
    seeds = (
        f"{len(comparison.seeds)} seeds, {total.crashes} crashes, {total.left_out} left out. "
        f"{OURS} minus {MODEL} over all that were compared: {_interval(total.killed)} for processes "
        f"that were killed, {_interval(total.lost)} for hosts that were lost."
    )
    intervals = "; ".join(
        f"of {cells} intervals for {kind} {sides['above']} lie above 0 ({OURS} is later), "
        f"{sides['below']} below, {sides['around']} around it"
        for kind, sides in (
            ("the killed", comparison.sides(is_lost=False)),
            ("the lost", comparison.sides(is_lost=True)),
        )
    )
    intervals = f"{intervals[0].upper()}{intervals[1:]}."
    false = f"{OURS} accused falsely more often than {MODEL} in {comparison.worse()} of {cells}."
    return [seeds, intervals, false]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], f"| {' | '.join(['---'] * len(rows[0]))} |", *lines[1:]]


def _counts(found: Sum) -> list[str]:
    counts = [found.false_at_healthy, found.false_in_total, found.blocked_accused]
    times = [found.killed_s, found.lost_s, found.lost_last_s]
    return [*map(str, counts), *map(_seconds, times), str(found.missing), str(found.packets)]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.0f} ms"


def _interval(found: Estimate | None) -> str:
    if found is None:
        return "-"
    if found.low_s is None or found.high_s is None:
        return f"{found.mean_s:+.2f} s"
    return f"{found.mean_s:+.2f} s ({found.low_s:+.2f} to {found.high_s:+.2f})"
