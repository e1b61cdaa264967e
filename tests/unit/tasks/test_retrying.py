"""A dead letter is retried as a new task, once."""

from __future__ import annotations

from dataclasses import replace

from mesh.tasks.commands import (
    RetryTask,
)
from mesh.tasks.form import of_value
from mesh.tasks.submitting import retry_id
from mesh.wire.task_messages import TaskState
from tests.unit.tasks.asked import (
    FAIL,
    ID,
    Runner,
    dead,
    error,
    hall_of,
    result,
    submit,
)
from tests.unit.tasks.hall import Desk
from tests.unit.tasks.made import ANNA, SPEC, new


def test_a_dead_letter_is_retried_as_a_new_task_once() -> None:
    hall, desk = hall_of()
    dead(hall, desk)
    assert result(desk.give(RetryTask(1, ID))) == {"id": f"{ID}~1", "retry_of": ID}
    body = hall.held(f"{ID}~1")
    assert body is not None
    assert (body.state, body.retry_of, body.spec.argv) == (TaskState.READY, ID, SPEC.argv)
    again = result(Desk(hall, ANNA).give(RetryTask(1, ID)))
    assert (again["id"], again["known"], again["state"]) == (f"{ID}~1", True, "ready")
    first = hall.held(ID)
    assert first is not None
    assert first.state is TaskState.FAILED


def test_a_retry_that_failed_too_is_retried_in_its_turn() -> None:
    hall, desk = hall_of()
    dead(hall, desk)
    for number in range(1, 4):
        assert result(desk.give(RetryTask(number, ID)))["id"] == f"{ID}~{number}"
        runner = Runner(hall, task_id=f"{ID}~{number}")
        runner.claim()
        runner.finish(FAIL)
    found = result(desk.give(RetryTask(4, f"{ID}~2")))
    assert (found["id"], found["retry_of"]) == (f"{ID}~4", f"{ID}~3")


def test_only_a_dead_letter_is_retried() -> None:
    _, desk = hall_of()
    submit(desk)
    assert "is ready: only one that failed" in error(desk.give(RetryTask(1, ID)))


def test_a_retrys_id_that_somebody_else_uses_is_told() -> None:
    hall, desk = hall_of()
    dead(hall, desk)
    submit(desk, f"{ID}~1")
    text = error(desk.give(RetryTask(1, ID)))
    assert f"task {ID}~1, as the retry of {ID} would be called, is another task" in text


def test_retries_of_the_longest_ids_have_ids_that_fit_and_differ() -> None:
    long = of_value(new(task_id="x" * 128))
    first = retry_id(long)
    second = retry_id(replace(long, spec=replace(SPEC, task_id=first), retry_of="x" * 128))
    other = retry_id(of_value(new(task_id="x" * 127 + "y")))
    assert len({first, second, other}) == 3
    assert max(map(len, (first, second, other))) <= 128
    assert (first[-2:], second[-2:]) == ("~1", "~2")
    odd = replace(long, spec=replace(SPEC, task_id="odd~²"), retry_of="odd")
    assert retry_id(odd) == "odd~²~1"
