"""Following a task's output to its end."""

from __future__ import annotations

from typing import Any

from mesh.core.effects import Answer
from mesh.work.commands import Submit, Unwatch, Watch
from mesh.work.work import WorkConfig
from tests.unit.work.hosts import job
from tests.unit.work.pump import Pump


def watch(pump: Pump, number: int, task_id: str, watcher_id: int = 1) -> Answer:
    return pump.answers[pump.command(number, lambda c: Watch(c, watcher_id, task_id))]


def take(pump: Pump, number: int, watcher_id: int = 1) -> tuple[str, dict[str, Any] | None]:
    pieces, task = pump[number].work.take_watch(watcher_id)
    return b"".join(data for _, data in pieces).decode(), task


def test_a_watcher_gets_all_output_in_order_and_then_the_task() -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, job(1.0, 0, "a", "b", "c"))
    assert watch(pump, 1, task_id).result == {"id": task_id}
    assert take(pump, 1) == ("", None)
    pump.run(0.5)
    assert take(pump, 1) == ("abc", None)
    pump.finish((1, task_id))
    text, task = take(pump, 1)
    assert text == ""
    assert task is not None
    assert (task["state"], task["result"]["stdout_tail"]) == ("done", "abc")
    assert task["result"]["output_bytes"] == 3


def test_a_watcher_that_comes_late_gets_what_is_still_held() -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, job(0.1, 0, "a", "b"))
    pump.finish((1, task_id))
    watch(pump, 1, task_id)
    text, task = take(pump, 1)
    assert text == "ab"
    assert task is not None


def test_output_says_when_there_is_something_to_take() -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, job(1.0, 0, "a"))
    watch(pump, 1, task_id)
    take(pump, 1)
    before = len(pump[1].changed)
    pump.run(0.5)
    assert pump[1].changed[before:] == [task_id, task_id]  # leased, and the piece


def test_a_slow_watcher_holds_the_command_up_and_loses_nothing() -> None:
    pump = Pump([0, 1], config=WorkConfig(output_bytes_max=1000))
    pieces = [f"{i:02}" * 50 for i in range(50)]
    task_id = pump.submit(1, job(0.1, 0, *pieces))
    watch(pump, 1, task_id)
    pump.run(5.0)
    assert not pump.is_over(1, task_id)
    assert len(pump[2].processes[1].pieces) > 30
    found = ""
    for _ in range(200):
        found += take(pump, 1)[0]
        pump.run(0.1)
    assert found == "".join(pieces)
    task = take(pump, 1)[1]
    assert task is not None
    assert task["result"]["output_bytes"] == len(found)


def test_a_watcher_from_submission_on_misses_nothing() -> None:
    pump = Pump([0, 1], config=WorkConfig(output_bytes_max=1000))
    pieces = [f"{i:02}" * 50 for i in range(50)]
    answer = pump.answers[pump.command(1, lambda c: Submit(c, job(0.0, 0, *pieces), 7))]
    found = ""
    for _ in range(200):
        found += take(pump, 1, 7)[0]
        pump.run(0.1)
    assert found == "".join(pieces)
    result = pump.task(1, answer.result["id"])["result"]
    assert (result["output_bytes"], result["output_dropped_bytes"]) == (len(found), 0)


def test_a_watcher_may_come_with_an_id_that_is_kept_already() -> None:
    pump = Pump([1])
    pump.submit(1, job(0.1, 0, "a", task_id="twice"))
    pump.finish((1, "twice"))
    pump.command(1, lambda c: Submit(c, job(0.1, task_id="twice"), 7))
    text, task = take(pump, 1, 7)
    assert text == "a"
    assert task is not None
    assert len(pump[1].started) == 1


def test_a_task_whose_watcher_finds_no_place_is_not_taken() -> None:
    pump = Pump([1], config=WorkConfig(watchers_max=1))
    assert pump.answers[pump.command(1, lambda c: Submit(c, job(5.0), 1))].error is None
    assert pump.answers[pump.command(1, lambda c: Submit(c, job(5.0), 2))].error is not None
    assert len(pump[1].work._keeping._table.tasks) == 1


