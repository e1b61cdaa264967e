"""`mesh bench tasks`: how fast real nodes take tasks in, start them, end them, and start them elsewhere.

    start -> singly, at rest -> in batches, while they run -> all due at once -> a node that runs one is killed

Each stage has the mesh to itself. How late a node's event loop is while it is busy it tells itself; it shows as well in
how long it takes to answer a question about itself, asked all the while.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from mesh.bench.contestant import BenchError
from mesh.bench.detect import cleared_away
from mesh.bench.faults import blame_of
from mesh.bench.idle import sum_usage
from mesh.bench.joining import await_whole, bring_back, start_all
from mesh.bench.ledger import Ledger, now_ns
from mesh.bench.mesh_nodes import MeshNodes
from mesh.bench.ports import free_ports
from mesh.bench.progress import Progress
from mesh.bench.task_figures import TaskFigures, Throughput, times_of
from mesh.client import Client
from mesh.errors import MeshError
from mesh.fleet.clearing import signals_as_exits, wait_until

STEPS: Final = 4
BATCH: Final = 100
VOTERS: Final = 3
_SINGLES_MAX: Final = 100
_ALONE: Final = 20
_SAMPLE_S: Final = 0.25
_POLL_S: Final = 1.0
_VOTERS_S: Final = {"local": 30.0, "lan": 240.0, "wan": 240.0}
_START_S: Final = 30.0
_MOVE_S: Final = {"local": 30.0, "lan": 60.0, "wan": 240.0}
_HOLD_S: Final = 600.0
_PATIENCE_S: Final = 600.0
_TRUE: Final = ("true",)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """What is to be measured."""

    nodes: int = 3
    tasks: int = 1_000
    slots: int = 2
    profile: str = "local"
    recoveries: int = 3

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape."""
        return {**asdict(self), "batch": BATCH}


def measure(settings: TaskSettings, progress: Progress) -> TaskFigures:
    """Measure everything; nothing is left running. What failed is said in the figures."""
    figures = TaskFigures()
    with signals_as_exits(), cleared_away() as stack:
        run = _Run(settings, progress, figures, stack)
        try:
            for step in (run.start, run.singly, run.batches, run.drain, run.recover):
                step()
        except MeshError as error:
            figures.failure = str(error)
    return figures


