"""Runs a shell line that this node's user gave: bounded in time and in what it may say, and nothing of it is left.

    spawned in a group of its own ──► it ends ─────────────► its group is killed, and what it said last is told
                  │                └► its time is over ────► the same, with all that descends from it
                  └── the node ends, in whatever order ────► the same

It runs as `/bin/sh -c LINE` in the node's directory and with the node's environment, without input and without a
terminal. SIGKILL is all that it is sent, so one that ignores signals costs no longer than another. Processes that it
leaves in the background are killed with its group; those that moved to other sessions too, where the node has a guardian
(which is told of it as of a run), else only while their parents still live.

Where the node is killed (`kill -9`) its guardian kills all of it. Without a guardian the kernel kills the shell, and what
that had started goes on until it ends by itself. A process that the kernel does not kill, in uninterruptible sleep, is
waited for a moment and then left; while it is there the line is not started again, and that is its outcome.

Of what it writes the end is kept, of at most `TAIL_BYTES`. One that writes without end is read more slowly after a while:
so that it costs neither memory nor the processor.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import IO, Final

import trio

from mesh.hooks.outcome import Outcome
from mesh.runtime.ended import wait_for_end
from mesh.runtime.guard import Guard
from mesh.runtime.holding import Tree
from mesh.runtime.spawn import SpawnError, spawn

SHELL: Final = "/bin/sh"
TAIL_BYTES: Final = 4_096
LINE_CHARS_MAX: Final = 200
PIECE_BYTES: Final = 65_536
FREE_PIECES: Final = 16
"""So many pieces are read as fast as they come."""

PIECE_PAUSE_S: Final = 0.01
"""After that each waits for so long: 6 MB a second are read at most."""

DEATH_S: Final = 1.0
"""So long the death of what was killed is waited for."""

_FIRST_RUN: Final = 1 << 62
"""The numbers under which the guardian hears of these: no run of a task has one so high."""

_KILLED_BY: Final = 128
"""A shell exits with this and the number of the signal that ended its command."""

_run_ids = count(_FIRST_RUN)


class Shell:
    """One line, run now and again: one run at a time."""

    def __init__(self, line: str, guard: Guard | None = None) -> None:
        """`line` is for the shell; `guard` is told of each run."""
        self._line = line
        self._guard = guard or Guard(None, lambda _: None)
        self._undead: subprocess.Popen[bytes] | None = None

    async def run(self, timeout_s: float, env: Mapping[str, str] | None = None) -> Outcome:
        """Run it for so long at most, with `env` added to the node's environment; return how it ended. It never raises.

        Cancelled, it kills the run before it returns.
        """
        if self._undead is not None and self._undead.poll() is None:
            text = f"process {self._undead.pid} of the run before was killed, and would not die"
            return Outcome(is_ok=False, how=text)
        self._undead = None
        is_guarded = self._guard.keeps_deadlines
        try:
            process = spawn(
                (SHELL, "-c", self._line), env or {}, "", is_guarded=is_guarded, is_merged=True
            )
        except SpawnError as error:
            return Outcome(is_ok=False, how=f"could not be started: {error}")
        run_id = next(_run_ids)
        # Where it is not taken, the shell's mark is still the node's: it is killed with that.
        self._guard.watch(run_id, process.pid, float("inf"), float("inf"))
        tail = _Tail()
        try:
            return await self._see_through(process, tail, timeout_s)
        finally:
            self._end(process)
            self._guard.done(run_id)

    async def _see_through(
        self, process: subprocess.Popen[bytes], tail: _Tail, timeout_s: float
    ) -> Outcome:
        assert process.stdout is not None
        with process.stdout as pipe:
            os.set_blocking(pipe.fileno(), False)
            with trio.move_on_after(timeout_s) as bound:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(tail.read, pipe)
                    await wait_for_end(process)
                    nursery.cancel_scope.cancel()
            if not bound.cancelled_caught:
                tail.read_rest(pipe)
                _kill_group(process)
                code = process.wait()  # it is a zombie by now: returns at once
                return Outcome(is_ok=code == 0, how=_how(code), last_line=tail.last_line())
            Tree(process.pid).kill()
            tail.read_rest(pipe)
            with trio.move_on_after(DEATH_S):
                await wait_for_end(process)
            if process.poll() is None:  # stuck in the kernel
                self._undead = process
        return Outcome(
            is_ok=False, how=f"took longer than {timeout_s:g} s", last_line=tail.last_line()
        )

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Leave nothing of a run."""
        if process.returncode is not None or process is self._undead:
            return
        Tree(process.pid).kill()
        with suppress(subprocess.TimeoutExpired):  # stuck in the kernel
            process.wait(timeout=DEATH_S)
        if process.returncode is None:
            self._undead = process


class _Tail:
    """The end of what a run writes."""

    def __init__(self) -> None:
        self._data = b""

    async def read(self, pipe: IO[bytes]) -> None:
        """Read until the other end is closed."""
        pieces = 0
        while True:
            try:
                data = os.read(pipe.fileno(), PIECE_BYTES)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(pipe)
                continue
            if not data:
                return
            self._add(data)
            pieces += 1
            await trio.sleep(PIECE_PAUSE_S if pieces > FREE_PIECES else 0.0)

    def read_rest(self, pipe: IO[bytes]) -> None:
        """Read what a run has left in its pipe: who holds that open and writes on is not waited for."""
        with suppress(BlockingIOError):
            for _ in range(FREE_PIECES):
                data = os.read(pipe.fileno(), PIECE_BYTES)
                if not data:
                    return
                self._add(data)

    def last_line(self) -> str:
        """Return the last line that is not blank, as far as it is kept: printable, and cut to `LINE_CHARS_MAX`."""
        lines = self._data.decode("utf-8", "replace").splitlines()
        line = next((line for each in reversed(lines) if (line := each.strip())), "")
        return "".join(char if char.isprintable() else "?" for char in line[:LINE_CHARS_MAX])

    def _add(self, data: bytes) -> None:
        self._data = (self._data + data)[-TAIL_BYTES:]


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a run's group. Its number cannot be another's while the shell is not reaped."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _how(code: int) -> str:
    """Return an exit code in words; the shell's word for a signal too."""
    number = -code if code < 0 else code - _KILLED_BY
    name = ""
    with suppress(ValueError):
        name = signal.Signals(number).name
    if code < 0:
        return f"ended by {name or f'signal {number}'}"
    return f"exit code {code} ({name})" if name else f"exit code {code}"
