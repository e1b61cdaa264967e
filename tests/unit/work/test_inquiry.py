"""Asking all members for their tasks, and for one."""

from __future__ import annotations

import pytest

from mesh.core.effects import Answer
from mesh.core.ids import NodeId
from mesh.core.requests import Ask
from mesh.wire.work_messages import TaskList, TaskQuery
from mesh.work.commands import GetTask, ListTasks
from mesh.work.keeping.inquiry import _decode
from mesh.work.work import WorkConfig
from tests.unit.work.hosts import job
from tests.unit.work.pump import Pump


def test_a_list_has_the_tasks_of_all_members_newest_first() -> None:
    pump = Pump([1, 1, 1])
    expected = []
    for number in (1, 2, 3, 1):
        expected.append(pump.submit(number, job(0.1)))
        pump.run(0.5)
    found = pump.tasks(2)
    assert [task["id"] for task in found["tasks"]] == expected[::-1]
    assert found["silent"] == []
    assert {task["keeper"] for task in found["tasks"]} == {"n1", "n2", "n3"}


def test_a_list_names_who_stayed_silent() -> None:
    pump = Pump([1, 1, 1])
    task_id = pump.submit(1, job(0.1))
    pump.kill(3, noticed_after_s=None)
    began = pump.now
    found = pump.tasks(2)
    assert found["silent"] == ["n3"]
    assert [task["id"] for task in found["tasks"]] == [task_id]
    assert pump.now - began <= 2.1


def test_one_task_is_found_wherever_it_is_kept_without_waiting_for_the_silent() -> None:
    pump = Pump([1, 1, 1])
    task_id = pump.submit(1, job(0.1))
    pump.finish((1, task_id))
    pump.kill(3, noticed_after_s=None)
    began = pump.now
    assert pump.task(2, task_id) == pump.task(1, task_id)
    assert pump.now - began < 0.1


def test_an_answer_that_is_no_task_counts_as_silence() -> None:
    pump = Pump([1, 1])
    work = pump[1].work
    for text in ("{", "[]", '{"id": 1}', '{"id": "x"}', '{"id": "x", "created": "now"}'):
        (ask,) = work.handle_command(pump.now, ListTasks(1))
        assert isinstance(ask, Ask)
        (answer,) = work.handle_reply(pump.now, ask.tag, TaskList((text,)))
        assert answer == Answer(1, {"tasks": [], "silent": ["n2"]})


def test_questions_under_way_are_bounded() -> None:
    pump = Pump([1, 1], config=WorkConfig(inquiries_max=1))
    pump[1].work.handle_command(pump.now, ListTasks(1))
    (answer,) = pump[1].work.handle_command(pump.now, GetTask(2, "x"))
    assert isinstance(answer, Answer)
    assert "under way" in (answer.error or "")


def test_a_list_for_the_wire_stays_within_a_frame() -> None:
    pump = Pump([0, 1])
    for i in range(3000):
        pump.submit(1, job(1.0, 0, *["🙂" * 300] * 40, task_id=f"t{i}"))
    reply, _ = pump[1].work.handle_message(pump.now, NodeId(2), TaskQuery(""))
    assert isinstance(reply, TaskList)
    assert sum(len(text.encode()) for text in reply.tasks) < 8 * 1024 * 1024
    assert '"id":"t2999"' in reply.tasks[0]


def test_a_view_counts_all_tasks_and_shows_the_newest() -> None:
    pump = Pump([2, 0], config=WorkConfig(view_tasks_max=3))
    tasks = [pump.submit(1, job(0.1 if i < 2 else 50.0)) for i in range(6)]
    pump.run(1.0)
    view = pump[1].work.view(pump.now)
    assert [task["id"] for task in view.tasks] == tasks[:2:-1]
    assert view.task_counts == {"ready": 2, "leased": 2, "done": 2, "failed": 0, "cancelled": 0}
    assert [(run["id"], run["keeper"], run["attempt"]) for run in view.running] == [
        (tasks[2], "n1", 1),
        (tasks[3], "n1", 1),
    ]


@pytest.mark.parametrize("created", ["NaN", "Infinity", "-Infinity", "1e300", '"soon"', "null"])
def test_list_with_a_time_that_is_none_counts_as_silence(created: str) -> None:
    good = TaskList(('{"id": "a", "created": 5.0}',))
    assert _decode(good) == [{"id": "a", "created": 5.0}]
    assert _decode(TaskList((f'{{"id": "a", "created": {created}}}',))) is None
