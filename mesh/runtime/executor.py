"""Runs the commands of work: starts them, passes their output on piece by piece, reports their end.

After each piece of output a stream waits until it is asked to go on, so a command that talks faster
than its listener is held up by its own pipe and costs no memory.

When the command itself has ended, whatever is left of its process group is killed: a background
process that the command leaves behind does not outlive it. One that moved to another session may
still hold the pipes open; it is waited for one second, then the pipes are closed on this side. The
exit is reported exactly once, after all output.

A command is guarded from the moment it has started, where the node has a guardian. One that cannot
be is killed, and reported as this host's fault.

A run has deadlines, known before it starts and moved while it goes on: it is frozen at one, and killed at the
other. The guardian keeps them, and freezes for this node as well: two who stop and continue the same processes
would not know whose turn it is. Without one a timer here does both, for as long as this process runs.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Final, TypeAlias, assert_never

import trio

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
from mesh.guardian import link
from mesh.runtime.clock import Clock, system_clock
from mesh.runtime.deadlines import NEVER, Deadlines, Keeper
from mesh.runtime.ended import END_POLL_S, wait_for_end
from mesh.runtime.guard import Guard
from mesh.runtime.holding import Tree
from mesh.runtime.spawn import CANNOT_RUN, SpawnError, spawn

PIECE_BYTES_MAX: Final = 65_536
LINGER_S: Final = 1.0
"""How long open pipes are waited for after the command has ended."""

COMING_MAX: Final = 1024
"""Runs whose deadlines are kept before they start; each starts at once, so that there are never more than a few."""

_UNGUARDED: Final = "the command could not be guarded on this host, and was killed"

_LATE_PIECES_MAX: Final = 2  # a pipe holds one piece: what the command itself left in it

Report: TypeAlias = Callable[[ProcessEvent], None]


@dataclass(slots=True, eq=False)
class _Run:
    run_id: int
    process: subprocess.Popen[bytes]
    may_read: dict[int, trio.Event]
    tree: Tree
    keeper: Keeper
    deadlines: Deadlines
    has_ended: trio.Event = field(default_factory=trio.Event)
    ended_at: float = math.inf
    is_stopping: trio.Event = field(default_factory=trio.Event)
    is_reaped: bool = False
    is_refused: bool = False

    def kill(self, number: signal.Signals) -> None:
        """Signal the whole group. Its id cannot be another's while the leader is not reaped."""
        if not self.is_reaped:
            self.tree.signal(number)

    def close_pipes(self) -> None:
        """Read no more. Harmless when repeated."""
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class Executor:
    """Carries out what is asked of processes, in the nursery that it is given."""

    def __init__(
        self,
        nursery: trio.Nursery,
        report: Report,
        guard: Guard | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.counters = {"frozen_runs": 0, "thawed_runs": 0, "killed_runs": 0}
        """What was done to runs for the sake of their deadlines, here or by the guardian."""

        self._nursery = nursery
        self._clock = clock or system_clock(lambda _: None)
        self._report = report
        self._guard = guard or Guard(None, lambda _: None)
        self._guard.on_refused = self.refuse
        self._guard.on_held = self._note_held
        self._runs: dict[int, _Run] = {}
        self._coming: dict[int, Deadlines] = {}

    @property
    def running(self) -> int:
        """How many commands have been started and not yet reported as ended."""
        return len(self._runs)

    def carry_out(self, effect: ProcessEffect) -> None:
        """Carry out one effect."""
        match effect:
            case StartProcess():
                self.start(effect)
            case ReadOutput(run_id, stream):
                self.read(run_id, stream)
            case StopProcess(run_id, grace_s):
                self.stop(run_id, grace_s)
            case GuardProcess(run_id, freeze_at, kill_at):
                self.guard(run_id, Deadlines(freeze_at, kill_at))
            case FreezeProcess(run_id):
                self.hold(run_id, is_held=True)
            case ThawProcess(run_id):
                self.hold(run_id, is_held=False)
            case _:
                assert_never(effect)

    def start(self, effect: StartProcess) -> None:
        """Start a command. What comes of it, a failure to start too, is reported."""
        deadlines = self._coming.pop(effect.run_id, NEVER)
        try:
            is_guarded = self._guard.keeps_deadlines
            process = spawn(effect.argv, effect.env, effect.cwd, is_guarded=is_guarded)
        except SpawnError as error:
            self._report(
                ProcessExit(effect.run_id, error.exit_code, str(error), error.is_host_fault)
            )
            return
        except Exception as error:  # noqa: BLE001 - a command that cannot be started costs nobody else
            self._report(ProcessExit(effect.run_id, CANNOT_RUN, _bug_text(effect.argv, error)))
            return
        tree = Tree(process.pid)
        keeper = Keeper(tree, self._clock, partial(self._note_held, run_id=effect.run_id))
        may_read = {1: trio.Event(), 2: trio.Event()}
        run = _Run(effect.run_id, process, may_read, tree, keeper, deadlines)
        for ready in run.may_read.values():
            ready.set()
        self._runs[effect.run_id] = run
        if not self._guard.watch(effect.run_id, process.pid, *deadlines):
            self.refuse(effect.run_id)
        elif not self._guard.keeps_deadlines:
            keeper.move(deadlines, is_held=False)
        self._nursery.start_soon(self._run, run)

    def read(self, run_id: int, stream: int) -> None:
        """Let a stream go on after a piece; nothing happens if the run has ended."""
        run = self._runs.get(run_id)
        if run is not None:
            run.may_read[stream].set()

    def guard(self, run_id: int, deadlines: Deadlines) -> None:
        """Give a run its deadlines, before it starts or anew; one that was frozen goes on if they are later."""
        run = self._runs.get(run_id)
        if run is not None:
            run.deadlines = deadlines
            self._hold(run, is_held=False)
            return
        self._coming[run_id] = deadlines
        if len(self._coming) > COMING_MAX:
            del self._coming[next(iter(self._coming))]

    def hold(self, run_id: int, *, is_held: bool) -> None:
        """Freeze a run at once, or let it go on until its own deadline; nothing happens if the run has ended."""
        run = self._runs.get(run_id)
        if run is not None:
            self._hold(run, is_held=is_held)

    def stop(self, run_id: int, grace_s: float) -> None:
        """End a run: SIGTERM to its group, and SIGKILL to all of it when `grace_s` is over. May be repeated."""
        run = self._runs.get(run_id)
        if run is None:
            return
        run.is_stopping.set()
        if grace_s <= 0:
            self._end(run)
            return
        run.kill(signal.SIGTERM)
        self._nursery.start_soon(self._kill_later, run, grace_s)

    def refuse(self, run_id: int) -> None:
        """End a run that nobody guards: it could outlive this node."""
        run = self._runs.get(run_id)
        if run is not None:
            run.is_refused = True
            run.is_stopping.set()
            run.kill(signal.SIGKILL)

    def kill_all(self) -> None:
        """Kill every group at once and reap what died: the node is going."""
        for run in self._runs.values():
            run.kill(signal.SIGKILL)
        for run in self._runs.values():
            with suppress(subprocess.TimeoutExpired):  # stuck in the kernel: init will reap it
                run.process.wait(timeout=1.0)
                run.is_reaped = True
            run.close_pipes()
        self._runs.clear()

    def _hold(self, run: _Run, *, is_held: bool) -> None:
        if self._guard.keeps_deadlines:
            freeze_at, kill_at = run.deadlines
            self._guard.move(run.run_id, 0.0 if is_held else freeze_at, kill_at)
        else:
            run.keeper.move(run.deadlines, is_held=is_held)

    def _end(self, run: _Run) -> None:
        """Kill a run at once: its group, and what has left that where nobody else would find it."""
        if self._guard.keeps_deadlines:
            run.kill(signal.SIGKILL)
        elif not run.is_reaped:
            run.tree.kill()

    def _note_held(self, kind: int, run_id: int) -> None:
        name = {link.FROZEN: "frozen", link.THAWED: "thawed", link.KILLED: "killed"}[kind]
        self.counters[f"{name}_runs"] += 1
        run = self._runs.get(run_id)
        if run is not None and kind == link.KILLED:
            run.is_stopping.set()  # nobody need take what it has said

    async def _kill_later(self, run: _Run, grace_s: float) -> None:
        with trio.move_on_after(grace_s):
            await run.has_ended.wait()
            return
        self._end(run)

    async def _run(self, run: _Run) -> None:
        """See a command through to its end, and report it. A bug on the way ends the command, not the node."""
        error_text = ""
        try:
            await self._see_through(run)
        except Exception as error:  # noqa: BLE001 - one command's misfortune is nobody else's
            run.keeper.end()
            run.kill(signal.SIGKILL)
            error_text = _bug_text((f"process {run.process.pid}",), error)
            run.close_pipes()
        code = await _reap(run)
        self._guard.done(run.run_id)
        del self._runs[run.run_id]
        if run.is_refused:
            self._report(ProcessExit(run.run_id, CANNOT_RUN, _UNGUARDED, is_host_fault=True))
            return
        self._report(ProcessExit(run.run_id, code if code >= 0 else 128 - code, error_text))

    async def _see_through(self, run: _Run) -> None:
        process = run.process
        async with trio.open_nursery() as nursery:
            for stream, pipe in ((1, process.stdout), (2, process.stderr)):
                assert pipe is not None
                nursery.start_soon(self._read, run, stream, pipe)
            if not self._guard.keeps_deadlines:
                nursery.start_soon(run.keeper.run)
            await wait_for_end(process)
            run.keeper.end()
            run.kill(signal.SIGKILL)
            process.wait()  # it is a zombie by now: returns at once
            run.is_reaped = True
            self._guard.done(run.run_id)
            run.ended_at = trio.current_time()
            run.has_ended.set()

    async def _read(self, run: _Run, stream: int, pipe: IO[bytes]) -> None:
        fd = pipe.fileno()
        os.set_blocking(fd, False)
        late_pieces = 0
        try:
            while await self._may_go_on(run, stream):
                if trio.current_time() > run.ended_at + LINGER_S:
                    late_pieces += 1
                    if late_pieces > _LATE_PIECES_MAX:
                        return  # a stranger to the group goes on writing: not the command's output
                data = await _read_piece(run, fd)
                if not data:
                    return
                run.may_read[stream] = trio.Event()
                self._report(ProcessOutput(run.run_id, stream, data))
        finally:
            pipe.close()

    async def _may_go_on(self, run: _Run, stream: int) -> bool:
        """Wait until the next piece is wanted. After a stopped run has ended, not for ever: False."""
        ready = run.may_read[stream]
        if ready.is_set():
            return True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_give_up_when_stopped, run, nursery.cancel_scope)
            await ready.wait()
            nursery.cancel_scope.cancel()
        return ready.is_set()