class _Run:
    """The steps over one set of nodes."""

    def __init__(
        self, settings: TaskSettings, progress: Progress, figures: TaskFigures, stack: ExitStack
    ) -> None:
        self._settings = settings
        self._progress = progress
        self._figures = figures
        place = Path(tempfile.mkdtemp(prefix="mesh-bench-tasks-"))
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        self._ledger = Ledger(place / "ledger")
        names = [f"n{number}" for number in range(1, settings.nodes + 1)]
        self._nodes = MeshNodes(
            dict(zip(names, free_ports(len(names)), strict=True)),
            settings.profile,
            fault_hook=False,
            settings=("--slots", str(settings.slots)),
        )
        stack.callback(self._nodes.close)
        figures.about = f"{self._nodes.about}, {settings.nodes} nodes, {settings.slots} slots each"

    def start(self) -> None:
        """Start the nodes, and wait until three of them vote."""
        self._progress.task("starting")
        start_all(self._nodes)

        def are_seated() -> bool | None:
            found = [self._ask(name, "status")["registers"] for name in self._nodes.members]
            voting = sum(one["votes"] for one in found)
            return (voting >= VOTERS and all(len(one["voters"]) == VOTERS for one in found)) or None

        wait_until(
            are_seated,
            _VOTERS_S[self._settings.profile],
            lambda: BenchError(f"mesh: {VOTERS} voters are expected, and did not come in time"),
        )

    def singly(self) -> None:
        """Submit one task after the other to nodes at rest: how soon it is acknowledged, and begins."""
        self._progress.task("singly")
        answered, begun = [], []
        members = self._nodes.members
        for number in range(min(_SINGLES_MAX, self._settings.tasks)):
            with Client(self._nodes.data(members[number % len(members)])) as client:
                client.call("status")  # connected, before the clock is read
                began_ns = now_ns()
                task_id = client.call("submit", argv=self._ledger.argv())["id"]
                answered.append((now_ns() - began_ns) / 1e6)
                started = self._ledger.wait(task_id, 1, _START_S)
                begun.append((started.at_ns - began_ns) / 1e6)
                self._wait_ended(client, task_id)
        self._figures.acknowledged = times_of(answered)
        self._figures.pickup = times_of(begun)
        self._figures.command = times_of(self._ledger.alone_ms(_ALONE))
        self._progress.advance()

    def batches(self) -> None:
        """Submit all in batches through one node, while all nodes run them."""
        self._progress.task(f"{self._settings.tasks} tasks in batches")
        cpu_ns = self._cpu_ns()
        with self._watched() as watched:
            began = time.time()
            ids = self._submit({"argv": list(_TRUE)})
            enqueuing_s = time.time() - began
            self._wait_counted(len(ids))
            late = [self._ask(name, "status")["loop_late"] for name in self._nodes.members]
        self._figures.loop_late_ms = max(
            (one["p99_ms"] for one in late if one["p99_ms"] is not None), default=None
        )
        self._figures.cpu_ms = round((self._cpu_ns() - cpu_ns) / len(ids) / 1e6, 2)
        ending_s = max(self._ended(ids)) - began
        self._figures.status = times_of(watched.times_ms)
        self._figures.blame = blame_of(self._nodes.log.since(watched.began_ns), "")
        self._figures.throughput = Throughput(
            enqueued_s=round(len(ids) / enqueuing_s, 1),
            end_to_end_s=round(len(ids) / ending_s, 1),
            seconds={"enqueue": round(enqueuing_s, 3), "end_to_end": round(ending_s, 3)},
        )
        self._progress.advance()

    def drain(self) -> None:
        """Submit all for one moment that is still to come, and time what follows."""
        before = self._figures.throughput
        assert before is not None
        due = time.time() + 2.0 + 2 * before.seconds["enqueue"]
        self._progress.task(f"{self._settings.tasks} tasks, due at one moment")
        counted = self._settings.tasks
        with self._watched() as watched:
            began = time.time()
            ids = self._submit({"argv": list(_TRUE), "not_before": due})
            deferring_s = time.time() - began
        self._figures.status_deferring = times_of(watched.times_ms)
        if time.time() > due:
            raise BenchError("mesh: the tasks were due before all of them were acknowledged")
        self._wait_counted(counted + len(ids))
        ending_s = max(self._ended(ids)) - due
        self._figures.throughput = Throughput(
            enqueued_s=before.enqueued_s,
            end_to_end_s=before.end_to_end_s,
            deferred_s=round(len(ids) / deferring_s, 1),
            drained_s=round(len(ids) / ending_s, 1),
            seconds={
                **before.seconds,
                "defer": round(deferring_s, 3),
                "drain": round(ending_s, 3),
            },
        )
        self._progress.advance()

    def recover(self) -> None:
        """Kill a node that runs a task, again and again: how soon does that run elsewhere?"""
        found = []
        for number in range(self._settings.recoveries):
            self._progress.task(f"recovery {number + 1} of {self._settings.recoveries}")
            found.append(self._recover_one())
        if found:
            self._figures.recoveries_s = [round(one, 3) for one in found]
            self._figures.recovery_s = round(statistics.median(found), 3)
        self._progress.advance()

    def _recover_one(self) -> float:
        nodes = self._nodes
        task_id = self._ask(nodes.members[0], "submit", argv=self._ledger.argv(_HOLD_S))["id"]
        first = self._ledger.wait(task_id, 1, _START_S)
        owner = next(name for name in nodes.members if nodes.pid(name) == first.node_pid)
        killed_ns = now_ns()
        nodes.kill(owner)
        second = self._ledger.wait(task_id, 2, _MOVE_S[self._settings.profile])
        other = next(name for name in nodes.members if name != owner)
        self._ask(other, "cancel", id=task_id)
        bring_back(nodes, owner, other)
        await_whole(nodes)
        return (second.at_ns - killed_ns) / 1e9

    def _ask(self, member: str, what: str, **how: Any) -> Any:  # noqa: ANN401 - JSON comes back
        with Client(self._nodes.data(member)) as client:
            return client.call(what, **how)

    def _submit(self, task: dict[str, Any]) -> list[str]:
        """Submit all tasks in batches at the first node; return their ids."""
        ids: list[str] = []
        with Client(self._nodes.data(self._nodes.members[0])) as client:
            while (left := self._settings.tasks - len(ids)) > 0:
                answer = client.call("submit_many", tasks=[task] * min(BATCH, left))
                for one in answer["tasks"]:
                    if "error" in one:
                        raise BenchError(f"mesh: a task was not taken: {one['error']}")
                    ids.append(one["id"])
        return ids

    def _wait_counted(self, count: int) -> None:
        """Wait until the first voter counts so many done tasks more than those submitted singly."""
        singles = min(_SINGLES_MAX, self._settings.tasks)
        voter = self._ask(self._nodes.members[0], "status")["registers"]["voters"][0]

        def is_done() -> bool | None:
            return self._ask(voter, "tasks", limit=0)["counts"]["done"] >= singles + count or None

        deadline = time.monotonic() + _PATIENCE_S
        while not is_done():
            if time.monotonic() > deadline:
                raise BenchError(f"mesh: {count} tasks did not end within {_PATIENCE_S:g} s")
            time.sleep(_POLL_S)

    def _ended(self, ids: Sequence[str]) -> list[float]:
        """Return when each ended, in Unix seconds, as a majority holds it."""
        with Client(self._nodes.data(self._nodes.members[0])) as client:
            found = [client.call("task", id=task_id) for task_id in ids]
        if unfinished := [task["id"] for task in found if task["state"] != "done"]:
            raise BenchError(f"mesh: not done: {', '.join(unfinished[:3])}")
        return [task["ended"] for task in found]

    def _cpu_ns(self) -> int:
        """Return the processor time that all nodes and their guardians have used, without the commands'."""
        nodes = self._nodes
        pids = [(nodes.pid(member), nodes.pids[member]) for member in nodes.members]
        return sum(sum_usage(pair).cpu_ns for pair in pids)

    def _wait_ended(self, client: Client, task_id: str) -> None:
        wait_until(
            lambda: client.call("task", id=task_id)["ended"],
            _START_S,
            lambda: BenchError(f"mesh: task {task_id} did not end"),
        )

    @contextmanager
    def _watched(self) -> Iterator[_Watched]:
        """Ask every node for its status, all the while.

        Raises:
            BenchError: one did not answer; what the others took is no figure of the whole.
        """
        watched = _Watched()
        is_over = threading.Event()

        def watch(member: str) -> None:
            try:
                self._sample(member, watched, is_over)
            except Exception as error:  # noqa: BLE001 - raised below: a thread has nobody to raise it to
                watched.failures.append((member, error))

        threads = [threading.Thread(target=watch, args=(name,)) for name in self._nodes.members]
        for thread in threads:
            thread.start()
        try:
            yield watched
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
        if watched.failures:
            member, error = watched.failures[0]
            raise BenchError(
                f"mesh: {member} is expected to tell its status all the while, and failed to: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _sample(self, member: str, watched: _Watched, is_over: threading.Event) -> None:
        with Client(self._nodes.data(member)) as client:
            while not is_over.wait(_SAMPLE_S):
                began_ns = now_ns()
                client.call("status")
                watched.times_ms.append((now_ns() - began_ns) / 1e6)


@dataclass(slots=True)
class _Watched:
    times_ms: list[float] = field(default_factory=list)
    failures: list[tuple[str, Exception]] = field(default_factory=list)
    began_ns: int = field(default_factory=time.time_ns)
