"""A host too short of something to start commands: they run elsewhere, and it is left alone for a while."""

from __future__ import annotations

from mesh.core.rest import REST_S, REST_S_MAX, Rest
from tests.unit.work.hosts import job
from tests.unit.work.pump import Pump


def test_a_shortage_fails_no_task() -> None:
    pump = Pump([2, 40])
    pump[2].is_short = True
    ids = [pump.submit(1, job(0.5)) for _ in range(16)]
    pump.finish(*((1, task_id) for task_id in ids))
    tasks = [pump.task(1, task_id) for task_id in ids]
    assert {task["state"] for task in tasks} == {"done"}
    lost = [attempt for task in tasks for attempt in task["attempts"] if attempt["node"] == "n2"]
    assert lost
    assert all("released it" in attempt["error"] for attempt in lost)
    assert all("Too many open files" in attempt["error"] for attempt in lost)
    again = [attempt["cause"] for task in tasks for attempt in task["attempts"][1:]]
    assert set(again) == {"released"}


def test_a_host_that_ran_short_takes_nothing_until_its_rest_is_over() -> None:
    pump = Pump([0, 4])
    pump[2].is_short = True
    began = pump.now
    task_id = pump.submit(1, job(0.1))
    pump.run_until(lambda: len(pump[2].started) == 1, 1.0)
    pump.run(REST_S / 2)
    assert len(pump[2].started) == 1
    assert pump[2].work.free_slots == 0
    pump[2].is_short = False
    pump.finish((1, task_id))
    assert pump.now - began >= REST_S
    assert len(pump[2].started) == 2
    (warning,) = [event for event in pump[2].events if "ran short" in event.detail]
    assert "takes no work for 1 s" in warning.detail


def test_a_shortage_that_lasts_is_met_less_and_less_often() -> None:
    pump = Pump([0, 4])
    pump[2].is_short = True
    task_id = pump.submit(1, job(0.1))
    pump.run(120.0)
    tries = len(pump[2].started)
    assert 5 <= tries <= 9, tries  # after 1, 2, 4, 8, 16, 30, 30 s
    assert not pump.is_over(1, task_id)
    pump[2].is_short = False
    pump.finish((1, task_id), within_s=REST_S_MAX + 5)


def test_a_task_that_is_cancelled_while_no_host_can_start_it_is_over() -> None:
    pump = Pump([0, 1])
    pump[2].is_short = True
    task_id = pump.submit(1, job(0.1))
    pump.run(3.5)
    pump.cancel(1, task_id)
    pump.finish((1, task_id))
    assert pump.task(1, task_id)["state"] == "cancelled"


def test_a_start_after_the_rest_makes_the_next_rest_short_again() -> None:
    rest = Rest()
    pauses = []
    for number in range(1, 8):
        now = 100.0 * number
        assert rest.begin(now, number)
        assert not rest.begin(now, number)  # one rest for all that failed together
        pauses.append(rest.pause_s)
        rest.note_started(number)  # accepted before the rest: says nothing
        assert not rest.end(now)
        assert rest.end(now + rest.pause_s)
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    rest.note_started(8)
    assert rest.begin(1000.0, 8)
    assert rest.pause_s == REST_S
