"""Why a task is where it is: its contests, told by whoever held them, at any node."""

from __future__ import annotations

from typing import Any

from mesh.core.ids import NodeId
from mesh.queues.commands import SetQueue
from mesh.queues.settings import Strategy, queue_key
from mesh.tasks.commands import GetTask, New, Submit, WhyTask
from mesh.tasks.explaining import TOLD_S
from mesh.tasks.waiting import QUEUE_S
from mesh.wire.contest_messages import AskContest, Bid
from mesh.wire.register_messages import Read
from mesh.wire.work_messages import Spec
from tests.unit.tasks.crew import VOTERS, A, B, C, Crew

P, Q, R = (NodeId(n) for n in (21, 22, 23))
OUT = NodeId(30)  # no voter, and no slots: somebody's laptop


def contested(*lost: type) -> Crew:
    """Three workers, three voters, and a task of a queue with contests that one of the workers has."""
    crew = Crew({P: 1, Q: 1, R: 1, OUT: 0})
    for own in VOTERS:
        answer = crew.give(own, lambda number: SetQueue(number, "heavy", Strategy.CONTEST))
        assert answer is not None
        assert answer.error is None
    crew.loses = lambda _to, message: type(message) in lost
    new = New(Spec(task_id="t", argv=("work",), queue="heavy"))
    crew.give(A, lambda number: Submit(number, new))
    crew.wait(1.0)
    return crew


def why(crew: Crew, own: NodeId = OUT) -> dict[str, Any]:
    crew.give(own, lambda number: WhyTask(number, "t"))
    crew.wait(TOLD_S)
    answer = crew.answer(own)
    assert answer is not None
    assert answer.error is None, answer
    found: dict[str, Any] = answer.result
    return found


def test_a_contest_is_told_at_any_node() -> None:
    crew = contested()
    for own in (OUT, A, B, C, P):
        found = why(crew, own)
        (contest,) = found["contests"]
        assert found["owner"] == contest["winner"]
        assert contest["caller"] in {"n1", "n2", "n3"}
        assert {one["member"] for one in contest["called"]} == {"n21", "n22", "n23"}
        bids = [word for word in contest["said"] if word["score"] is not None]
        assert contest["winner"] in {word["member"] for word in bids}
        assert {"free_slots", "cpu", "match"} <= set(bids[0]["parts"])
        assert contest["after_ms"] >= bids[0]["after_ms"] >= 0
        assert (contest["attempt"], contest["rounds"], contest["first_window"]) == (1, 1, True)


def test_a_bid_that_was_lost_is_missing_and_the_grant_is_told_all_the_same() -> None:
    (contest,) = why(contested(Bid))["contests"]
    assert [word for word in contest["said"] if word["score"] is not None] == []
    assert contest["winner"] in {"n21", "n22", "n23"}


def test_voters_that_do_not_tell_are_not_waited_for() -> None:
    crew = contested()
    crew.loses = lambda _to, message: isinstance(message, AskContest)
    crew.give(OUT, lambda number: WhyTask(number, "t"))
    assert crew.answer(OUT) is None
    crew.wait(TOLD_S)
    answer = crew.answer(OUT)
    assert answer is not None
    assert (answer.result["id"], answer.result["contests"]) == ("t", [])


def test_a_task_without_contests_has_none_and_an_unknown_one_is_an_error() -> None:
    crew = Crew({P: 1, OUT: 0})
    crew.submit("t")
    assert why(crew)["contests"] == []
    crew.give(OUT, lambda number: WhyTask(number, "no such"))
    crew.wait(1.0)
    answer = crew.answer(OUT)
    assert answer is not None
    assert answer.error is not None
    assert "no task no such is known" in answer.error


def test_who_only_reads_a_task_is_not_kept_waiting() -> None:
    crew = contested()
    answer = crew.give(OUT, lambda number: GetTask(number, "t"))
    assert answer is not None
    assert "contests" not in answer.result


def test_a_task_says_its_queues_strategy_once_that_is_known_and_a_home_only_where_it_has_one() -> (
    None
):
    crew = contested()
    told = why(crew, A)
    assert (told["state"], told["strategy"], told["home"]) == ("leased", "contest", None)
    told = why(crew)  # whose node hears of the queue for the first time, and asks
    assert (told["strategy"], told["home"]) == ("contest", None)
    task = crew.give(R, lambda number: GetTask(number, "t"))
    assert task is not None
    assert (task.result["strategy"], task.result["home"]) == ("contest", None)
    crew.submit("t2")
    crew.give(A, lambda number: GetTask(number, "t2"))
    crew.wait(TOLD_S)
    answer = crew.answer(A)
    assert answer is not None
    assert answer.result["strategy"] == "rendezvous"  # nothing was set: it votes on that
    assert answer.result["home"] in {"n21", "n22", "n23"}


def test_where_nobody_can_say_the_strategy_a_task_is_told_without_it_and_without_a_home() -> None:
    crew = contested()
    queue = queue_key("heavy")
    crew.loses = lambda _to, message: isinstance(message, Read) and message.key == queue
    crew.give(OUT, lambda number: GetTask(number, "t"))
    crew.wait(QUEUE_S + 1.0)
    answer = crew.answer(OUT)
    assert answer is not None
    assert answer.error is None
    assert (answer.result["strategy"], answer.result["home"]) == (None, None)
