"""What runs on a host: processes that take a while and may fail, and the guardian that stops them on time.

The guardian lives on when the node is stopped or dies: it freezes and kills by the deadlines it was told, by the
host's own clock, and when the node is gone it kills everything, and only then says so. When the whole host is
stopped, nothing goes on; when that goes on, the guardian looks at its deadlines first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mesh.core.effects import StartProcess
from mesh.core.ids import NodeId
from mesh.core.process import ProcessEvent, ProcessExit, ProcessOutput
from mesh.sim.executions import Execution
from tests.sim.registers.clockwork import Clockwork
from tests.sim.tasks.judge import Judge

TERM_S_MAX = 0.3
"""A process ends within this of SIGTERM."""

SHORT_OF_PROCESSES = 0.03
"""So often the host is too short of something to start a command."""


@dataclass(slots=True, eq=False)
class Process:
    """One process of a run, in true time."""

    run_id: int
    execution: Execution
    left_s: float
    exit_code: int
    since: float = 0.0
    is_frozen: bool = False
    freeze_at: float = float("inf")
    kill_at: float = float("inf")
    generation: int = 0
    signals: list[float] = field(default_factory=list)


class Place(Protocol):
    """The host, as its executor sees it."""

    own: NodeId
    clockwork: Clockwork
    judge: Judge
    rng: random.Random

    def clock(self) -> float:
        """Return the host's own time."""

    def true_time(self, moment: float) -> float:
        """Return when a moment of that is."""

    def is_stopped(self) -> bool:
        """Say whether the whole host is."""


class Executor:
    """The processes of one session, and their guardian."""

    def __init__(
        self, place: Place, work: Mapping[str, float], tell: Callable[[ProcessEvent], None]
    ) -> None:
        self._place = place
        self._work = work
        self._tell = tell
        self._processes: dict[int, Process] = {}
        self._deadlines: dict[int, tuple[float, float]] = {}
        self._is_gone = False

    def guard(self, run_id: int, freeze_at: float, kill_at: float) -> None:
        """Take a run's deadlines."""
        self._deadlines[run_id] = freeze_at, kill_at
        process = self._processes.get(run_id)
        if process is not None:
            process.freeze_at, process.kill_at = freeze_at, kill_at
            if process.is_frozen and freeze_at > self._place.clock():
                self.thaw(run_id)
            self._arm(process)

    def start(self, effect: StartProcess) -> None:
        """Start a command; it fails as often as the task's work says."""
        rng, env = self._place.rng, effect.env
        if rng.random() < SHORT_OF_PROCESSES:
            end = ProcessExit(effect.run_id, 126, "no process could be had", is_host_fault=True)
            self._place.clockwork.after(0.001, lambda: self._report(end))
            return
        execution = Execution(
            env["MESH_TASK_ID"],
            self._place.own,
            int(env["MESH_TOKEN"]),
            int(env["MESH_ATTEMPT"]),
        )
        failing = self._work.get(execution.task_id, 0.0)
        code = 3 if rng.random() < failing else 0
        process = Process(effect.run_id, execution, rng.uniform(0.02, 3) * rng.random(), code)
        process.freeze_at, process.kill_at = self._deadlines[effect.run_id]
        self._processes[effect.run_id] = process
        self._place.judge.started(execution)
        self._go_on(process)

    def freeze(self, run_id: int) -> None:
        """Stop a process where it stands."""
        process = self._processes.get(run_id)
        if process is not None and not process.is_frozen:
            self._rest(process)
            process.is_frozen = True

    def thaw(self, run_id: int) -> None:
        """Let it go on."""
        process = self._processes.get(run_id)
        if process is not None and process.is_frozen:
            process.is_frozen = False
            if not self._place.is_stopped():
                self._go_on(process)

    def stop(self, run_id: int, grace_s: float) -> None:
        """Ask a process to end, and kill it after `grace_s`."""
        process = self._processes.get(run_id)
        if process is None:
            return
        if grace_s and not process.is_frozen:
            soon_s = self._place.rng.uniform(0.01, TERM_S_MAX)
            self._after(soon_s, lambda: None if process.is_frozen else self._end(process, 143))
        self._after(grace_s, lambda: self._end(process, 137))

    def stop_all(self) -> None:
        """Stop with the whole host."""
        for process in self._processes.values():
            if not process.is_frozen:
                self._rest(process)

    def go_on_all(self) -> None:
        """Go on with the whole host: deadlines first."""
        for process in list(self._processes.values()):
            self._look(process)
            if process.run_id in self._processes and not process.is_frozen:
                self._go_on(process)

    def end_all(self) -> None:
        """Kill everything: the node is gone, or the host."""
        self._is_gone = True
        for process in list(self._processes.values()):
            self._end(process, 137)

    # Inside.

    def _after(self, delay_s: float, act: Callable[[], None]) -> None:
        def do() -> None:
            if not self._place.is_stopped():
                act()
            elif not self._is_gone:
                self._place.clockwork.after(0.1, do)

        self._place.clockwork.after(delay_s, do)

    def _go_on(self, process: Process) -> None:
        process.since = self._place.clockwork.now
        self._place.judge.executes(process.execution)
        process.generation += 1
        generation = process.generation

        def end() -> None:
            if process.generation == generation:
                self._end(process, process.exit_code)

        self._place.clockwork.after(process.left_s, end)
        self._arm(process)

    def _rest(self, process: Process) -> None:
        process.generation += 1
        process.left_s = max(0.0, process.left_s - (self._place.clockwork.now - process.since))
        self._place.judge.rests(process.execution)

    def _end(self, process: Process, code: int) -> None:
        if self._processes.pop(process.run_id, None) is None:
            return
        process.generation += 1
        self._place.judge.rests(process.execution)
        process.execution.exit_code = code
        if not self._is_gone:
            if code in {0, 3}:
                self._report(ProcessOutput(process.run_id, 1, b"worked\n"))
            self._report(ProcessExit(process.run_id, code))

    def _report(self, event: ProcessEvent) -> None:
        if not self._is_gone:
            self._tell(event)

    def _arm(self, process: Process) -> None:
        now = self._place.clock()
        due = process.kill_at if process.is_frozen else min(process.freeze_at, process.kill_at)
        if due == float("inf"):
            return
        delay_s = self._place.true_time(max(due, now)) - self._place.clockwork.now
        self._place.clockwork.after(max(0.0, delay_s), lambda: self._look(process))

    def _look(self, process: Process) -> None:
        """Freeze or kill what is due, by the host's clock."""
        if process.run_id not in self._processes or self._place.is_stopped():
            return
        now = self._place.clock() + 1e-9
        if now >= process.kill_at:
            self._end(process, 137)
        elif now >= process.freeze_at and not process.is_frozen:
            self.freeze(process.run_id)
            self._arm(process)
