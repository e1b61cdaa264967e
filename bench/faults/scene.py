"""One run: nodes, clients that submit, and one fault applied while tasks run; then everything must end.

start ─► submit (several clients, several nodes) ─► fault, heal, fault, heal … ─► all over ─► judged
"""

from __future__ import annotations

import json
import random
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.faults.client import Pace, submit_all
from bench.faults.stage import Stage
from bench.faults.tail import Tail
from bench.faults.verdict import (
    SHOWN_MAX,
    Verdict,
    acknowledged,
    is_dead_letter,
    judge,
    settle,
    write_told,
)
from mesh.core.ids import NodeId
from mesh.errors import MeshError
from mesh.fleet.clearing import wait_until
from mesh.placement.cells import cell_of
from mesh.placement.rendezvous import rank
from mesh.tasks.body import task_key

RECORDER: Final = Path(__file__).parents[2] / "tests" / "process" / "recorder.py"
EVERY_S: Final = 0.05
CLIENTS: Final = 4
BATCH: Final = 50
BATCHES_MIN: Final = 5
BUSY_TIMEOUT_S: Final = 60.0
RATHER_S: Final = 3.0
"""For so long a victim that runs a long task is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is done."""

    nodes: int = 8
    tasks: int = 2_000
    slots: int = 2
    task_s: float = 0.2
    long_every: int = 25
    """One of so many tasks is long: what is over before its lease cannot run twice at one time."""

    long_s: float = 6.0
    submit_for_s: float = 20.0
    """Over so long the submissions are spread."""

    times: int = 3
    """How often the fault is applied, at most: no longer than tasks run."""

    settle_timeout_s: float = 180.0
    """For so long after the last heal all that was acknowledged may take to end."""


