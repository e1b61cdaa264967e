"""Simulated processes: a command takes as long, says as much and ends as the scenario draws it.

The rules are the real driver's: output comes in pieces, the next of a stream only after
`ReadOutput`; the exit comes last, and exactly once.

Each host has a guardian, which goes on when the node is stopped: it freezes and kills by the host's own clock,
and when the node ends it kills all that the node had started. What is frozen makes no progress:

    running ──freeze_at──► frozen ──kill_at──► killed        a run has what is left of its time;
       ▲                     │                                it is told the node when that goes on
       └── deadlines moved ──┘

Where the whole host stands still, so does the guardian; it looks at its deadlines before anything goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import Final, TypeAlias, assert_never

from mesh.core.effects import (
    FreezeProcess,
    GuardProcess,
    ProcessEffect,
    ReadOutput,
    StartProcess,
    StopProcess,
    ThawProcess,
)
from mesh.core.process import ProcessEvent, ProcessExit, ProcessOutput
from mesh.errors import LocalProtocolError
from mesh.sim.host import Host
from mesh.sim.loop import Loop

TERM: Final = 143
KILL: Final = 137
_ROUNDING_S: Final = 1e-6  # as in `Clock.read_at_least`


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a command does: `output` in pieces (stream, data), then its exit after `duration_s` of running.

    Asked to end, it does so after `term_s`. With an `error` it never starts: the exit says so.
    """

    duration_s: float
    exit_code: int = 0
    output: tuple[tuple[int, bytes], ...] = ()
    term_s: float = 0.0
    error: str = ""
    is_host_fault: bool = False


Workload: TypeAlias = Callable[[Host, StartProcess], Behaviour]


def instant_success(_host: Host, _command: StartProcess) -> Behaviour:
    """Behave as a command that ends well after 50 ms and says nothing."""
    return Behaviour(0.05)


class Act(Enum):
    """What can be seen of a process from outside."""

    START = "start"
    REST = "rest"  # frozen, or its whole host is
    GO_ON = "go on"
    END = "end"


@dataclass(slots=True, eq=False)
class Run:
    """One process. `left_s`: how long it has to run yet, from `since_s` on if it runs."""

    host: Host
    session: int
    command: StartProcess
    behaviour: Behaviour
    exit_code: int
    left_s: float
    since_s: float
    freeze_at: float
    kill_at: float
    is_moving: bool = False
    """Whether it makes progress."""

    is_frozen: bool = False
    is_over: bool = False
    is_asked_to_end: bool = False
    generation: int = 0
    waiting: dict[int, list[bytes]] = field(default_factory=dict)  # by stream, next piece last

    @property
    def run_id(self) -> int:
        """The number that the node gave it."""
        return self.command.run_id

    @property
    def may_move(self) -> bool:
        """Say whether nothing holds it."""
        return not (self.is_over or self.is_frozen or self.host.is_suspended)


_Key: TypeAlias = tuple[int, int, int]  # host, session, run


