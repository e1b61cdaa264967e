"""Lines for people: what they say, and that no kind of stderr harms the node."""

from __future__ import annotations

import os
import time

import pytest
import trio
from trio.testing import MockClock

from mesh.core.events import Event, EventKind
from mesh.runtime.clock import system_clock
from mesh.runtime.console import LINE_BYTES_MAX, Console, event_line
from mesh.runtime.eventlog import EVENTS_MAX, EventLog, event_json


def test_a_line_has_the_local_time_and_no_line_breaks() -> None:
    read, write = os.pipe()
    Console(write, lambda: 0.0).say("one\ntwo\x0bthree")
    stamp = time.strftime("%H:%M:%S", time.localtime(0))
    assert os.read(read, 1_000) == f"{stamp} mesh: one two three\n".encode()
    os.close(read)
    os.close(write)


def test_a_pipe_that_nobody_reads_costs_lines_and_no_time() -> None:
    read, write = os.pipe()
    console = Console(write)
    for _ in range(100):
        console.say("x" * 5_000)
    assert console.dropped > 50
    while console.dropped:
        assert len(os.read(read, LINE_BYTES_MAX)) > 0
        console.say("again")
    text = os.read(read, 1 << 20).decode()
    assert "lines before this one could not be written" in text
    os.close(read)
    os.close(write)


def test_a_closed_stderr_is_survived() -> None:
    read, write = os.pipe()
    console = Console(write)
    os.close(read)
    console.say("nobody hears this")
    os.close(write)
    console.say("nor this")
    assert console.dropped == 2


def test_a_full_disk_is_survived() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    console = Console(full)
    console.say("lost")
    assert console.dropped == 1
    os.close(full)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            Event(
                kind=EventKind.DEAD,
                member="b",
                state="dead",
                cause="silent",
                detail="was declared dead at 127.0.0.1:1",
                evidence=("no answer to 3 pings", "more"),
            ),
            "b was declared dead at 127.0.0.1:1; silent; no answer to 3 pings",
        ),
        (Event(kind=EventKind.JOIN, member="b", detail="joined at ::1"), "b joined at ::1"),
        (Event(kind=EventKind.WARN, detail="careful"), "warning: careful"),
        (
            Event(kind=EventKind.WARN, task_id="t1", detail="nobody takes it"),
            "warning: task t1: nobody takes it",
        ),
        (Event(kind=EventKind.SEEK, member="a", detail="no seed answers"), "no seed answers"),
    ],
)
def test_an_event_reads_as_a_sentence(event: Event, line: str) -> None:
    assert event_line(event) == line


def test_only_what_people_wait_for_is_shown() -> None:
    read, write = os.pipe()
    console = Console(write)
    for kind in EventKind:
        console.show(Event(kind=kind, member="m", detail=kind.value))
    os.close(write)
    lines = os.read(read, 1 << 16).decode().splitlines()
    assert len(lines) == 11
    assert not any("task" in line or "suspect" in line for line in lines)
    os.close(read)


def test_the_log_keeps_the_latest_events_with_time_and_observer() -> None:
    log = EventLog(lambda: "me", lambda: 7)
    for number in range(EVENTS_MAX + 5):
        log.publish(Event(kind=EventKind.WARN, detail=str(number)))
    last = log.last(2)
    assert [event["detail"] for event in last] == [str(EVENTS_MAX + 3), str(EVENTS_MAX + 4)]
    assert (last[0]["at_ns"], last[0]["observer"]) == (7, "me")
    assert len(log.last(10 * EVENTS_MAX)) == EVENTS_MAX
    assert log.last(0) == []


async def test_a_follower_that_falls_behind_is_bounded_and_knows_it() -> None:
    log = EventLog(lambda: "me")
    with log.follow(events_max=3) as follower:
        for number in range(3):
            log.publish(Event(kind=EventKind.WARN, detail=str(number)))
        before = follower.has_lagged
        log.publish(Event(kind=EventKind.WARN, detail="3"))
        assert (before, follower.has_lagged) == (False, True)
        assert [event["detail"] for event in follower.take()] == ["1", "2", "3"]
    log.publish(Event(kind=EventKind.WARN))
    assert follower.take() == []


async def test_a_follower_that_gathers_is_woken_once_for_all(autojump_clock: MockClock) -> None:
    log = EventLog(lambda: "me")
    with log.follow(10) as at_once, log.follow(10, gather_s=0.5) as gathering:
        for detail in ("first", "second"):
            log.publish(Event(kind=EventKind.WARN, detail=detail))
        begun_at = trio.current_time()
        await at_once.wait()
        assert trio.current_time() == begun_at
        assert len(at_once.take()) == 2
        async with trio.open_nursery() as nursery:
            nursery.start_soon(gathering.wait)
            await trio.sleep(0.25)
            log.publish(Event(kind=EventKind.WARN, detail="third"))
        assert trio.current_time() == pytest.approx(begun_at + 0.5)
        assert [event["detail"] for event in gathering.take()] == ["first", "second", "third"]


async def test_a_follower_waits_until_there_is_something(autojump_clock: MockClock) -> None:
    log = EventLog(lambda: "me")
    with log.follow(10, gather_s=0.5) as follower:
        for _ in range(2):  # what was taken wakes nobody again
            begun_at = trio.current_time()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(follower.wait)
                await trio.sleep(3)
                log.publish(Event(kind=EventKind.WARN))
            assert trio.current_time() == pytest.approx(begun_at + 3.5)
            assert len(follower.take()) == 1


def test_an_event_has_the_keys_that_programs_rely_on() -> None:
    keys = set(event_json(Event(kind=EventKind.JOIN), 1, "me"))
    wanted = {
        "at_ns",
        "observer",
        "kind",
        "member",
        "state",
        "cause",
        "evidence",
        "detail",
        "task_id",
    }
    assert wanted <= keys


def test_the_clock_moves_on_and_says_when_it_cannot_see_sleep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    clock = system_clock(said.append)
    assert clock() <= clock()
    assert not said
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    fallback = system_clock(said.append)
    assert fallback() <= fallback()
    assert len(said) == 1
