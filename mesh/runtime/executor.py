"""Runs the commands of work: starts them, passes their output on piece by piece, reports their end.

After each piece of output a stream waits until it is asked to go on, so a command that talks faster
than its listener is held up by its own pipe and costs no memory.

When the command itself has ended, whatever is left of its process group is killed: a background
process that the command leaves behind does not outlive it. One that moved to another session may
still hold the pipes open; it is waited for one second, then the pipes are closed on this side. The
exit is reported exactly once, after all output.

A command is guarded from the moment it has started, where the node has a guardian. One that cannot
be is killed, and reported as this host's fault.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
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
from mesh.runtime.guard import Guard
from mesh.runtime.spawn import CANNOT_RUN, SpawnError, spawn

PIECE_BYTES_MAX: Final = 65_536
LINGER_S: Final = 1.0
"""How long open pipes are waited for after the command has ended."""

END_POLL_S: Final = 0.05
"""How often a process is looked at that the system cannot watch for us."""

_UNGUARDED: Final = "the command could not be guarded on this host, and was killed"

_LATE_PIECES_MAX: Final = 2  # a pipe holds one piece: what the command itself left in it

Report: TypeAlias = Callable[[ProcessEvent], None]


@dataclass(slots=True, eq=False)
class _Run:
    run_id: int
    process: subprocess.Popen[bytes]
    may_read: dict[int, trio.Event]
    has_ended: trio.Event = field(default_factory=trio.Event)
    ended_at: float = math.inf
    is_stopping: bool = False
    is_reaped: bool = False
    is_refused: bool = False

    def kill(self, number: signal.Signals) -> None:
        """Signal the whole group. Its id cannot be another's while the leader is not reaped."""
        if not self.is_reaped:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)

    def close_pipes(self) -> None:
        """Read no more. Harmless when repeated."""
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class Executor:
    """Carries out `StartProcess`, `ReadOutput` and `StopProcess` in the nursery that it is given."""

    def __init__(self, nursery: trio.Nursery, report: Report, guard: Guard | None = None) -> None:
        self._nursery = nursery
        self._report = report
        self._guard = guard or Guard(None, lambda _: None)
        self._guard.on_refused = self.refuse
        self._runs: dict[int, _Run] = {}

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
            case GuardProcess() | FreezeProcess() | ThawProcess():
                raise NotImplementedError
            case _:
                assert_never(effect)

    def start(self, effect: StartProcess) -> None:
        """Start a command. What comes of it, a failure to start too, is reported."""
        try:
            process = spawn(effect.argv, effect.env, effect.cwd)
        except SpawnError as error:
            self._report(
                ProcessExit(effect.run_id, error.exit_code, str(error), error.is_host_fault)
            )
            return
        except Exception as error:  # noqa: BLE001 - a command that cannot be started costs nobody else
            self._report(ProcessExit(effect.run_id, CANNOT_RUN, _bug_text(effect.argv, error)))
            return
        run = _Run(effect.run_id, process, {1: trio.Event(), 2: trio.Event()})
        for ready in run.may_read.values():
            ready.set()
        self._runs[effect.run_id] = run
        if not self._guard.watch(effect.run_id, process.pid):
            self.refuse(effect.run_id)
        self._nursery.start_soon(self._run, run)

    def read(self, run_id: int, stream: int) -> None:
        """Let a stream go on after a piece; nothing happens if the run has ended."""
        run = self._runs.get(run_id)
        if run is not None:
            run.may_read[stream].set()

    def stop(self, run_id: int, grace_s: float) -> None:
        """End a run's process group: SIGTERM, and SIGKILL when `grace_s` is over. May be repeated."""
        run = self._runs.get(run_id)
        if run is None:
            return
        run.is_stopping = True
        if grace_s <= 0:
            run.kill(signal.SIGKILL)
            return
        run.kill(signal.SIGTERM)
        self._nursery.start_soon(self._kill_later, run, grace_s)

    def refuse(self, run_id: int) -> None:
        """End a run that nobody guards: it could outlive this node."""
        run = self._runs.get(run_id)
        if run is not None:
            run.is_refused = run.is_stopping = True
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

    async def _kill_later(self, run: _Run, grace_s: float) -> None:
        with trio.move_on_after(grace_s):
            await run.has_ended.wait()
            return
        run.kill(signal.SIGKILL)

    async def _run(self, run: _Run) -> None:
        """See a command through to its end, and report it. A bug on the way ends the command, not the node."""
        error_text = ""
        try:
            await self._see_through(run)
        except Exception as error:  # noqa: BLE001 - one command's misfortune is nobody else's
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
            await _wait_for_end(process)
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
    if run.is_stopping:
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


async def _wait_for_end(process: subprocess.Popen[bytes]) -> None:
    """Return when the process has ended, leaving it to be reaped."""
    try:
        fd = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # an older kernel, no Linux, or no descriptor left
        while not _is_zombie(process):  # noqa: ASYNC110 - nothing announces it
            await trio.sleep(END_POLL_S)
        return
    try:
        await trio.lowlevel.wait_readable(fd)
    finally:
        os.close(fd)


def _is_zombie(process: subprocess.Popen[bytes]) -> bool:
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


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
