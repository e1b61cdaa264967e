"""Simulated processes: a command takes as long, says as much and ends as the scenario draws it.

The rules are the real driver's: output comes in pieces, the next of a stream only after
`ReadOutput`; the exit comes last, and exactly once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from mesh.core.effects import ProcessEffect, ReadOutput, StartProcess, StopProcess
from mesh.core.process import ProcessEvent, ProcessExit, ProcessOutput
from mesh.sim.host import Host
from mesh.sim.loop import Loop


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a command does: `output` in pieces (stream, data), then its exit after `duration_s`."""

    duration_s: float
    exit_code: int = 0
    output: tuple[tuple[int, bytes], ...] = ()


Workload: TypeAlias = Callable[[Host, StartProcess], Behaviour]


def instant_success(_host: Host, _command: StartProcess) -> Behaviour:
    """Behave as a command that ends well after 50 ms and says nothing."""
    return Behaviour(0.05)


@dataclass(slots=True)
class _Run:
    run_id: int
    session: int
    exit_code: int
    waiting: dict[int, list[bytes]] = field(default_factory=dict)  # by stream, next piece last
    is_over: bool = False


class Runs:
    """The processes of all hosts. A host that crashes takes its runs along."""

    def __init__(
        self, loop: Loop, workload: Workload, report: Callable[[Host, ProcessEvent], None]
    ) -> None:
        self._loop = loop
        self._workload = workload
        self._report = report
        self._runs: dict[tuple[int, int, int], _Run] = {}

    def carry_out(self, host: Host, effect: ProcessEffect) -> None:
        """Carry out one effect."""
        match effect:
            case StartProcess():
                self.start(host, effect)
            case ReadOutput():
                self.read(host, effect)
            case StopProcess():
                self.stop(host, effect)
            case _:
                raise NotImplementedError

    def start(self, host: Host, command: StartProcess) -> None:
        """Carry out one `StartProcess`."""
        behaviour = self._workload(host, command)
        run = _Run(command.run_id, host.session, behaviour.exit_code)
        for stream, data in reversed(behaviour.output):
            run.waiting.setdefault(stream, []).append(data)
        self._runs[host.index, host.session, command.run_id] = run
        now_s = self._loop.now_s
        for stream in sorted(run.waiting):
            self._loop.schedule(now_s, self._say, (host, run, stream))
        self._loop.schedule(now_s + behaviour.duration_s, self._finish, (host, run))

    def read(self, host: Host, effect: ReadOutput) -> None:
        """Carry out one `ReadOutput`."""
        run = self._runs.get((host.index, host.session, effect.run_id))
        if run is not None:
            self._loop.schedule(self._loop.now_s, self._say, (host, run, effect.stream))

    def stop(self, host: Host, effect: StopProcess) -> None:
        """Carry out one `StopProcess`: the run ends at once, by the signal."""
        run = self._runs.get((host.index, host.session, effect.run_id))
        if run is None or run.is_over:
            return
        run.exit_code = 128 + (15 if effect.grace_s > 0 else 9)
        run.waiting.clear()
        self._loop.schedule(self._loop.now_s, self._finish, (host, run))

    def _is_current(self, host: Host, run: _Run) -> bool:
        key = (host.index, run.session, run.run_id)
        if host.session != run.session:
            self._runs.pop(key, None)
            return False
        return key in self._runs

    def _say(self, item: tuple[Host, _Run, int]) -> None:
        host, run, stream = item
        if not self._is_current(host, run):
            return
        if host.is_paused:
            host.inbox.append((self._say, item))
            return
        pieces = run.waiting.get(stream)
        if pieces:
            self._report(host, ProcessOutput(run.run_id, stream, pieces.pop()))
        elif pieces is not None:
            del run.waiting[stream]
            self._exit_if_done(host, run)

    def _finish(self, item: tuple[Host, _Run]) -> None:
        host, run = item
        if not self._is_current(host, run):
            return
        if host.is_paused:
            host.inbox.append((self._finish, item))
            return
        run.is_over = True
        self._exit_if_done(host, run)

    def _exit_if_done(self, host: Host, run: _Run) -> None:
        if run.is_over and not run.waiting:
            del self._runs[host.index, run.session, run.run_id]
            self._report(host, ProcessExit(run.run_id, run.exit_code))