def test_output_counts_as_dropped_only_if_no_watcher_took_it() -> None:
    pump = Pump([0, 1], config=WorkConfig(output_bytes_max=1000))
    task_id = pump.submit(1, job(2.0, 0, "x" * 100))
    watch(pump, 1, task_id)
    pump.run(0.5)
    assert len(take(pump, 1)[0]) == 100
    pump[1].work.handle_command(pump.now, Unwatch(1))
    process = pump[2].processes[1]
    process.pieces = [b"y" * 100] * 20
    pump.run(0.0)
    pump.later(0.0, pump._play(pump[2], process))
    pump.finish((1, task_id))
    result = pump.task(1, task_id)["result"]
    held = sum(len(data) for _, data in pump[1].work._keeping._output.logs[task_id].pieces)
    assert result["output_bytes"] == 2100
    assert result["output_dropped_bytes"] == 2000 - held


def test_without_a_watcher_the_oldest_output_is_dropped_and_counted() -> None:
    pump = Pump([0, 1], config=WorkConfig(output_bytes_max=1000))
    task_id = pump.submit(1, job(0.1, 0, *["x" * 100] * 50, "the end"))
    pump.finish((1, task_id))
    result = pump.task(1, task_id)["result"]
    assert result["output_bytes"] == 5007
    assert result["output_dropped_bytes"] > 4000
    assert (
        pump[1].work.view(pump.now).counters["dropped_output_bytes"]
        == result["output_dropped_bytes"]
    )
    assert result["stdout_tail"].endswith("xthe end")


def test_a_watcher_that_takes_nothing_is_dropped_and_told_why() -> None:
    pump = Pump([0, 1], config=WorkConfig(output_bytes_max=1000))
    task_id = pump.submit(1, job(0.1, 0, *["x" * 100] * 50))
    watch(pump, 1, task_id)
    pump.finish((1, task_id))
    assert 29 < pump.now - 100 < 35
    pieces, task = pump[1].work.take_watch(1)
    assert pieces == []
    assert task is not None
    assert (task["id"], task["watch_error"]) == (task_id, "nothing was taken for 30 s")
    pump[1].work.handle_command(pump.now, Unwatch(1))
    assert take(pump, 1)[1] == {
        "watch_error": "this watcher is not known, or its task was forgotten"
    }


def test_a_watcher_that_is_gone_holds_nothing_up() -> None:
    pump = Pump([0, 1], config=WorkConfig(output_bytes_max=1000))
    task_id = pump.submit(1, job(0.1, 0, *["x" * 100] * 50))
    watch(pump, 1, task_id)
    pump.run(1.0)
    pump[1].work.handle_command(pump.now, Unwatch(1))
    pump.finish((1, task_id), within_s=1.0)


def test_only_tasks_that_are_kept_here_can_be_watched() -> None:
    pump = Pump([1, 1])
    task_id = pump.submit(1, job(0.1))
    answer = watch(pump, 2, task_id)
    assert "ask the node that accepted it" in (answer.error or "")


def test_watchers_are_bounded() -> None:
    pump = Pump([1], config=WorkConfig(watchers_max=1))
    task_id = pump.submit(1, job(5.0))
    assert watch(pump, 1, task_id, 1).error is None
    assert watch(pump, 1, task_id, 2).error is not None


def test_after_a_crash_a_watcher_sees_the_next_attempt_from_its_start() -> None:
    pump = Pump([0, 1, 1])
    task_id = pump.submit(1, job(2.0, 0, "a", "b"))
    watch(pump, 1, task_id)
    pump.run(1.0)
    assert take(pump, 1)[0] == "ab"
    pump.kill(int(pump.task(1, task_id)["owner"][1:]))
    pump.finish((1, task_id))
    text, task = take(pump, 1)
    assert text == "ab"
    assert task is not None
    assert len(task["attempts"]) == 2
    assert task["result"]["output_bytes"] == 2
