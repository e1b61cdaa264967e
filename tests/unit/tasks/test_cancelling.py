"""Cancelling: at the register, by the owner, or when its lease has lapsed."""

from __future__ import annotations

import re

from mesh.registers.trust import Hold
from mesh.tasks.commands import (
    CancelTask,
)
from mesh.wire.task_messages import CancelAnswer, CancelRun, CancelVerdict, TaskState
from tests.unit.tasks.asked import (
    DONE,
    ID,
    Runner,
    error,
    hall_of,
    result,
    submit,
)
from tests.unit.tasks.hall import VOTERS
from tests.unit.tasks.made import ANNA, BERT


def test_a_ready_task_is_cancelled_at_once() -> None:
    hall, desk = hall_of()
    submit(desk)
    found = result(desk.give(CancelTask(1, ID)))
    assert (found["state"], found["cancel_requested"]) == ("cancelled", True)
    body = hall.held(ID)
    assert body is not None
    assert body.state is TaskState.CANCELLED
    assert result(desk.give(CancelTask(2, ID)))["state"] == "cancelled"


def test_a_leased_task_is_cancelled_by_its_owner() -> None:
    hall, desk = hall_of()
    submit(desk)
    runner = Runner(hall)
    runner.claim()
    assert desk.give(CancelTask(1, ID)) is None
    assert desk.sent == [(BERT.node_id, CancelRun(ID, 1))]
    runner.mark()
    desk.hear(BERT.node_id, CancelAnswer(ID, 1, CancelVerdict.STOPPING))
    found = result(desk.answers[1])
    assert (found["state"], found["cancel_requested"]) == ("leased", True)


def test_answers_of_others_and_of_other_attempts_are_not_taken() -> None:
    hall, desk = hall_of()
    submit(desk)
    runner = Runner(hall)
    runner.claim()
    desk.give(CancelTask(1, ID))
    runner.mark()
    desk.hear(ANNA.node_id, CancelAnswer(ID, 1, CancelVerdict.STOPPING))
    desk.hear(BERT.node_id, CancelAnswer(ID, 2, CancelVerdict.STOPPING))
    desk.hear(BERT.node_id, CancelAnswer("other", 1, CancelVerdict.STOPPING))
    assert not desk.answers
    desk.hear(BERT.node_id, CancelAnswer(ID, 1, CancelVerdict.STOPPING))
    assert desk.answers


def test_an_owner_whose_verdict_is_on_its_way_is_not_asked_again() -> None:
    hall, desk = hall_of()
    submit(desk)
    runner = Runner(hall)
    runner.claim()
    desk.give(CancelTask(1, ID))
    desk.hear(BERT.node_id, CancelAnswer(ID, 1, CancelVerdict.OVER))
    assert len(desk.sent) == 1
    runner.finish(DONE)
    desk.wait(1.0)
    assert len(desk.sent) == 1
    assert result(desk.answers[1])["state"] == "done"


def test_a_silent_owners_task_is_cancelled_when_its_lease_has_lapsed() -> None:
    hall, desk = hall_of()
    submit(desk)
    runner = Runner(hall)
    runner.claim()
    desk.give(CancelTask(1, ID))
    desk.wait(3.0)
    assert not desk.answers
    assert len(desk.sent) >= 3
    desk.wait(3.0)  # the voters wait for 3.5 s
    found = result(desk.answers[1])
    assert found["state"] == "cancelled"
    assert "not heard of" in found["attempts"][0]["error"]


def test_a_living_lease_whose_owner_is_silent_to_us_ends_in_words() -> None:
    hall, desk = hall_of()
    submit(desk)
    runner = Runner(hall)
    runner.claim()
    desk.give(CancelTask(1, ID, timeout_s=2.5))
    desk.wait(2.5)
    text = error(desk.answers[1])
    assert "was not cancelled within 2.5 s" in text
    assert re.search(r"its lease may live for \d\.\d s more", text)
    body = hall.held(ID)
    assert body is not None
    assert body.running is not None


