"""What became of a run with a fault: every task is asked for, and the independent checker judges.

    the tasks' log ─────────────┐
    what clients were told ─────┴─► tests/process/checker.py ─► Verdict: one line, or JSON

The mesh's own word is taken for nothing but the causes of its attempts and what clients were told.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.faults.tail import Start
from mesh.client import Client
from mesh.errors import CommandRefused, MeshError
from tests.process.recorder import append

CHECKER: Final = Path(__file__).parents[2] / "tests" / "process" / "checker.py"
TERMINAL: Final = frozenset({"done", "failed", "cancelled"})
LOSSES: Final = 3
"""So many in a row make a dead letter."""

ASKERS: Final = 4
SHOWN_MAX: Final = 20
_ANSWER_S: Final = 10.0
_POLL_S: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One fault, and what the checker found."""

    fault: str
    applied: int
    """How often it was applied while tasks ran."""

    tasks: int
    acknowledged: int
    counts: dict[str, int]
    """By kind of violation, as the checker names them."""

    extra: int
    causes: dict[str, int]
    unsettled: tuple[str, ...] = ()
    """Acknowledged, and the mesh did not say in time that they are over."""

    told: dict[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    """Failed, for each took too many owners with it: so the mesh says, and its attempts agree."""

    seconds: float = 0.0
    settled_s: float = 0.0
    """From the last heal, or the last acknowledgement, until all had ended."""

    violations: tuple[dict[str, Any], ...] = ()

    @property
    def is_good(self) -> bool:
        """Say whether nothing is wrong: none of these tasks fails by itself, and nobody cancels one."""
        odd = sum(count for state, count in self.told.items() if state != "done")
        is_explained = odd == self.dead_letters
        return not any(self.counts.values()) and not self.unsettled and is_explained

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape."""
        return {**asdict(self), "is_good": self.is_good}

    def line(self) -> str:
        """Return it for people."""
        counts = self.counts
        causes = ", ".join(f"{cause} {count}" for cause, count in sorted(self.causes.items()))
        parts = [
            f"{self.fault:<16} x{self.applied:<2} {self.tasks} tasks, {self.acknowledged} acknowledged",
            f"lost {counts['lost']}",
            f"duplicated {counts['duplicated']}",
            f"overlapping {counts['overlapping']}",
            f"out of order {counts['out_of_order'] + counts['stale_write']}",
            f"extra runs {self.extra} ({causes or 'none'})",
            f"{self.seconds:.1f} s, settled after {self.settled_s:.1f} s",
        ]
        told = {"lost", "duplicated", "overlapping", "out_of_order", "stale_write"}
        parts += [
            f"{kind} {count}".upper()
            for kind, count in counts.items()
            if count and kind not in told
        ]
        if self.dead_letters:
            parts.append(f"dead letters {self.dead_letters}")
        if not self.is_good and (
            odd := {state: n for state, n in self.told.items() if state != "done"}
        ):
            parts.append(f"TOLD {odd}")
        if self.unsettled:
            parts.append(f"UNSETTLED {len(self.unsettled)}")
        return "  ".join(parts)


def acknowledged(acks: Path) -> list[str]:
    """Return the tasks that clients hold acknowledged, in order."""
    lines = map(json.loads, acks.read_text().splitlines())
    return list(dict.fromkeys(line["task"] for line in lines if line["kind"] == "acknowledged"))


def settle(
    doors: Callable[[], Sequence[Path]], tasks: Sequence[str], timeout_s: float
) -> tuple[list[dict[str, Any]], list[str]]:
    """Ask for each task until it is over; return those that are, and the ids of those that are not in time.

    `doors` gives the nodes that can be asked, by their data directories.
    """
    deadline = time.monotonic() + timeout_s
    left, found = list(tasks), []
    while left:
        standing = doors()
        with ThreadPoolExecutor(ASKERS) as pool:
            shares = [left[n::ASKERS] for n in range(ASKERS)]
            jobs = [
                pool.submit(_ask, standing[n % len(standing)], share)
                for n, share in enumerate(shares)
            ]
            over = [task for job in jobs for task in job.result()]
        found += over
        ids = {task["id"] for task in over}
        left = [task_id for task_id in left if task_id not in ids]
        if not left or time.monotonic() > deadline:
            break
        time.sleep(_POLL_S)
    return found, left


def _ask(door: Path, tasks: Iterable[str]) -> list[dict[str, Any]]:
    """Return those tasks that a node says are over; whatever it refuses is asked for again."""
    over = []
    with Client(door, timeout_s=_ANSWER_S) as client:
        for task_id in tasks:
            try:
                task = client.call("task", id=task_id)
            except CommandRefused:
                continue
            except MeshError:
                break  # the rest is asked for at another node
            if task["state"] in TERMINAL:
                over.append(task)
    return over


def write_told(acks: Path, tasks: Iterable[dict[str, Any]], starts: Iterable[Start]) -> None:
    """Append what the mesh says of ended tasks: how each ended, and why each attempt was started.

    An attempt whose token nobody has written down is known by its number, which its run has in the log.
    """
    tokens = {(start.task, start.attempt): start.token for start in starts}
    for task in tasks:
        for attempt in task["attempts"]:
            token = attempt["token"] or tokens.get((task["id"], str(attempt["number"])))
            if token is not None:
                cause = attempt["cause"]
                append(acks, kind="attempt", task=task["id"], token=token, cause=cause)
        append(acks, kind="told", task=task["id"], state=task["state"])


def is_dead_letter(task: dict[str, Any]) -> bool:
    """Say whether a task failed since its last attempts were all lost without a verdict."""
    last = task["attempts"][-LOSSES:]
    is_lost = [attempt["exit_code"] is None for attempt in last]
    return bool(task["state"] == "failed" and len(last) == LOSSES and all(is_lost))


def judge(log: Path, acks: Path, *, is_extra_wrong: bool) -> dict[str, Any]:
    """Let the checker judge, as a program of its own.

    Raises:
        MeshError: it had nothing to judge.
    """
    options = ["--no-extra"] if is_extra_wrong else []
    log.touch()
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(CHECKER), str(log), str(acks), "--json", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in {0, 1}:
        raise MeshError(f"the checker could not judge: {done.stderr.strip()}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report