class Runs:
    """The processes of all hosts, and their guardians. `watchers` see each act of each process, in true time."""

    def __init__(
        self, loop: Loop, workload: Workload, report: Callable[[Host, ProcessEvent], None]
    ) -> None:
        self.watchers: list[Callable[[Run, Act], None]] = []
        self._loop = loop
        self._workload = workload
        self._report = report
        self._runs: dict[_Key, Run] = {}
        self._deadlines: dict[_Key, tuple[float, float]] = {}

    def carry_out(self, host: Host, effect: ProcessEffect) -> None:
        """Carry out one effect."""
        key = (host.index, host.session, effect.run_id)
        if isinstance(effect, StartProcess):
            self._start(host, effect)
            return
        run = self._runs.get(key)
        if isinstance(effect, GuardProcess):
            self._guard(key, run, effect)
        elif run is None:
            pass  # it has ended; the node is about to hear of it
        elif isinstance(effect, ReadOutput):
            self._loop.schedule(self._loop.now_s, self._say, (run, effect.stream))
        elif isinstance(effect, StopProcess):
            self._stop(run, effect.grace_s)
        elif isinstance(effect, FreezeProcess):
            self._freeze(run)
        elif isinstance(effect, ThawProcess):
            self._thaw(run)
        else:
            assert_never(effect)

    def end_session(self, host: Host) -> None:
        """Kill everything of a host: its node has ended, or it has no power. Nobody is left to be told."""
        self._deadlines = {k: v for k, v in self._deadlines.items() if k[0] != host.index}
        for run in self._of(host):
            run.waiting.clear()
            self._end(run, KILL, is_told=False)

    def suspend(self, host: Host) -> None:
        """Let the processes of a host that stands still rest. Call when it does."""
        for run in self._of(host):
            if run.is_moving:
                self._rest(run)

    def go_on(self, host: Host) -> None:
        """Let them go on with their host, deadlines first. Call when that goes on."""
        for run in self._of(host):
            self._look(run)
        for run in self._of(host):
            if run.may_move:
                self._resume(run)

    def rearm(self, host: Host) -> None:
        """Look at every deadline of a host anew: its clock runs at another rate."""
        for run in self._of(host):
            self._arm(run)

    # What is asked for.

    def _start(self, host: Host, command: StartProcess) -> None:
        key = (host.index, host.session, command.run_id)
        if key in self._runs:
            raise LocalProtocolError(f"run {command.run_id} of {host.spec.name} was started before")
        behaviour = self._workload(host, command)
        freeze_at, kill_at = self._deadlines.get(key, (inf, inf))
        run = Run(
            host=host,
            session=host.session,
            command=command,
            behaviour=behaviour,
            exit_code=behaviour.exit_code,
            left_s=behaviour.duration_s,
            since_s=self._loop.now_s,
            freeze_at=freeze_at,
            kill_at=kill_at,
        )
        for stream, data in reversed(behaviour.output):
            run.waiting.setdefault(stream, []).append(data)
        self._runs[key] = run
        if behaviour.error:
            run.is_over = True
            self._loop.schedule(self._loop.now_s, self._tell, run)
            return
        self._seen(run, Act.START)
        for stream in sorted(run.waiting):
            self._loop.schedule(self._loop.now_s, self._say, (run, stream))
        self._resume(run)

    def _guard(self, key: _Key, run: Run | None, effect: GuardProcess) -> None:
        self._deadlines[key] = effect.freeze_at, effect.kill_at
        if run is None or run.is_over:
            return
        run.freeze_at, run.kill_at = effect.freeze_at, effect.kill_at
        if run.is_frozen and effect.freeze_at > self._clock(run):
            self._thaw(run)
        self._arm(run)

    def _stop(self, run: Run, grace_s: float) -> None:
        now_s = self._loop.now_s
        if grace_s > 0:
            if not run.is_asked_to_end:
                run.is_asked_to_end = True
                self._ask_to_end(run)
            self._loop.schedule(now_s + grace_s, self._kill, run)
        else:
            self._kill(run)

    def _ask_to_end(self, run: Run) -> None:
        """Let it end soon: what is frozen hears of it when it goes on."""
        is_moving = run.is_moving
        if is_moving:
            self._pass(run)
        if not run.is_over and run.left_s > run.behaviour.term_s:
            run.exit_code, run.left_s = TERM, run.behaviour.term_s
            run.waiting.clear()
        if is_moving:
            self._wait_for_end(run)

    def _kill(self, run: Run) -> None:
        if run.host.is_suspended and not run.is_over:
            self._loop.schedule(self._loop.now_s + 0.05, self._kill, run)
        elif not run.is_over:
            run.waiting.clear()
            self._end(run, KILL)

    def _freeze(self, run: Run) -> None:
        if run.is_moving:
            self._rest(run)
        run.is_frozen = True

    def _thaw(self, run: Run) -> None:
        run.is_frozen = False
        if run.may_move and not run.is_moving:
            self._resume(run)

    # How it goes.

    def _resume(self, run: Run) -> None:
        run.since_s, run.is_moving = self._loop.now_s, True
        if run.generation:
            self._seen(run, Act.GO_ON)
        self._wait_for_end(run)
        self._arm(run)

    def _rest(self, run: Run) -> None:
        self._pass(run)
        run.is_moving = False
        self._seen(run, Act.REST)

    def _pass(self, run: Run) -> None:
        """Count the time that it ran."""
        run.generation += 1
        run.left_s = max(0.0, run.left_s - (self._loop.now_s - run.since_s))
        run.since_s = self._loop.now_s

    def _wait_for_end(self, run: Run) -> None:
        run.generation += 1
        self._loop.schedule(self._loop.now_s + run.left_s, self._finish, (run, run.generation))

    def _finish(self, item: tuple[Run, int]) -> None:
        run, generation = item
        if run.generation == generation and run.is_moving:
            self._end(run, run.exit_code)

    def _end(self, run: Run, exit_code: int, *, is_told: bool = True) -> None:
        run.exit_code = exit_code
        if not run.is_over:
            run.is_over, run.is_moving = True, False
            self._seen(run, Act.END)
        if is_told:
            self._tell(run)
        else:
            self._forget(run)

    # The guardian.

    def _clock(self, run: Run) -> float:
        return run.host.clock.read(self._loop.now_s)

    def _arm(self, run: Run) -> None:
        due = run.kill_at if run.is_frozen else min(run.freeze_at, run.kill_at)
        if due < inf and not run.is_over:
            at_s = run.host.clock.true_time(due)
            self._loop.schedule(at_s, self._look, run)

    def _look(self, run: Run) -> None:
        """Freeze or kill what is due, by the host's clock."""
        if run.is_over or run.host.is_suspended:
            return
        now = self._clock(run) + _ROUNDING_S
        if now >= run.kill_at:
            self._kill(run)
        elif now >= run.freeze_at and not run.is_frozen:
            self._freeze(run)
            self._arm(run)

    # What the node hears.

    def _of(self, host: Host) -> list[Run]:
        return [run for run in self._runs.values() if run.host is host]

    def _is_current(self, run: Run) -> bool:
        return self._runs.get((run.host.index, run.session, run.run_id)) is run

    def _forget(self, run: Run) -> None:
        self._runs.pop((run.host.index, run.session, run.run_id), None)

    def _say(self, item: tuple[Run, int]) -> None:
        run, stream = item
        if not self._is_current(run):
            return
        if run.host.is_paused:
            run.host.inbox.append((self._say, item))
            return
        pieces = run.waiting.get(stream)
        if pieces:
            self._report(run.host, ProcessOutput(run.run_id, stream, pieces.pop()))
        elif pieces is not None:
            del run.waiting[stream]
            self._tell(run)

    def _tell(self, run: Run) -> None:
        """Tell the node of the end, once its output was read to the end."""
        if not self._is_current(run) or not run.is_over or run.waiting:
            return
        if run.host.is_paused:
            run.host.inbox.append((self._tell, run))
            return
        self._forget(run)
        self._deadlines.pop((run.host.index, run.session, run.run_id), None)
        what = run.behaviour
        end = ProcessExit(run.run_id, run.exit_code, what.error, is_host_fault=what.is_host_fault)
        self._report(run.host, end)

    def _seen(self, run: Run, act: Act) -> None:
        for watcher in self.watchers:
            watcher(run, act)
