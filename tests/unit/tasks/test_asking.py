"""Reading tasks, listing them and waiting for their end, at any node."""

from __future__ import annotations

import pytest

from mesh.core.effects import Answer
from mesh.registers.record import NOTHING
from mesh.tasks import asking
from mesh.tasks.asking import LIST_MAX, TALKS_MAX
from mesh.tasks.body import task_key
from mesh.tasks.commands import (
    Abandon,
    CancelTask,
    GetTask,
    ListTasks,
    New,
    RetryTask,
    Submit,
    WaitFor,
)
from mesh.wire.register_messages import (
    Accept,
    Standing,
    Value,
)
from mesh.wire.task_messages import Notice, TaskState, Watch
from tests.unit.tasks.asked import (
    DONE,
    DORA,
    FAIL,
    ID,
    Runner,
    dead,
    error,
    hall_of,
    result,
    submit,
)
from tests.unit.tasks.hall import VOTERS, Desk, Hall
from tests.unit.tasks.made import ANNA, SPEC, TOKEN


def test_a_task_is_read_at_a_majority() -> None:
    hall, desk = hall_of()
    submit(desk)
    runner = Runner(hall)
    runner.claim()
    found = result(desk.give(GetTask(1, ID)))
    assert (found["id"], found["state"], found["owner"], found["attempt"]) == (
        ID,
        "leased",
        "bert",
        1,
    )
    assert found["home"] in {"anna", "bert", "carl", "dora"}
    assert found["attempts"][0]["token"] is None  # this node keeps no record
    runner.finish(DONE)
    found = result(desk.give(GetTask(2, ID)))
    assert (found["state"], found["result"]["exit_code"]) == ("done", 0)
    assert found["attempts"][0]["token"] == str(TOKEN.token)


def test_a_voter_knows_the_token_of_the_attempt_that_runs() -> None:
    hall, desk = hall_of(ANNA)
    submit(desk)
    runner = Runner(hall)
    runner.claim()
    found = result(desk.give(GetTask(1, ID)))
    assert found["attempts"][0]["token"] == str(runner.token.token)


@pytest.mark.parametrize("command", [GetTask, CancelTask, RetryTask, WaitFor])
def test_a_task_that_nobody_has_is_not_known(command: type) -> None:
    _, desk = hall_of()
    assert "no task ghost is known" in error(desk.give(command(1, "ghost")))
    assert "1 to 128 characters" in error(desk.give(command(2, "")))
    assert "found 129" in error(desk.give(command(3, "x" * 129)))
    assert not len(desk.asking)


@pytest.mark.parametrize("command", [GetTask, CancelTask, RetryTask, WaitFor])
def test_a_record_of_a_later_version_is_told_as_such(command: type) -> None:
    hall, desk = hall_of()
    unread = Value(Standing.OPEN, b"\x03 unheard of")
    for voter in VOTERS:
        hall.ask(voter, Accept(task_key(ID), 1, TOKEN, 0, unread))
    assert "cannot be read by this version" in error(desk.give(command(1, ID)))
    assert "cannot read" in error(desk.give(Submit(2, New(SPEC))))


def test_reading_without_a_majority_says_so() -> None:
    hall, desk = hall_of()
    submit(desk)
    hall.cut = {VOTERS[0], VOTERS[1]}
    desk.give(GetTask(1, ID, timeout_s=2.0))
    desk.wait(2.0)
    assert "did not come for 2 s" in error(desk.answers[1])


def test_a_list_shows_what_this_voter_keeps_and_says_so() -> None:
    hall, desk = hall_of(ANNA)
    for number in range(3):
        submit(desk, f"task-{number}")
    runner = Runner(hall, task_id="task-1")
    runner.claim()
    runner.finish(FAIL)
    for key, record in hall.voters[ANNA.node_id]:
        desk.asking.handle_changed(key, record)
    found = result(desk.give(ListTasks(1)))
    assert [one["id"] for one in found["tasks"]] == ["task-2", "task-1", "task-0"]
    assert found["counts"] == {
        "ready": 2,
        "scheduled": 0,
        "leased": 0,
        "done": 0,
        "failed": 1,
        "cancelled": 0,
    }
    assert "that anna votes on" in found["local"]
    assert [one["id"] for one in result(desk.give(ListTasks(2, 1)))["tasks"]] == ["task-2"]
    again = Desk(hall, ANNA)  # a session that begins with records
    assert again.asking.counts() == found["counts"]
    assert LIST_MAX >= 500


def ended_desk(names: list[str]) -> tuple[Hall, Desk]:
    """Return a node that keeps these tasks, which have ended."""
    hall, desk = hall_of(ANNA)
    for name in names:
        dead(hall, desk, name)
    for key, record in hall.voters[ANNA.node_id]:
        desk.asking.handle_changed(key, record)
    return hall, desk


