"""Commands under a guard: watched from their start until they are reaped, or not run at all."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest
import trio
import trio.testing

from mesh.core.effects import (
    FreezeProcess,
    GuardProcess,
    ProcessEffect,
    StartProcess,
    StopProcess,
    ThawProcess,
)
from mesh.core.process import ProcessEvent, ProcessExit, ProcessOutput
from mesh.guardian import link
from mesh.runtime.executor import COMING_MAX, Executor
from mesh.runtime.guard import Guard
from mesh.runtime.guarded import guarded

Until: TypeAlias = Callable[[Callable[[], bool]], Awaitable[None]]


class Noting(Guard):
    """A guard that notes what it is asked, and takes or does not take what it is given."""

    def __init__(self, *, takes: bool) -> None:
        super().__init__(None, lambda _: None)
        self.notes: list[tuple[str, int]] = []
        self.deadlines: list[tuple[float, float]] = []
        self.events: list[ProcessEvent] = []
        self._takes = takes

    @property
    def keeps_deadlines(self) -> bool:
        return True

    def watch(self, run_id: int, pid: int, freeze_at: float, kill_at: float) -> bool:
        assert os.getpgid(pid) == pid
        self.notes.append(("watch", run_id))
        self.deadlines.append((freeze_at, kill_at))
        return self._takes

    def move(self, run_id: int, freeze_at: float, kill_at: float) -> None:
        self.deadlines.append((freeze_at, kill_at))

    def done(self, run_id: int) -> None:
        self.notes.append(("done", run_id))

    def start(
        self, nursery: trio.Nursery, script: str, *before: ProcessEffect, run_id: int = 1
    ) -> Executor:
        executor = Executor(nursery, self.events.append, self)
        for effect in (*before, StartProcess(run_id, ("sh", "-c", script), {}, "")):
            executor.carry_out(effect)
        return executor

    def ends(self) -> list[ProcessExit]:
        return [event for event in self.events if isinstance(event, ProcessExit)]


async def test_a_run_is_guarded_from_its_start_until_it_is_reaped(until: Until) -> None:
    async with trio.open_nursery() as nursery:
        guard = Noting(takes=True)
        guard.start(nursery, "exit 3")
        assert guard.notes == [("watch", 1)]
        await until(lambda: bool(guard.ends()))
        assert guard.ends() == [ProcessExit(1, 3)]
        assert guard.notes[1] == ("done", 1)


async def test_a_run_that_cannot_be_guarded_is_killed_and_is_the_hosts_fault(until: Until) -> None:
    async with trio.open_nursery() as nursery:
        guard = Noting(takes=False)
        guard.start(nursery, "sleep 7001")
        await until(lambda: bool(guard.ends()))
        (end,) = guard.ends()
        assert (end.exit_code, end.is_host_fault) == (126, True)
        assert "could not be guarded on this host" in end.error


async def test_a_run_that_the_guardian_refuses_later_is_killed_too(until: Until) -> None:
    async with trio.open_nursery() as nursery:
        guard = Noting(takes=True)
        guard.start(nursery, "echo on; exec sleep 7001")
        await until(lambda: ProcessOutput(1, 1, b"on\n") in guard.events)
        guard.on_refused(2)  # of a run that has ended: nothing happens
        assert not guard.ends()
        guard.on_refused(1)
        await until(lambda: bool(guard.ends()))
        assert [(end.exit_code, end.is_host_fault) for end in guard.ends()] == [(126, True)]


async def test_a_run_is_guarded_with_the_deadlines_that_it_was_given_before(until: Until) -> None:
    async with trio.open_nursery() as nursery:
        guard = Noting(takes=True)
        executor = guard.start(nursery, "exit 0", GuardProcess(1, 100.0, 130.0))
        assert guard.deadlines == [(100.0, 130.0)]
        executor.start(StartProcess(2, ("true",), {}, ""))
        assert guard.deadlines[1:] == [(math.inf, math.inf)]
        await until(lambda: len(guard.ends()) == 2)


async def test_freeze_thaw_and_renewal_move_the_deadlines_that_the_guardian_keeps(
    until: Until,
) -> None:
    async with trio.open_nursery() as nursery:
        guard = Noting(takes=True)
        executor = guard.start(nursery, "exec sleep 7001", GuardProcess(1, 100.0, 130.0))
        executor.carry_out(FreezeProcess(1))
        executor.carry_out(ThawProcess(1))
        executor.carry_out(FreezeProcess(1))
        executor.carry_out(GuardProcess(1, 105.0, 135.0))
        executor.carry_out(ThawProcess(1))
        assert guard.deadlines[1:] == [
            (0.0, 130.0),
            (100.0, 130.0),
            (0.0, 130.0),
            (105.0, 135.0),
            (105.0, 135.0),
        ]
        executor.carry_out(StopProcess(1, 0.0))
        await until(lambda: bool(guard.ends()))
        executor.carry_out(FreezeProcess(1))
        executor.carry_out(GuardProcess(1, 110.0, 140.0))
        assert len(guard.deadlines) == 6


async def test_deadlines_of_runs_that_never_start_are_kept_for_a_few_only(until: Until) -> None:
    async with trio.open_nursery() as nursery:
        guard = Noting(takes=True)
        never = [GuardProcess(run_id, 100.0, 130.0) for run_id in range(2, 2 * COMING_MAX)]
        executor = guard.start(nursery, "exit 0", *never, GuardProcess(1, 7.0, 8.0))
        assert guard.deadlines == [(7.0, 8.0)]
        assert len(executor._coming) < COMING_MAX
        await until(lambda: bool(guard.ends()))


async def test_what_the_guardian_did_is_counted_and_a_killed_runs_output_is_not_waited_for(
    until: Until,
) -> None:
    async with trio.open_nursery() as nursery:
        guard = Noting(takes=True)
        executor = guard.start(nursery, "echo $$; echo unread; exec sleep 7001")
        await until(lambda: bool(guard.events))
        (output,) = guard.events  # nobody asks for more: what follows it stays in the pipe
        assert isinstance(output, ProcessOutput)
        os.kill(int(output.data.split()[0]), 9)
        await until(lambda: guard.notes[-1] == ("done", 1))
        for kind in (link.FROZEN, link.THAWED, link.FROZEN, link.KILLED):
            guard.on_held(kind, 1)
        await until(lambda: bool(guard.ends()))
        assert guard.ends() == [ProcessExit(1, 137)]
        assert executor.counters == {"frozen_runs": 2, "thawed_runs": 1, "killed_runs": 1}


NODE = """
import os, signal, sys, time
import trio
from mesh.core.effects import FreezeProcess, GuardProcess, StartProcess, ThawProcess
from mesh.guardian.process import look
from mesh.runtime.executor import Executor
from mesh.runtime.guard import Guard
from mesh.runtime.guarded import take_link