class Scene:
    """What a fault has in its hands."""

    def __init__(
        self, stage: Stage, size: Size, place: Path, rng: random.Random, say: Callable[[str], None]
    ) -> None:
        self.stage = stage
        self.say = say
        self.size = size
        self.rng = rng
        self.log, self.acks = place / "log", place / "acks"
        self.place = place
        self.tail = Tail(self.log)
        self.applied = 0
        self.steward: str | None = None
        """The first voter of every task, if the fault has chosen one."""

        self._long: set[str] = set()
        self._jobs: list[Future[list[str]]] = []
        self._accepted: set[str] | None = None  # once all clients are done
        self._mark = secrets.token_hex(4)

    def orders(self) -> list[dict[str, Any]]:
        """Return the tasks of this run, as requests."""
        size = self.size
        recorder = [
            sys.executable,
            "-I",
            "-S",
            str(RECORDER),
            str(self.log),
            "--every-s",
            str(EVERY_S),
        ]
        found = []
        for number, task_id in enumerate(self._task_ids()):
            is_long = number % size.long_every == 0
            length_s = size.long_s if is_long else size.task_s
            if is_long:
                self._long.add(task_id)
            found.append({"id": task_id, "argv": [*recorder, "--for-s", str(length_s)]})
        return found

    def _task_ids(self) -> list[str]:
        steward, voters = self.steward, self.stage.voters()
        ids = self.stage.ids()
        ranked = [(NodeId(ids[name]), 1) for name in voters]
        found: list[str] = []
        number = 0
        while len(found) < self.size.tasks:
            number += 1
            task_id = f"{self._mark}-{number}"
            cell = cell_of(task_key(task_id).decode("latin-1"))
            if steward is None or rank(cell, ranked)[0] == ids[steward]:
                found.append(task_id)
        return found

    def submit(self, pool: ThreadPoolExecutor, copies: int) -> None:
        """Let several clients submit everything through several nodes, each task by so many of them."""
        orders = self.orders()
        doors = [self.stage.node(name).data for name in self.stage.running()]
        for number in range(CLIENTS):
            share = orders[number::CLIENTS]
            batch = min(BATCH, -(-len(share) // BATCHES_MIN))
            pace = Pace(batch=batch, every_s=self.size.submit_for_s * batch / len(share))
            for copy in range(copies):
                turned = (
                    doors[(number + copy) % len(doors) :] + doors[: (number + copy) % len(doors)]
                )
                self._jobs.append(pool.submit(submit_all, turned, share, self.acks, pace))

    def is_over(self) -> bool:
        """Say whether all is submitted and has run to an end, so that a fault would hit nothing."""
        if not all(job.done() for job in self._jobs):
            return False
        if self._accepted is None:
            self._accepted = set(acknowledged(self.acks))
        self.tail.read()
        return self._accepted <= self.tail.done

    def finish_submitting(self) -> None:
        """Wait for the clients; what they could not get acknowledged is none of the mesh's promises."""
        for job in self._jobs:
            job.result()

    # For faults.

    def rounds(self, times: int | None = None) -> Sequence[int]:
        """Return the numbers of the rounds; ask `is_over` in each."""
        return range(times or self.size.times)

    def victim(self, among: Sequence[str]) -> str | None:
        """Wait until one of these runs a task, rather a long one, and return it; None: everything is over before."""
        rather_until = time.monotonic() + RATHER_S

        def find() -> str | None:
            self.tail.read()
            running = sorted(set(self.stage.running()).intersection(among))
            pids = {name: self.stage.node(name).pid for name in running}
            for tasks in (self._long, None) if time.monotonic() > rather_until else (self._long,):
                busy = self.tail.busy_pids(tasks)
                if found := [name for name in running if pids[name] in busy]:
                    return self.rng.choice(found)
            return "" if self.is_over() else None

        return (
            wait_until(find, BUSY_TIMEOUT_S, lambda: _QuietError(f"none of {among} runs a task"))
            or None
        )

    def wait_busy(self) -> bool:
        """Wait until any node runs a task; False: everything is over."""
        return self.victim(self.stage.running()) is not None

    def voter_or_other(self, number: int) -> list[str]:
        """Return the voters for every other round, beginning with the first, else those that do not vote."""
        voters = self.stage.voters()
        others = [name for name in self.stage.running() if name not in voters]
        return voters if number % 2 == 0 or not others else others

    def hold(self, seconds: float) -> None:
        """Let a fault last."""
        time.sleep(seconds)


class _QuietError(MeshError):
    """Nothing runs where something should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A row of the table of faults."""

    name: str
    play: Callable[[Scene], None]
    is_apart: bool = False
    """It needs hosts of their own."""

    needs_root: bool = False
    prepare: Callable[[Stage], None] | None = None
    """Before the first node is started."""

    choose: Callable[[Scene], None] | None = None
    """Before the first task is submitted."""

    copies: int = 1
    """By how many clients each task is submitted."""

    is_extra_wrong: bool = False
    spare: int = 0


def run(fault: Fault, size: Size, seed: int, say: Callable[[str], None]) -> Verdict:
    """Play one fault to its end, and judge. What shows a violation is kept, and said where."""
    place = Path(tempfile.mkdtemp(prefix=f"mesh-fault-{fault.name}-"))
    spare = fault.spare
    with Stage(size.nodes, is_apart=fault.is_apart, slots=size.slots, spare=spare) as stage:
        if fault.prepare is not None:
            fault.prepare(stage)
        stage.start_all()
        scene = Scene(stage, size, place, random.Random(f"{fault.name} {seed}"), say)
        if fault.choose is not None:
            fault.choose(scene)
        verdict = _play(fault, scene)
        if not verdict.is_good:
            for node in stage.fleet.nodes.values():
                shutil.copy(node.log, place)
            say(f"{fault.name}: what shows it is in {place}")
    if verdict.is_good:
        shutil.rmtree(place)
    return verdict


def _play(fault: Fault, scene: Scene) -> Verdict:
    begun = time.monotonic()
    with ThreadPoolExecutor(CLIENTS * fault.copies) as pool:
        scene.submit(pool, fault.copies)
        fault.play(scene)
        scene.finish_submitting()
    healed = time.monotonic()
    tasks = acknowledged(scene.acks)
    over, left = settle(scene.stage.doors, tasks, scene.size.settle_timeout_s)
    ended = time.monotonic()
    scene.tail.read()
    write_told(scene.acks, over, scene.tail.starts)
    odd = [task for task in over if task["state"] != "done" or len(task["attempts"]) > 1]
    (scene.place / "tasks.json").write_text(json.dumps(odd, indent=1))
    report = judge(scene.log, scene.acks, is_extra_wrong=fault.is_extra_wrong)
    return Verdict(
        fault=fault.name,
        applied=scene.applied,
        tasks=scene.size.tasks,
        acknowledged=len(tasks),
        counts=report["counts"],
        extra=report["extra_runs"]["count"],
        causes=report["extra_runs"]["causes"],
        unsettled=tuple(left),
        told=report["told"],
        dead_letters=sum(map(is_dead_letter, over)),
        seconds=round(ended - begun, 1),
        settled_s=round(ended - healed, 1),
        violations=tuple(report["violations"][:SHOWN_MAX]),
    )
