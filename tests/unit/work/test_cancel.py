"""Cancelling: what is ready at once, what runs once its node has stopped it."""

from __future__ import annotations

from mesh.wire.work_messages import CancelRun, OfferAnswer
from mesh.work.commands import Cancel, GetTask
from tests.unit.work.hosts import job
from tests.unit.work.pump import Pump


def test_a_ready_task_is_cancelled_at_once() -> None:
    pump = Pump([1, 1])
    pump.submit(1, job(50.0))
    pump.submit(1, job(50.0))
    waiting = pump.submit(1, job(1.0))
    pump.run(0.5)
    answer = pump.cancel(1, waiting)
    assert answer.result["state"] == "cancelled"
    assert answer.result["attempts"] == []
    assert answer.result["result"] is None


def test_a_leased_task_is_cancelled_when_its_owner_has_stopped_it() -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, job(50.0))
    pump.run(0.5)
    answer = pump.cancel(1, task_id)
    assert (answer.result["state"], answer.result["cancel_requested"]) == ("leased", True)
    pump.finish((1, task_id), within_s=1.0)
    task = pump.task(1, task_id)
    assert (task["state"], task["result"]["exit_code"]) == ("cancelled", 143)
    assert pump[2].work.used == 0


def test_a_task_that_runs_at_its_keeper_is_cancelled_too() -> None:
    pump = Pump([1])
    task_id = pump.submit(1, job(50.0))
    pump.run(0.5)
    pump.cancel(1, task_id)
    pump.finish((1, task_id), within_s=1.0)
    assert pump.task(1, task_id)["state"] == "cancelled"


def test_a_finished_task_stays_as_it_is() -> None:
    pump = Pump([1])
    task_id = pump.submit(1, job(0.1))
    pump.finish((1, task_id))
    before = pump.task(1, task_id)
    assert pump.cancel(1, task_id).result == before


def test_a_task_whose_offer_is_open_is_cancelled_when_it_is_accepted() -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, job(50.0))
    answer = pump.cancel(1, task_id)
    assert (answer.result["state"], answer.result["cancel_requested"]) == ("ready", True)
    pump.finish((1, task_id), within_s=1.0)
    assert pump.task(1, task_id)["result"]["exit_code"] == 143


def test_a_task_whose_offer_is_open_is_cancelled_when_it_is_declined() -> None:
    pump = Pump([0, 1])
    pump.submit(2, job(50.0))
    task_id = pump.submit(1, job(50.0))
    pump.cancel(1, task_id)
    pump.finish((1, task_id), within_s=1.0)
    assert pump.task(1, task_id)["attempts"] == []


def test_a_task_whose_offer_is_never_answered_is_cancelled_in_the_end() -> None:
    pump = Pump([0, 1])
    pump.lose_reply = lambda _a, _b, m: isinstance(m, OfferAnswer)
    task_id = pump.submit(1, job(50.0))
    pump.cancel(1, task_id)
    pump.finish((1, task_id))
    assert pump.task(1, task_id)["state"] == "cancelled"


def test_a_cancelled_task_whose_owner_dies_is_cancelled_and_not_started_again() -> None:
    pump = Pump([0, 1, 1])
    task_id = pump.submit(1, job(50.0))
    pump.run(0.5)
    owner = int(pump.task(1, task_id)["owner"][1:])
    pump.kill(owner)
    pump.cancel(1, task_id)
    pump.finish((1, task_id))
    task = pump.task(1, task_id)
    assert task["state"] == "cancelled"
    assert len(task["attempts"]) == 1


def test_a_request_to_stop_is_repeated_until_it_is_answered() -> None:
    pump = Pump([0, 1])
    pump.lose_request = lambda _a, _b, m: isinstance(m, CancelRun) and pump.now < 106
    task_id = pump.submit(1, job(50.0))
    pump.run(0.5)
    pump.cancel(1, task_id)
    pump.finish((1, task_id), within_s=15.0)


def test_an_owner_that_knows_nothing_of_the_attempt_ends_it() -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, job(50.0))
    pump.run(0.5)
    pump.kill(2, noticed_after_s=None)
    pump.restart(2, told=False)
    pump.cancel(1, task_id)
    pump.finish((1, task_id), within_s=3.0)
    assert pump.task(1, task_id)["state"] == "cancelled"
    assert len(pump[2].started) == 1


def test_a_task_is_cancelled_from_anywhere() -> None:
    pump = Pump([1, 0, 0])
    task_id = pump.submit(1, job(50.0))
    pump.run(0.5)
    answer = pump.cancel(3, task_id)
    assert answer.result["id"] == task_id
    assert answer.result["cancel_requested"]
    pump.finish((1, task_id), within_s=1.0)


def test_an_id_that_nobody_keeps_is_an_error_that_says_so() -> None:
    pump = Pump([1, 1])
    for make in (lambda c: Cancel(c, "nope"), lambda c: GetTask(c, "nope")):
        answer = pump.ask(1, make)
        assert answer.result is None
        assert (answer.error or "").startswith("no task nope is kept by any living member")
    alone = Pump([1])
    assert "no task nope" in (alone.ask(1, lambda c: GetTask(c, "nope")).error or "")


def test_an_id_that_cannot_be_one_is_an_error() -> None:
    pump = Pump([1, 1])
    for task_id in ("", "x" * 200):
        answer = pump.ask(1, lambda c, task_id=task_id: GetTask(c, task_id))  # type: ignore[misc]  # binds the loop's value
        assert "1 to 128 characters" in (answer.error or "")
