"""Deadlines on a host without a guardian: the executor freezes, thaws and kills by timers of its own."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import pytest
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
from mesh.guardian.process import look
from mesh.runtime.executor import Executor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes in /proc")

Until: TypeAlias = Callable[[Callable[[], bool]], Awaitable[None]]
FAR_S = 1_000.0
SOON_S = 0.1

LEAVES_ITS_GROUP = "setsid sleep 7001 & echo $$ $!; wait; exec sleep 7002"
"""Says who leads the group, and who has left it and stayed below."""


class Alone:
    """An executor without a guardian, with a clock that the test may move on."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.ahead_s = 0.0
        self.events: list[ProcessEvent] = []
        self.executor = Executor(nursery, self.events.append, clock=self.now)

    def now(self) -> float:
        return time.monotonic() + self.ahead_s

    def do(self, *effects: ProcessEffect) -> None:
        for effect in effects:
            self.executor.carry_out(effect)

    async def start(self, until: Until, script: str, *before: ProcessEffect) -> list[int]:
        """Start a script that says who it is; return the processes that it names."""
        self.do(*before, StartProcess(1, ("sh", "-c", script), {}, ""))
        await until(lambda: any(isinstance(event, ProcessOutput) for event in self.events))
        (said,) = [event for event in self.events if isinstance(event, ProcessOutput)]
        return [int(word) for word in said.data.split()]

    def has_ended(self) -> bool:
        return self.end is not None

    @property
    def end(self) -> ProcessExit | None:
        ends = [event for event in self.events if isinstance(event, ProcessExit)]
        return ends[0] if ends else None

    def counted(self) -> tuple[int, ...]:
        return tuple(self.executor.counters.values())


@asynccontextmanager
async def alone() -> AsyncIterator[Alone]:
    async with trio.open_nursery() as nursery:
        made = Alone(nursery)
        try:
            yield made
        finally:
            nursery.cancel_scope.cancel()
            made.executor.kill_all()


def is_stopped(pid: int) -> bool:
    process = look(pid)
    return process is not None and process.is_stopped


def is_gone(pid: int) -> bool:
    process = look(pid)
    return process is None or process.is_dead


async def test_a_run_is_frozen_at_its_deadline_and_killed_at_the_other(until: Until) -> None:
    async with alone() as a:
        now = a.now()
        (pid,) = await a.start(
            until, "echo $$; exec sleep 7001", GuardProcess(1, now + SOON_S, now + FAR_S)
        )
        await until(lambda: is_stopped(pid))
        assert a.now() >= now + SOON_S
        assert not a.has_ended()
        assert a.counted() == (1, 0, 0)
        a.do(GuardProcess(1, now, a.now() + SOON_S))
        await until(a.has_ended)
        assert a.end == ProcessExit(1, 137)
        assert a.counted() == (1, 0, 1)


async def test_a_run_that_was_renewed_goes_on(until: Until) -> None:
    async with alone() as a:
        (pid,) = await a.start(until, "echo $$; exec sleep 7001")
        a.do(GuardProcess(1, 0.0, a.now() + FAR_S))
        await until(lambda: is_stopped(pid))
        a.do(GuardProcess(1, a.now() + FAR_S, a.now() + FAR_S))
        await until(lambda: not is_stopped(pid))
        assert a.counted() == (1, 1, 0)


async def test_freeze_and_thaw_reach_who_has_left_the_group_too(until: Until) -> None:
    async with alone() as a:
        pids = await a.start(until, LEAVES_ITS_GROUP)
        await until(lambda: os.getpgid(pids[1]) == pids[1])
        a.do(FreezeProcess(1), FreezeProcess(1))
        await until(lambda: all(map(is_stopped, pids)))
        a.do(ThawProcess(1), ThawProcess(1))
        await until(lambda: not any(map(is_stopped, pids)))
        assert a.counted() == (1, 1, 0)
        a.do(FreezeProcess(1))
        await until(lambda: all(map(is_stopped, pids)))
        a.do(StopProcess(1, 0.0))
        await until(lambda: all(map(is_gone, pids)))
        await until(a.has_ended)


async def test_thaw_does_not_undo_a_deadline_that_has_passed(until: Until) -> None:
    async with alone() as a:
        (pid,) = await a.start(until, "echo $$; exec sleep 7001")
        a.do(GuardProcess(1, a.now() - 1, a.now() + FAR_S), ThawProcess(1))
        await until(lambda: is_stopped(pid))
        assert a.counted() == (1, 0, 0)


async def test_what_was_never_frozen_is_not_continued(until: Until) -> None:
    async with alone() as a:
        (pid,) = await a.start(until, "echo $$; kill -STOP $$; exec sleep 7001")
        await until(lambda: is_stopped(pid))
        a.do(ThawProcess(1), GuardProcess(1, a.now() + FAR_S, a.now() + FAR_S))
        assert is_stopped(pid)


async def test_a_deadline_that_passed_while_the_host_slept_is_kept_soon_after(until: Until) -> None:
    async with alone() as a:
        (pid,) = await a.start(
            until,
            "echo $$; exec sleep 7001",
            GuardProcess(1, a.now() + FAR_S, a.now() + 2 * FAR_S),
        )
        a.ahead_s = FAR_S  # nothing announces it
        await until(lambda: is_stopped(pid))
        a.ahead_s = 2 * FAR_S
        await until(a.has_ended)


async def test_a_frozen_run_that_is_to_end_is_killed_when_its_grace_is_over(until: Until) -> None:
    async with alone() as a:
        (pid,) = await a.start(until, "echo $$; exec sleep 7001")
        a.do(FreezeProcess(1))
        # Of two signals that wait, the kernel takes SIGTERM first.
        await until(lambda: is_stopped(pid))
        a.do(StopProcess(1, SOON_S))
        await until(a.has_ended)
        assert a.end == ProcessExit(1, 137)


async def test_grace_that_is_over_ends_who_has_left_the_group_too(until: Until) -> None:
    async with alone() as a:
        pids = await a.start(until, f"trap '' TERM; {LEAVES_ITS_GROUP}")
        await until(lambda: os.getpgid(pids[1]) == pids[1])
        a.do(StopProcess(1, SOON_S))
        await until(a.has_ended)
        await until(lambda: all(map(is_gone, pids)))


async def test_deadlines_of_a_run_that_has_ended_touch_nobody(until: Until) -> None:
    async with alone() as a:
        await a.start(until, "echo $$", GuardProcess(1, a.now() + FAR_S, a.now() + FAR_S))
        a.do(ReadOutput(1, 1))
        await until(a.has_ended)
        a.do(FreezeProcess(1), ThawProcess(1), GuardProcess(1, 0.0, 0.0))
        assert a.end == ProcessExit(1, 0)
        assert a.counted() == (0, 0, 0)