def test_an_owner_that_knows_nothing_of_it_is_asked_again_while_its_lease_lives() -> None:
    hall, desk = hall_of()
    submit(desk)
    Runner(hall).claim()
    desk.give(CancelTask(1, ID))
    for asked in range(1, 6):
        assert desk.sent == [(BERT.node_id, CancelRun(ID, 1))] * asked
        desk.hear(BERT.node_id, CancelAnswer(ID, 1, CancelVerdict.UNKNOWN))
        desk.wait(0.6)
    desk.wait(3.0)  # the voters wait for 3.5 s
    assert result(desk.answers[1])["state"] == "cancelled"


def test_an_owner_that_had_not_heard_of_its_grant_cancels_when_it_has() -> None:
    hall, desk = hall_of()
    submit(desk)
    runner = Runner(hall)
    runner.claim()
    desk.give(CancelTask(1, ID))
    desk.hear(BERT.node_id, CancelAnswer(ID, 1, CancelVerdict.UNKNOWN))
    desk.wait(0.6)
    runner.mark()
    desk.hear(BERT.node_id, CancelAnswer(ID, 1, CancelVerdict.STOPPING))
    assert result(desk.answers[1])["cancel_requested"]


def test_a_node_never_asks_for_a_ballot_where_it_holds_the_lease_itself() -> None:
    hall, desk = hall_of(BERT)
    submit(desk)
    runner = Runner(hall)
    runner.claim()
    promised = {voter: hall.voters[voter].record(runner.key).promised for voter in VOTERS}
    desk.clerk.holds[runner.key] = Hold.SURE
    desk.give(CancelTask(1, ID, timeout_s=3.0))
    desk.wait(2.9)
    assert {to for to, _ in desk.sent} == {BERT.node_id}
    assert promised == {voter: hall.voters[voter].record(runner.key).promised for voter in VOTERS}
    runner.mark()
    desk.hear(BERT.node_id, CancelAnswer(ID, 1, CancelVerdict.STOPPING))
    assert result(desk.answers[1])["cancel_requested"]


def test_a_lease_of_this_node_that_nothing_runs_under_is_waited_for() -> None:
    hall, desk = hall_of(BERT)
    submit(desk)
    runner = Runner(hall)
    runner.claim()
    desk.clerk.holds[runner.key] = Hold.DOUBT
    desk.give(CancelTask(1, ID, timeout_s=20.0))
    desk.hear(BERT.node_id, CancelAnswer(ID, 1, CancelVerdict.UNKNOWN))
    desk.wait(5.0)
    assert len(desk.sent) == 1
    assert not desk.answers
    assert hall.voters[VOTERS[0]].record(runner.key).promised == runner.token
    del desk.clerk.holds[runner.key]
    desk.wait(5.0)
    assert result(desk.answers[1])["state"] == "cancelled"


def test_what_this_node_says_of_one_attempt_is_not_taken_for_its_next_one() -> None:
    hall, desk = hall_of(BERT)
    submit(desk)
    runner = Runner(hall)
    runner.claim()
    desk.give(CancelTask(1, ID))
    runner.release()
    hall.now += 1.0
    runner.claim()
    desk.clerk.holds[runner.key] = Hold.SURE
    desk.hear(BERT.node_id, CancelAnswer(ID, 1, CancelVerdict.UNKNOWN))
    desk.wait(1.0)
    assert desk.sent[-1] == (BERT.node_id, CancelRun(ID, 2))
    runner.mark()
    desk.hear(BERT.node_id, CancelAnswer(ID, 2, CancelVerdict.STOPPING))
    assert result(desk.answers[1])["cancel_requested"]


def test_a_lease_that_this_node_got_while_it_read_is_asked_about_as_soon_as_it_is_seen() -> None:
    hall, desk = hall_of(BERT)
    submit(desk)
    runner = Runner(hall)
    desk.clerk.holds[runner.key] = Hold.SURE
    desk.give(CancelTask(1, ID))
    runner.claim()
    for to, asked in list(desk.sent):
        assert isinstance(asked, CancelRun)
        desk.hear(to, CancelAnswer(ID, asked.attempt, CancelVerdict.UNKNOWN))
    desk.wait(1.0)
    assert desk.sent[-1] == (BERT.node_id, CancelRun(ID, 1))
