"""One of five nodes has a busy processor: does it win fewer contests?

It may use processor 0 alone, the others processor 1: a node sees how busy the processors are that it may use. First
as a control nothing else runs on processor 0; then endless loops do. Tasks come one after the other at the other
nodes, and leave most slots free, so that each contest has all five to choose from.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from bench.contests.finding import Finding, chance_of_at_most
from bench.contests.orders import contests, set_strategy, submit
from bench.contests.site import Seat, Site
from mesh.bench.contestant import BenchError
from mesh.bench.progress import Progress

QUEUE: Final = "contest"
NODES: Final = 5
SLOTS: Final = 4
TASKS: Final = 150
TASKS_MIN: Final = 100
HOLD_S: Final = 0.2
GAP_S: Final = 0.1
WARM_S: Final = 8.0
"""By then a load is seen for what it is: it is smoothed over three seconds."""

QUIET_MAX: Final = 0.7
"""Where others keep a processor busier than this that should be idle, the experiment would say nothing."""

LOOPS: Final = 2
CHANCE_MAX: Final = 0.001
SEED: Final = 2


def play(scale: float, progress: Progress) -> list[Finding]:
    """Count the winners of contests, without and with the loops.

    Raises:
        BenchError: this host has fewer than two processors, or others keep them busy.
    """
    if not {0, 1} <= os.sched_getaffinity(0):
        raise BenchError(
            f"processors 0 and 1 are expected, found {sorted(os.sched_getaffinity(0))}: run this where both may be used"
        )
    count = max(TASKS_MIN, round(TASKS * scale))
    names = [f"n{number}" for number in range(1, NODES + 1)]
    *others, busy = names  # the last to come does not vote
    seats = [Seat(name=name, slots=SLOTS, processor=int(name != busy)) for name in names]
    rng = random.Random(SEED)
    with Site(seats) as site:
        set_strategy(site, QUEUE, "contest")
        progress.task("busy: control")
        control, shares = _winners(site, others, rng, count)
        progress.say(f"busy, control: won {_words(control)}; processors {_shares(shares)} busy")
        _check_quiet(shares, (0, 1))
        progress.task("busy: with a busy processor")
        site.burn(0, LOOPS)
        loaded, shares = _winners(site, others, rng, count)
        progress.say(f"busy, {busy} is: won {_words(loaded)}; processors {_shares(shares)} busy")
        _check_quiet(shares, (1,))
    return [_finding(busy, control, loaded)]


def _winners(
    site: Site, doors: list[str], rng: random.Random, count: int
) -> tuple[Counter[str], dict[int, float]]:
    """Submit tasks one after the other.

    Returns who won how many contests once the loads were known, and how busy each processor was meanwhile (0 to 1).

    Raises:
        BenchError: there were too few contests.
    """
    clients = [site.client(name) for name in doors]
    ids: list[str] = []
    task: dict[str, Any] = {"argv": site.diary.argv(HOLD_S), "queue": QUEUE}
    warm = round(WARM_S / GAP_S)
    next_s = time.monotonic()
    before = _ticks()
    for number in range(warm + count):
        before = _ticks() if number == warm else before
        found = submit(rng.choice(clients), [task])
        ids += found if number >= warm else []
        next_s += GAP_S
        time.sleep(max(0.0, next_s - time.monotonic()))
    after = _ticks()
    for client in clients:
        client.close()
    site.diary.wait_ended(ids, 60.0)
    winners = [one["winner"] for one in contests(site, ids).values() if one["winner"] is not None]
    if len(winners) < TASKS_MIN * 0.9:
        raise BenchError(
            f"contests of most of {count} tasks are expected, found {len(winners)} that somebody won"
        )
    shares = {
        number: (after[number][0] - before[number][0])
        / max(1, after[number][1] - before[number][1])
        for number in before
    }
    return Counter(winners), shares


def _ticks() -> dict[int, tuple[int, int]]:
    """Return of each processor the ticks in which it was busy, and all."""
    found = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *words = line.split()
        if name.startswith("cpu") and name != "cpu":
            ticks = [int(word) for word in words[:8]]  # user to steal; guests are counted as user
            found[int(name[3:])] = sum(ticks) - ticks[3] - ticks[4], sum(ticks)
    return found


def _check_quiet(shares: dict[int, float], idle: tuple[int, ...]) -> None:
    loud = [number for number in idle if shares[number] > QUIET_MAX]
    if loud:
        raise BenchError(
            f"processors {', '.join(map(str, idle))} should have been mostly idle, found {_shares(shares)} busy: run "
            "this with nothing beside"
        )


def _shares(shares: dict[int, float]) -> str:
    return ", ".join(f"{number} {share:.0%}" for number, share in sorted(shares.items()))


def _finding(busy: str, control: Counter[str], loaded: Counter[str]) -> Finding:
    fair = 1 / NODES
    before, after = control[busy] / control.total(), loaded[busy] / loaded.total()
    chance = chance_of_at_most(loaded[busy], loaded.total(), fair)
    # A control in which it won none says nothing.
    against = chance_of_at_most(loaded[busy], loaded.total(), before)
    return Finding(
        experiment="busy",
        asked=f"of {NODES} nodes the one with a busy processor wins fewer contests than a fifth, and than without the "
        f"load, each by chance less than once in {1 / CHANCE_MAX:.0f}",
        found=f"{loaded[busy]} of {loaded.total()} ({after:.0%}; p {chance:.1g}), without the load {control[busy]} of "
        f"{control.total()} ({before:.0%}; p {against:.1g}); won {_words(loaded)}, without it {_words(control)}",
        holds=max(chance, against) < CHANCE_MAX,
        figures={
            "busy": busy,
            "control": dict(control),
            "loaded": dict(loaded),
            "p_against_fair": chance,
            "p_against_control": against,
        },
    )


def _words(winners: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(winners.items()))
