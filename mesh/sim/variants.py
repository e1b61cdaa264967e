"""Detectors side by side: SWIM alone, with Lifeguard, and ours, over a grid of anomalies.

Every run of a seed blocks and kills the same members at the same times for each variant, so that the
variants can be compared crash by crash (`comparison`). The command is `mesh sim --experiment lifeguard`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mesh.node.config import LifeguardConfig, paper, plain_swim
from mesh.sim.anomalies import Anomalies, Harm, run_anomalies

OURS: Final = "Mesh"
MODEL: Final = "SWIM + Lifeguard"
VARIANTS: Final[dict[str, Callable[[], LifeguardConfig]]] = {
    "SWIM": plain_swim,
    MODEL: paper,
    OURS: LifeguardConfig,
}
BLOCKED: Final = (1, 4, 8, 16, 32)
BLOCK_S: Final = (0.5, 2.0, 8.0, 16.0, 32.0)
_WHOLE: Final = (Anomalies(crashes=12), BLOCKED, BLOCK_S)
_KEYS: Final = ("seed", "variant", "members", "blocked", "block_s")
_QUICK: Final = (Anomalies(members=32), (2, 8), (2.0, 8.0, 16.0))


@dataclass(frozen=True, slots=True)
class Job:
    """One run to be done: a seed and a variant under one pair of thresholds."""

    seed: int
    variant: str
    anomalies: Anomalies

    def __str__(self) -> str:
        where = f"{self.anomalies.blocked} blocked for {self.anomalies.block_s:g} s"
        return f"seed {self.seed}, {where}: {self.variant}"

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        where = self.anomalies
        values = (self.seed, self.variant, where.members, where.blocked, where.block_s)
        return dict(zip(_KEYS, values, strict=True))


@dataclass(frozen=True, slots=True)
class Run:
    """A job that is done."""

    job: Job
    harm: Harm

    def to_json(self) -> dict[str, Any]:
        """Return it for programs; `recall` finds it again."""
        return {**self.job.to_json(), **self.harm.to_json()}


def recall(jobs: Iterable[Job], lines: Iterable[Mapping[str, Any]]) -> dict[Job, Run]:
    """Return those of the jobs that are done already, from the JSON of runs.

    Raises:
        KeyError, TypeError: one is not the JSON of a run.
    """
    wanted = {tuple(job.to_json().values()): job for job in jobs}
    found: dict[Job, Run] = {}
    for data in lines:
        job = wanted.get(tuple(data[key] for key in _KEYS))
        if job is not None:
            found[job] = Run(job, Harm.from_json(data))
    return found


def grid(*, is_quick: bool) -> Iterator[Anomalies]:
    """Yield every pair of thresholds of the sweep; quick: 32 members and six pairs, not 128 and 25."""
    base, blocked, block_s = _QUICK if is_quick else _WHOLE
    for duration_s in block_s:
        for count in blocked:
            yield replace(base, blocked=count, block_s=duration_s)


def jobs_of(seeds: Iterable[int], *, is_quick: bool) -> list[Job]:
    """Return every run of the sweep, one seed after the other."""
    return [
        Job(seed, variant, anomalies)
        for seed in seeds
        for anomalies in grid(is_quick=is_quick)
        for variant in VARIANTS
    ]


def perform(job: Job) -> Run:
    """Do one run; it depends on nothing but the job."""
    return Run(job, run_anomalies(job.seed, job.anomalies, VARIANTS[job.variant]()))
