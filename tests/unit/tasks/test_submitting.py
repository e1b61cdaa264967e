"""Submitting tasks, one or many, and what is said when it cannot be done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mesh.tasks.body import Terms, task_key
from mesh.tasks.commands import (
    New,
    Submit,
    SubmitMany,
)
from mesh.tasks.submitting import BATCH_MAX
from mesh.wire.task_messages import TaskState
from tests.unit.tasks.asked import (
    DONE,
    ID,
    Runner,
    error,
    hall_of,
    result,
    submit,
)
from tests.unit.tasks.hall import VOTERS, Desk
from tests.unit.tasks.made import ANNA, SPEC


def test_a_task_is_acknowledged_when_a_majority_holds_it() -> None:
    hall, desk = hall_of()
    assert result(desk.give(Submit(1, New(SPEC)))) == {"id": ID}
    held = [voter.record(task_key(ID)).value for voter in hall.voters.values()]
    assert sum(value is not None for value in held) >= 2
    body = hall.held(ID)
    assert body is not None
    assert (body.state, body.spec, body.origin) == (TaskState.READY, SPEC, "dora")


def test_a_task_without_an_id_gets_one() -> None:
    hall, desk = hall_of()
    found = result(desk.give(Submit(1, New(replace(SPEC, task_id="")))))
    other = result(desk.give(Submit(2, New(replace(SPEC, task_id="")))))
    assert found["id"] != other["id"]
    assert hall.held(found["id"]) is not None


def test_an_id_is_submitted_once_and_known_after_that() -> None:
    hall, desk = hall_of()
    submit(desk)
    other = Desk(hall, ANNA)
    known = {"id": ID, "known": True, "state": "ready", "same": True}
    assert result(other.give(Submit(2, New(SPEC)))) == known
    changed = New(replace(SPEC, argv=("other",)))
    assert result(other.give(Submit(3, changed))) == {**known, "same": False}
    body = hall.held(ID)
    assert body is not None
    assert body.origin == "dora"


def test_a_known_task_that_has_ended_is_not_started_again() -> None:
    hall, desk = hall_of()
    submit(desk)
    runner = Runner(hall)
    runner.claim()
    runner.finish(DONE)
    found = result(desk.give(Submit(2, New(SPEC))))
    assert found == {"id": ID, "known": True, "state": "done", "same": True}


def test_pairs_may_come_in_any_order() -> None:
    _, desk = hall_of()
    spec = replace(SPEC, env=(("B", "2"), ("A", "1"), ("A", "0")))
    result(desk.give(Submit(1, New(spec))))
    spec = replace(SPEC, env=(("A", "0"), ("B", "2")))
    assert result(desk.give(Submit(2, New(spec))))["same"]


@pytest.mark.parametrize(
    ("new_task", "word"),
    [
        (New(replace(SPEC, argv=())), "a command"),
        (New(replace(SPEC, task_id="x" * 129)), "128 characters"),
        (New(replace(SPEC, argv=("\udc80",))), "UTF-8"),
        (New(replace(SPEC, argv=("x" * 100_000,) * 6)), "524288 bytes"),
        (New(SPEC, Terms(retries=-1)), "65535 retries"),
        (New(SPEC, Terms(retry_delay_s=float("nan"))), "retry_delay_s"),
        (New(SPEC, Terms(retain_s=1e12)), "retain_s"),
        (New(SPEC, not_before=1e12), "not_before"),
    ],
)
def test_a_task_that_is_described_wrongly_is_refused_in_words(new_task: New, word: str) -> None:
    hall, desk = hall_of()
    text = error(desk.give(Submit(1, new_task)))
    assert "described wrongly" in text
    assert word in text
    assert all(not len(voter) for voter in hall.voters.values())


def test_a_minority_takes_no_task_and_says_whom_it_misses() -> None:
    hall, desk = hall_of()
    hall.cut = {VOTERS[1], VOTERS[2]}
    desk.view.drop(VOTERS[1])
    assert desk.give(Submit(1, New(SPEC), timeout_s=3.0)) is None
    desk.wait(3.0)
    text = error(desk.answers[1])
    assert "2 of the task's 3 voters (anna, bert, carl)" in text
    assert "for 3 s" in text
    assert "not seen alive from here: bert;" in text


def test_who_may_have_been_heard_is_told_to_ask_again_under_the_same_id() -> None:
    hall, desk = hall_of()

    hall.no_accepts = set(VOTERS[1:])
    desk.give(Submit(1, New(SPEC), timeout_s=2.0))
    desk.wait(2.0)
    text = error(desk.answers[1])
    assert "though all seem alive" in text
    assert f"submitted again as {ID}, it runs once" in text
    hall.no_accepts = set()
    desk.give(Submit(2, New(SPEC)))
    desk.wait(2.0)
    assert result(desk.answers[2])["id"] == ID


def test_a_batch_is_answered_at_once_each_task_for_itself() -> None:
    _, desk = hall_of()
    submit(desk, "b")
    news = [New(replace(SPEC, task_id=task_id)) for task_id in ("a", "b", "c", "a")]
    news.append(New(replace(SPEC, task_id="d", argv=())))
    found = result(desk.give(SubmitMany(1, tuple(news))))["tasks"]
    assert [one["id"] for one in found] == ["a", "b", "c", "a", "d"]
    assert found[0] == {"id": "a"}
    assert found[1]["known"]
    assert "number 1, has this id" in found[3]["error"]
    assert "described wrongly" in found[4]["error"]


def test_a_batch_has_a_limit_and_may_be_empty() -> None:
    hall, desk = hall_of()
    assert result(desk.give(SubmitMany(1, ()))) == {"tasks": []}
    text = error(desk.give(SubmitMany(2, (New(SPEC),) * (BATCH_MAX + 1))))
    assert f"at most {BATCH_MAX}" in text
    assert not any(len(voter) for voter in hall.voters.values())