def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)

async def until(ask):
    with trio.fail_after(20):
        while not ask():
            await trio.sleep(0.01)

async def main():
    guard = Guard(take_link(os.environ), print)
    events, far = [], now() + 1000
    async with trio.open_nursery() as nursery:
        nursery.start_soon(guard.listen)
        executor = Executor(nursery, events.append, guard)
        executor.carry_out(GuardProcess(1, far, far))
        executor.carry_out(StartProcess(1, ("sh", "-c", "echo $$; exec sleep 7001"), {}, ""))
        await until(lambda: events)
        pid = int(events[0].data)
        for round in (1, 2):
            executor.carry_out(FreezeProcess(1))
            await until(lambda: look(pid).is_stopped and executor.counters["frozen_runs"] == round)
            executor.carry_out(ThawProcess(1))
            await until(lambda: not look(pid).is_stopped and executor.counters["thawed_runs"] == round)
        executor.carry_out(GuardProcess(1, now(), far))
        await until(lambda: look(pid).is_stopped and executor.counters["frozen_runs"] == 3)
        executor.carry_out(GuardProcess(1, now(), now()))
        await until(lambda: len(events) == 2)
        await until(lambda: executor.counters["killed_runs"] == 1)
        print(events[1].exit_code, flush=True)
        nursery.cancel_scope.cancel()

trio.run(main)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the guardian is for Linux")
def test_a_real_guardian_freezes_thaws_and_kills_what_the_executor_runs(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        guarded(tmp_path / "record", [sys.executable, "-c", NODE]),
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("137\n", 0), done.stderr


@pytest.mark.parametrize(("left", "waits_s"), [(0, 0.0), (1, 17.0), (link.LEFT_UNKNOWN, 17.0)])
async def test_a_node_is_silent_while_what_the_last_session_left_may_still_hold_leases(
    autojump_clock: trio.testing.MockClock, left: int, waits_s: float
) -> None:
    said: list[str] = []
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    near.setblocking(False)
    with far:
        guard = Guard(near, said.append)
        began = trio.current_time()
        far.send(link.encode_cleared(0, left))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(guard.listen)
            await guard.wait_cleared(17.0)
            nursery.cancel_scope.cancel()
        guard.close()
    assert trio.current_time() - began == pytest.approx(waits_s, abs=0.5)
    assert any("stays silent for 17 s" in line for line in said) == bool(left)
