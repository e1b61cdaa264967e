"""Commands under a guard: watched from their start until they are reaped, or not run at all."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio

from mesh.core.effects import StartProcess
from mesh.core.process import ProcessEvent, ProcessExit, ProcessOutput
from mesh.runtime.executor import Executor
from mesh.runtime.guard import Guard

Until: TypeAlias = Callable[[Callable[[], bool]], Awaitable[None]]


class Noting(Guard):
    """A guard that notes what it is asked, and takes or does not take what it is given."""

    def __init__(self, *, takes: bool) -> None:
        super().__init__(None, lambda _: None)
        self.notes: list[tuple[str, int]] = []
        self.events: list[ProcessEvent] = []
        self._takes = takes

    def watch(self, run_id: int, pid: int) -> bool:
        assert os.getpgid(pid) == pid
        self.notes.append(("watch", run_id))
        return self._takes

    def done(self, run_id: int) -> None:
        self.notes.append(("done", run_id))

    def start(self, nursery: trio.Nursery, script: str) -> None:
        executor = Executor(nursery, self.events.append, self)
        executor.start(StartProcess(1, ("sh", "-c", script), {}, ""))

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
