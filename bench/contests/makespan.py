"""Uneven tasks on uneven nodes, beside the best schedule that knows all durations.

The twin of `tests/sim/test_makespan.py`, whose definitions it shares (`mesh.bench.schedules`). All tasks are submitted
at once, a part of them at each node; the time is from the first submission to the last end.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any, Final

from bench.contests.diary import now_ns
from bench.contests.finding import Finding
from bench.contests.orders import set_strategy, submit
from bench.contests.site import Seat, Site
from mesh.bench.contestant import BenchError
from mesh.bench.progress import Progress
from mesh.bench.schedules import Makespan, bound_s, compare, draw_durations

SLOTS: Final = (8, 4, 2, 1, 1)
STRATEGIES: Final = ("pull", "rendezvous", "contest")
SHORTEST_S: Final = 0.05
LONGEST_S: Final = 5.0
TASKS: Final = 600
TASKS_MIN: Final = 40
RATIO_MAX: Final = 1.15
SEED: Final = 1


def play(scale: float, progress: Progress) -> list[Finding]:
    """Run the same tasks under each strategy, one after the other."""
    rng = random.Random(SEED)
    count = max(TASKS_MIN, round(TASKS * scale))
    durations = [
        round(one, 3) for one in draw_durations(rng, count, SHORTEST_S, LONGEST_S)
    ]  # fmt: skip
    seats = [Seat(name=f"n{n}", slots=slots) for n, slots in enumerate(SLOTS, 1)]
    findings = []
    with Site(seats) as site:
        for strategy in STRATEGIES:
            progress.task(f"makespan: {count} tasks by {strategy}")
            found = measure(site, strategy, durations)
            progress.say(f"makespan, {strategy}: {found}")
            findings.append(_finding(strategy, found, count))
    return findings


def measure(site: Site, strategy: str, durations: Sequence[float]) -> Makespan:
    """Run tasks of these durations, in seconds, through a queue of this strategy.

    Raises:
        BenchError: one did not end, or ran twice.
    """
    queue = f"uneven-{strategy}"
    set_strategy(site, queue, strategy)
    names = site.names
    parts = [list(durations[place :: len(names)]) for place in range(len(names))]

    def hand_over(name: str, part: Sequence[float]) -> list[str]:
        tasks: list[dict[str, Any]] = [
            {"argv": site.diary.argv(duration_s), "queue": queue} for duration_s in part
        ]
        with site.client(name) as client:
            return submit(client, tasks)

    began_ns = now_ns()
    with ThreadPoolExecutor(len(names)) as pool:
        handed = list(pool.map(hand_over, names, parts))
    lasts = {
        task_id: duration_s
        for ids, part in zip(handed, parts, strict=True)
        for task_id, duration_s in zip(ids, part, strict=True)
    }
    ends = site.diary.wait_ended(list(lasts), 20.0 + 3 * bound_s(durations, site.slots))
    if twice := [task_id for task_id in lasts if len(site.diary.begins(task_id)) != 1]:
        raise BenchError(f"each task should run once, {len(twice)} did not: {twice[:3]}")
    begun = sorted(lasts, key=lambda task_id: site.diary.begins(task_id)[0].at_ns)
    taken_s = (max(line.at_ns for line in ends) - began_ns) / 1e9
    return compare(taken_s, [lasts[task_id] for task_id in begun], site.slots)


def _finding(strategy: str, found: Makespan, count: int) -> Finding:
    ratio = found.mesh_s / found.longest_first_s
    return Finding(
        experiment="makespan",
        asked=f"by {strategy}: {count} tasks of {SHORTEST_S:g} to {LONGEST_S:g} s on nodes of {', '.join(map(str, SLOTS))} "
        f"slots end within {RATIO_MAX - 1:.0%} of the schedule that knows all durations",
        found=f"{ratio - 1:+.1%} ({found})",
        holds=ratio <= RATIO_MAX and found.longest_first_s <= RATIO_MAX * found.bound_s,
        figures={"strategy": strategy, "tasks": count, "ratio": round(ratio, 4), **asdict(found)},
    )
