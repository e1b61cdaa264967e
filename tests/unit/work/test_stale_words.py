"""Words that come twice, late or from the wrong side."""

from __future__ import annotations

from mesh.core.effects import StartProcess
from mesh.core.ids import NodeId
from mesh.core.process import ProcessExit
from mesh.core.requests import Ask
from mesh.wire.work_messages import (
    CancelRun,
    Decline,
    Offer,
    OfferAnswer,
    OutputPiece,
    Report,
    ReportAnswer,
    RunQuery,
    Verdict,
)
from tests.unit.work.hosts import job
from tests.unit.work.pump import Pump


def asks_of(outputs: list[object], kind: type) -> list[Ask]:
    return [o for o in outputs if isinstance(o, Ask) and isinstance(o.message, kind)]


def test_an_offer_that_comes_again_after_its_run_has_ended_starts_nothing() -> None:
    pump = Pump([0, 1])
    work = pump[2].work
    offer = Offer(job(1.0, task_id="t"), 1, 1)
    _, outputs = work.handle_message(0.0, NodeId(1), offer)
    assert [type(o) for o in outputs] == [StartProcess]
    outputs = work.handle_process(0.0, ProcessExit(1, 0))
    (report,) = asks_of(list(outputs), Report)
    work.handle_reply(0.0, report.tag, ReportAnswer(Verdict.TAKEN))
    reply, outputs = work.handle_message(0.0, NodeId(1), offer)
    assert reply == OfferAnswer(Decline.NONE, 1, 1)
    assert outputs == []
    reply, _ = work.handle_message(0.0, NodeId(1), RunQuery("t", 1))
    assert reply == ReportAnswer(Verdict.STALE)


def test_the_same_number_of_a_later_session_of_the_keeper_is_another_attempt() -> None:
    pump = Pump([0, 2])
    work = pump[2].work
    work.handle_message(0.0, NodeId(1), Offer(job(1.0, task_id="t"), 1, 1))
    work.handle_process(0.0, ProcessExit(1, 0))
    _, outputs = work.handle_message(0.0, NodeId(1), Offer(job(1.0, task_id="t"), 1, 2))
    assert [type(o) for o in outputs] == [StartProcess]


def test_a_higher_number_of_a_task_that_still_runs_here_stops_the_older_run_first() -> None:
    pump = Pump([0, 2])
    task_id = pump.submit(1, job(50.0))
    pump.run(0.5)
    pump.declare(pump[1], pump[2], 1, "declared dead (silent)")
    pump.meet(pump[1], pump[2])
    pump.run(5.0)
    task = pump.task(1, task_id)
    assert [a["cause"] for a in task["attempts"]] == ["first", "crash"]
    assert pump[2].stopped == [1]
    assert pump[2].running() == 1


def test_a_report_is_stale_while_the_next_attempt_is_offered_to_somebody() -> None:
    pump = Pump([0, 1, 1])
    task_id = pump.submit(1, job(3.0))
    pump.run(1.0)
    first = pump[int(pump.task(1, task_id)["owner"][1:])]
    pump.lose_request = lambda _a, _b, m: isinstance(m, Offer)
    pump.declare(pump[1], first, 1, "declared dead (silent)")
    reply, _ = pump[1].work.handle_message(pump.now, first.node_id, Report(task_id, 1, 0, "", 1))
    assert reply == ReportAnswer(Verdict.STALE)
    pump[1].work.check_invariants()


def test_only_the_node_that_was_given_an_attempt_may_speak_for_it() -> None:
    pump = Pump([0, 1, 1])
    task_id = pump.submit(1, job(3.0))
    pump.run(1.0)
    stranger = NodeId(5 - int(pump.task(1, task_id)["owner"][1:]))
    work = pump[1].work
    for message in (Report(task_id, 1, 0, "", 1), OutputPiece(task_id, 1, 0, 1, b"x")):
        assert work.handle_message(pump.now, stranger, message)[0] == ReportAnswer(Verdict.STALE)
    assert pump.task(1, task_id)["state"] == "leased"


def test_a_piece_of_output_that_comes_twice_is_held_once() -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, job(3.0))
    pump.run(0.5)
    piece = OutputPiece(task_id, 1, 0, 1, b"once")
    for _ in range(2):
        reply, _ = pump[1].work.handle_message(pump.now, NodeId(2), piece)
        assert reply == ReportAnswer(Verdict.TAKEN)
    pump.finish((1, task_id))
    assert pump.task(1, task_id)["result"]["output_bytes"] == 4


def test_the_first_word_of_an_attempt_may_overtake_the_answer_to_its_offer() -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, job(3.0))
    work = pump[1].work
    reply, _ = work.handle_message(pump.now, NodeId(2), Report(task_id, 1, 0, "", 1))
    assert reply == ReportAnswer(Verdict.TAKEN)
    assert pump.task(1, task_id)["state"] == "done"
    work.check_invariants()


def test_an_acceptance_that_nobody_waits_for_any_more_is_called_back() -> None:
    pump = Pump([0, 1, 1])
    task_id = pump.submit(1, job(3.0))
    home = pump[int(pump.task(1, task_id)["home"][1:])]
    pump.declare(pump[1], home, 1, "declared dead (silent)")
    tag = ("offer", task_id, 1, home.node_id, False)
    pump.meet(pump[1], home)
    outputs = pump[1].work.handle_reply(pump.now, tag, OfferAnswer(Decline.NONE, 1, 0))
    assert [o.message for o in asks_of(list(outputs), CancelRun)] == [CancelRun(task_id, 1)]


def test_a_suspect_owner_still_reports() -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, job(1.0, 0, "out"))
    pump.run(0.5)
    pump.suspect(pump[1], pump[2])
    pump.suspect(pump[2], pump[1])
    pump.finish((1, task_id), within_s=1.0)
    assert pump.task(1, task_id)["result"]["stdout_tail"] == "out"


def test_events_tell_a_tasks_story() -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, job(0.1, 4))
    pump.finish((1, task_id))
    story = [(e.state, e.member, e.cause, e.detail) for e in pump[1].events]
    assert story == [
        ("leased", "n2", "first", "attempt 1"),
        ("failed", "n2", "", "exit code 4 (attempt 1)"),
    ]
    assert all(e.task_id == task_id for e in pump[1].events)