def test_a_short_list_between_two_long_ones_costs_the_second_nothing() -> None:
    _, desk = ended_desk(["a", "b", "c"])
    before = desk.asking.newest(3)
    desk.asking.newest(1)
    assert all(one is other for one, other in zip(desk.asking.newest(3), before, strict=True))


def test_what_lists_have_shown_is_kept_for_the_latest_so_many_and_forgotten_once_it_is_purged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "LIST_MAX", 2)
    hall, desk = ended_desk(["a", "b"])
    both = desk.asking.newest(2)
    dead(hall, desk, "c")
    key = task_key("c")
    desk.asking.handle_changed(key, hall.voters[ANNA.node_id].record(key))
    new, kept = desk.asking.newest(2)
    assert [new["id"], kept["id"]] == ["c", "b"]
    assert kept is both[0]
    assert [*desk.asking._shown] == [key, task_key("b")]
    desk.asking.handle_changed(key, NOTHING)
    assert [*desk.asking._shown] == [task_key("b")]


def test_who_waits_is_answered_as_soon_as_a_voter_says_that_it_has_ended() -> None:
    hall, desk = hall_of()
    submit(desk)
    assert desk.give(WaitFor(1, ID)) is None
    assert {to for to, message in desk.sent if isinstance(message, Watch)} == set(VOTERS)
    runner = Runner(hall)
    runner.claim()
    desk.settle()
    assert not desk.answers
    runner.finish(DONE)
    desk.settle()
    assert result(desk.answers[1])["state"] == "done"


def test_who_waits_hears_of_the_end_without_any_notice_a_little_later() -> None:
    hall, desk = hall_of()
    hall.is_noticing = False
    submit(desk)
    desk.give(WaitFor(1, ID))
    runner = Runner(hall)
    runner.claim()
    runner.finish(FAIL)
    desk.wait(2.0)
    assert result(desk.answers[1])["state"] == "failed"


def test_a_notice_is_believed_by_nobody_before_a_majority_says_the_same() -> None:
    _, desk = hall_of()
    submit(desk)
    desk.give(WaitFor(1, ID))
    desk.hear(VOTERS[0], Notice(ID, TOKEN, 1, TaskState.DONE, 1, None))
    desk.hear(DORA.node_id, Notice(ID, TOKEN, 1, TaskState.DONE, 1, None))
    assert not desk.answers


def test_who_waits_no_longer_is_told_how_it_stands() -> None:
    hall, desk = hall_of()
    submit(desk)
    desk.give(WaitFor(1, ID, timeout_s=7.0))
    desk.wait(6.9)
    assert not desk.answers
    desk.wait(0.2)
    assert f"task {ID} has not ended within 7 s: it is ready" in error(desk.answers[1])
    hall.cut = set(VOTERS[:2])
    desk.give(WaitFor(2, ID, timeout_s=7.0))
    desk.wait(7.1)
    assert "an answer from 2 of the task's 3 voters" in error(desk.answers[2])


def test_waiting_outlasts_the_loss_of_a_majority_and_watches_anew() -> None:
    hall, desk = hall_of()
    submit(desk)
    hall.cut = set(VOTERS[:2])
    desk.give(WaitFor(1, ID))
    desk.wait(120.0)
    assert not desk.answers
    hall.cut = set()
    runner = Runner(hall)
    runner.claim()
    runner.finish(DONE)
    desk.wait(20.0)
    assert result(desk.answers[1])["state"] == "done"
    assert len(desk.sent) >= 9


def test_an_abandoned_command_is_not_answered_and_leaves_nothing() -> None:
    hall, desk = hall_of()
    submit(desk)
    desk.give(WaitFor(1, ID))
    desk.give(Abandon(1))
    desk.give(Abandon(1))
    assert not len(desk.asking)
    assert desk.asking.next_timeout() is None
    hall.cut = set(VOTERS)
    desk.give(GetTask(2, ID))
    desk.give(Abandon(2))
    desk.wait(10.0)
    assert not desk.answers


def test_commands_under_way_are_bounded() -> None:
    hall, desk = hall_of()
    hall.cut = set(VOTERS)
    for number in range(3):
        desk.give(GetTask(number, ID))
    talks = desk.asking._talks
    talks.update(dict.fromkeys(range(100, 100 + TALKS_MAX), talks[1]))
    (answer,) = desk.asking.handle_command(hall.now, GetTask(9, ID))
    assert isinstance(answer, Answer)
    assert "at most 10000 commands" in error(answer)
