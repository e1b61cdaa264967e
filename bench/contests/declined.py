"""A task's home has no slot: how long until somebody else runs the task, and how long where its home takes it at once?

    two tasks of one key, so with one home, are submitted at one moment through two voters; their home has one slot
        │                                              each voter knows that slot to be free, and asks for it
        ├── the first is claimed there at once
        └── the second is declined, and goes to a contest among the others

Both have ids that were drawn before, each of the voter that it is submitted at: so they are offered and claimed. (Of an
id that the voter draws itself, the creating write names the home, which lets go of it: the rows `named`.) Between the
pairs single tasks of that home run as a control. Times are from just before the submission until the command has
written its begin, its own start included.
"""

from __future__ import annotations

import random
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, Final

from bench.contests.diary import now_ns
from bench.contests.finding import Finding, spread
from bench.contests.orders import draw_id, draw_key, submit
from bench.contests.site import Seat, Site
from mesh.bench.contestant import BenchError
from mesh.bench.progress import Progress

NODES: Final = 5
SLOTS: Final = 4
HOLD_S: Final = 0.15
ROUNDS: Final = 40
ROUNDS_MIN: Final = 10
REST_S: Final = 0.25
"""Between two rounds: a slot that is free again is held for a tenth of a second for whoever was told of it."""

COST_MS_MAX: Final = 20.0
START_S: Final = 20.0
SEED: Final = 4


class _Times:
    """What was measured of one way of submitting, in ms."""

    def __init__(self) -> None:
        self.alone: list[float] = []
        self.taken: list[float] = []
        self.declined: list[float] = []


def play(scale: float, progress: Progress) -> list[Finding]:
    """Play pairs and single tasks by turns, with ids given and not."""
    rounds = max(ROUNDS_MIN, round(ROUNDS * scale))
    *names, home = [
        f"n{number}" for number in range(1, NODES + 1)
    ]  # the last to come does not vote
    seats = [*(Seat(name=name, slots=SLOTS) for name in names), Seat(name=home, slots=1)]
    found = {"offered": _Times(), "named": _Times()}
    with Site(seats) as site:
        rng = random.Random(SEED)
        for number in range(rounds):
            progress.task(f"declined: round {number + 1} of {rounds}")
            for way, times in found.items():
                _round(site, home, rng, times, is_named=way == "named")
    for way, times in found.items():
        progress.say(f"declined, {way}: {_words(times)}")
    return [_finding(way, times) for way, times in found.items()]


def _round(site: Site, home: str, rng: random.Random, times: _Times, *, is_named: bool) -> None:
    """Run one task alone, then a pair."""
    doors = [name for name in site.voters if name != home][:2]
    key = draw_key(site, home, rng)
    task: dict[str, Any] = {"argv": site.diary.argv(HOLD_S), "key": key}

    def one(door: str) -> dict[str, Any]:
        return task if is_named else {**task, "id": draw_id(site, door, rng)}

    for begun_at, _, took_ms in _submit(site, {doors[0]: one(doors[0])}):
        if begun_at == home:
            times.alone.append(took_ms)
    for begun_at, task_id, took_ms in _submit(site, {door: one(door) for door in doors}):
        if begun_at == home:
            times.taken.append(took_ms)
        elif _was_declined(site, task_id, is_named=is_named):
            times.declined.append(took_ms)


def _submit(site: Site, tasks: dict[str, dict[str, Any]]) -> list[tuple[str, str, float]]:
    """Submit each task at its node, all at one moment; return of each where it began, its id, and after how many ms.

    Returns once all slots are free again.
    """
    together = Barrier(len(tasks))

    def hand_over(door: str) -> tuple[str, int]:
        with site.client(door) as client:
            client.call("status")  # connected, before the clock is read
            together.wait(START_S)
            at_ns = now_ns()
            return submit(client, [tasks[door]])[0], at_ns

    with ThreadPoolExecutor(len(tasks)) as pool:
        handed = list(pool.map(hand_over, tasks))
    ids = [task_id for task_id, _ in handed]
    begins = site.diary.wait_begun(ids, START_S)
    site.diary.wait_ended(ids, START_S)
    site.wait_free()
    time.sleep(REST_S)
    return [
        (site.owner(line), task_id, (line.at_ns - at_ns) / 1e6)
        for line, (task_id, at_ns) in zip(begins, handed, strict=True)
    ]


def _was_declined(site: Site, task_id: str, *, is_named: bool) -> bool:
    """Say whether the records show that its home had no slot: it was let go there, or there was a contest."""
    told = site.ask(site.names[0], "why", whom=task_id)["task"]
    if is_named:
        return any(one["end"] == "released" for one in told["attempts"])
    # In a queue by rendezvous only what its home declined is called out before the home's silence (2 s) counts.
    return bool(told["contests"])


def _finding(way: str, times: _Times) -> Finding:
    if not (times.alone and times.declined):
        raise BenchError(f"no home declined anything, or none took it: {_words(times)}")
    alone, declined = statistics.median(times.alone), statistics.median(times.declined)
    cost_ms = declined - alone
    # Of a pair, the home's own work stands beside: what is left is the decline, and what follows from it.
    beside_ms = declined - statistics.median(times.taken) if times.taken else None
    how = "declines an offer" if way == "offered" else "lets go of a task that it was named for"
    return Finding(
        experiment="declined",
        asked=f"a home that {how} costs less than {COST_MS_MAX:g} ms at the median until another node runs it",
        found=f"{cost_ms:.1f} ms ({_words(times)}"
        + ("" if beside_ms is None else f"; {beside_ms:.1f} ms beside the other of its pair")
        + ")",
        holds=cost_ms < COST_MS_MAX,
        figures={
            "way": way,
            "cost_ms": round(cost_ms, 2),
            "cost_beside_its_pair_ms": None if beside_ms is None else round(beside_ms, 2),
            "alone": spread(times.alone),
            "taken_of_a_pair": spread(times.taken),
            "declined": spread(times.declined),
        },
    )


def _words(times: _Times) -> str:
    rows = (
        ("alone at its home", times.alone),
        ("taken at its home, of a pair", times.taken),
        ("elsewhere", times.declined),
    )
    return "; ".join(
        f"{name} {statistics.median(found):.1f} ms, {len(found)} of them" if found else f"{name} -"
        for name, found in rows
    )
