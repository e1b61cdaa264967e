"""The voter that sees to a batch of tasks is killed just after they were acknowledged, in the middle of their contests.

A batch goes to a queue whose strategy is `contest`, with slots enough for all. Half of the rounds submit it at the
steward itself, which dies with the client's connection; half at another voter, under ids that are the steward's. Of the
tasks that had not begun when it was killed: how long until they begin? Beside that the same without a kill.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import time
from typing import Any, Final

from bench.contests.diary import now_ns
from bench.contests.finding import Finding, spread
from bench.contests.orders import draw_id, set_strategy, submit
from bench.contests.site import Seat, Site
from mesh.bench.progress import Progress
from mesh.tasks.config import TasksConfig

QUEUE: Final = "contest"
NODES: Final = 5
SLOTS: Final = 8
BATCH: Final = 24
HOLD_S: Final = 0.3
ROUNDS: Final = 12
ROUNDS_MIN: Final = 4
DELAY_MS_MAX: Final = 10
STAND_BY_S: Final = TasksConfig().stagger_s
START_S: Final = 30.0
SEED: Final = 3


def play(scale: float, progress: Progress) -> list[Finding]:
    """Play rounds with a kill and without by turns."""
    rng = random.Random(SEED)
    rounds = max(ROUNDS_MIN, round(ROUNDS * scale))
    times: dict[str, list[float]] = {"killed": [], "control": []}
    with Site([Seat(name=f"n{n}", slots=SLOTS) for n in range(1, NODES + 1)]) as site:
        set_strategy(site, QUEUE, "contest")
        for number in range(rounds):
            delay_ms = DELAY_MS_MAX * (number // 2) / max(1, (rounds - 1) // 2)
            for what, found in tuple(times.items()):
                progress.task(f"steward: round {number + 1} of {rounds}, {what}")
                is_killed = what == "killed"
                left = _round(site, rng, delay_ms, is_itself=number % 2 == 0, is_killed=is_killed)
                times[what] = found + left
                progress.say(
                    f"steward, {what} {delay_ms:.1f} ms after the acknowledgement: {len(left)} of {BATCH} "
                    f"not begun; then {_words(left)}"
                )
    return [_finding(times["killed"], times["control"], rounds)]


def _round(
    site: Site, rng: random.Random, delay_ms: float, *, is_itself: bool, is_killed: bool
) -> list[float]:
    """Return after how many ms each task begun that had not when the steward was, or would have been, killed."""
    steward, *others = rng.sample(site.voters, 3)
    pid = site.node(steward).pid
    task: dict[str, Any] = {"argv": site.diary.argv(HOLD_S), "queue": QUEUE}
    # An id that the steward draws itself is its own.
    tasks = [
        task if is_itself else {**task, "id": draw_id(site, steward, rng)} for _ in range(BATCH)
    ]
    with site.client(steward if is_itself else others[0]) as client:
        client.call("status")  # connected, before it counts
        ids = submit(client, tasks)
        time.sleep(delay_ms / 1e3)
        at_ns = now_ns()
        if is_killed:
            os.kill(pid, signal.SIGKILL)
    begins = site.diary.wait_begun(ids, START_S)
    if is_killed:
        site.restart(steward)
    # What ran at the steward runs once more.
    site.diary.wait_ended(ids, START_S)
    site.wait_free()
    return sorted((line.at_ns - at_ns) / 1e6 for line in begins if line.at_ns > at_ns)


def _finding(killed: list[float], control: list[float], rounds: int) -> Finding:
    usual_ms = statistics.median(control) if control else 0.0
    worst_ms = max(killed, default=0.0) - usual_ms
    return Finding(
        experiment="steward",
        asked=f"a killed steward delays no grant by its stand-by time, {STAND_BY_S:g} s, or more",
        found=f"{len(killed)} tasks had not begun in {rounds} kills; they did after {_words(killed)}; without a kill "
        f"{len(control)}, after {_words(control)}; so delayed by {worst_ms:.0f} ms at worst",
        holds=bool(killed) and worst_ms < STAND_BY_S * 1e3,
        figures={
            "rounds": rounds,
            "batch": BATCH,
            "killed": {**spread(killed), "times_ms": [round(one, 1) for one in killed]},
            "control": {**spread(control), "times_ms": [round(one, 1) for one in control]},
            "delay_worst_ms": round(worst_ms, 1),
        },
    )


def _words(times_ms: list[float]) -> str:
    if not times_ms:
        return "-"
    return f"{statistics.median(times_ms):.0f} ms at the median, {max(times_ms):.0f} at worst"
