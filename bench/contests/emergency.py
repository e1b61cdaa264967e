"""A node that is kept for high load joins while that lasts, and withdraws after it.

    tasks that fill all slots of the others, and as many that wait ──► open ──► the first of them begins there
    all are cancelled ──► standby

Times are from the submission, and from the last cancellation; what a node is shows `mesh members --json` at another.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any, Final

from bench.contests.finding import Finding, spread
from bench.contests.orders import submit
from bench.contests.site import Seat, Site
from mesh.bench.contestant import BenchError
from mesh.bench.progress import Progress
from mesh.contest.standby import HOLD_S as LASTS_S
from mesh.fleet.clearing import wait_until

NODES: Final = 4
SLOTS: Final = 2
HOLD_S: Final = 60.0
ROUNDS: Final = 3
JOIN_S_MAX: Final = 15.0
LEAVE_S_MAX: Final = 15.0
WAIT_S: Final = 40.0


def play(scale: float, progress: Progress) -> list[Finding]:
    """Let the load come and go."""
    *names, spare = [f"n{number}" for number in range(1, NODES + 1)]
    seats = [*(Seat(name=name, slots=SLOTS) for name in names)]
    seats.append(Seat(name=spare, slots=SLOTS, options=("--class", "emergency")))
    opened: list[float] = []
    begun: list[float] = []
    withdrawn: list[float] = []
    rounds = max(1, round(ROUNDS * scale))
    with Site(seats) as site:
        for number in range(rounds):
            progress.task(f"emergency: round {number + 1} of {rounds}")
            for times, found in zip((opened, begun, withdrawn), _round(site, spare), strict=True):
                times.append(found)
            progress.say(
                f"emergency: open after {opened[-1]:.1f} s, its first task after {begun[-1]:.1f} s; standby "
                f"{withdrawn[-1]:.1f} s after the load's end"
            )
    return [finding(opened, begun, withdrawn)]


def _round(site: Site, spare: str) -> tuple[float, float, float]:
    """Return after how many seconds of load it was open, and its first task began; and after how many without, it stood by.

    Raises:
        BenchError: it did none of that in time, or took a task before the load was there.
    """
    _wait_for(site, spare, "standby")
    full = (len(site.names) - 1) * SLOTS
    task: dict[str, Any] = {"argv": site.diary.argv(HOLD_S)}
    began_s = time.time()
    with site.client(site.names[0]) as client:
        ids = submit(client, [task] * (full + SLOTS))
    _wait_for(site, spare, "open")
    opened_s = time.time() - began_s
    site.diary.wait_begun(ids, WAIT_S)
    lines = [line for task_id in ids for line in site.diary.begins(task_id)]
    first_s = first_after_s(
        began_s, [line.at_ns / 1e9 for line in lines if site.owner(line) == spare], spare
    )
    with site.client(site.names[0]) as client:
        for task_id in ids:
            client.call("cancel", id=task_id)
    ended_s = time.time()
    _wait_for(site, spare, "standby")
    withdrawn_s = time.time() - ended_s
    site.wait_free()
    return opened_s, first_s, withdrawn_s


def first_after_s(began_s: float, at_s: Sequence[float], spare: str) -> float:
    """Return how many seconds after the submission the first of these tasks began at the emergency node.

    Raises:
        BenchError: none did, or one did before the load can have lasted.
    """
    if not at_s:
        raise BenchError(f"a task is expected to begin at {spare} while the load lasts, found none")
    first_s = min(at_s) - began_s
    if first_s < LASTS_S:
        raise BenchError(
            f"no task is expected at {spare} before the load has lasted for {LASTS_S:g} s, found one after {first_s:.1f} s"
        )
    return first_s


def _wait_for(site: Site, spare: str, availability: str) -> None:
    def is_so() -> bool | None:
        rows = site.ask(site.names[0], "members")
        return any(r["name"] == spare and r["availability"] == availability for r in rows) or None

    text = f"{spare} should be {availability} within {WAIT_S:g} s"
    wait_until(is_so, WAIT_S, lambda: BenchError(text))


def finding(opened: list[float], begun: list[float], withdrawn: list[float]) -> Finding:
    """Return what was found; each list has a time, in seconds, for each round, one at least."""
    rows = {"open": opened, "first task": begun, "standby after the load": withdrawn}
    words = "; ".join(
        f"{name} {statistics.median(found):.1f} s at the median, {max(found):.1f} at worst"
        for name, found in rows.items()
    )
    return Finding(
        experiment="emergency",
        asked=f"an emergency node joins within {JOIN_S_MAX:g} s of sustained load, and withdraws within {LEAVE_S_MAX:g} s after it",
        found=f"{words}; {len(opened)} rounds",
        holds=max(begun) < JOIN_S_MAX and max(withdrawn) < LEAVE_S_MAX,
        figures={
            name.replace(" ", "_"): spread([1e3 * one for one in found])
            for name, found in rows.items()
        },
    )