async def _give_up_when_stopped(run: _Run, scope: trio.CancelScope) -> None:
    await run.has_ended.wait()
    await run.is_stopping.wait()  # it may be said after the end: by a guardian that has killed it
    await trio.sleep(LINGER_S)
    scope.cancel()


async def _read_piece(run: _Run, fd: int) -> bytes:
    """Read what is there, or wait for it; b"" at the end, or when the command ended and nothing comes."""
    while True:
        try:
            return os.read(fd, PIECE_BYTES_MAX)
        except BlockingIOError:
            pass
        if run.has_ended.is_set():
            with trio.move_on_after(LINGER_S) as lingering:
                await trio.lowlevel.wait_readable(fd)
            if lingering.cancelled_caught:
                return b""
            continue
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_at_end, run, nursery.cancel_scope)
            await trio.lowlevel.wait_readable(fd)
            nursery.cancel_scope.cancel()


async def _cancel_at_end(run: _Run, scope: trio.CancelScope) -> None:
    await run.has_ended.wait()
    scope.cancel()


async def _reap(run: _Run) -> int:
    """Return the exit code, negative for a signal; after a bug, wait for what was killed."""
    while (code := run.process.poll()) is None:  # noqa: ASYNC110 - nothing announces it
        await trio.sleep(END_POLL_S)
    run.is_reaped = True
    run.has_ended.set()
    return code


def _bug_text(argv: tuple[str, ...], error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    what = argv[0] if argv else "the command"
    return f"{what} met a bug and was given up: {type(error).__name__}: {error}; please report it"
