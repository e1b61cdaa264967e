"""The owner's side: offers, claims, what runs when, and what becomes of it."""

import pytest

from mesh.core.effects import (
    Emit,
    FreezeProcess,
    GuardProcess,
    ReadOutput,
    StopProcess,
    ThawProcess,
)
from mesh.core.ids import NodeId
from mesh.core.process import ProcessExit
from mesh.registers.trust import Hold
from mesh.tasks.body import End, task_key
from mesh.tasks.changes import Claim
from mesh.tasks.effects import Send
from mesh.tasks.form import of_value
from mesh.wire.contest_messages import Call, Called
from mesh.wire.register_messages import Owner, Prepare, Promised
from mesh.wire.task_messages import (
    AttemptCause,
    CancelAnswer,
    CancelRun,
    CancelVerdict,
    Decline,
    Offer,
    OfferAnswer,
    TaskState,
)
from mesh.wire.work_messages import SlotsFree
from tests.unit.tasks.crew import CONFIG, TIMES, VOTERS, A, B, C, Crew
from tests.unit.tasks.made import NOON, claimed, new

P, Q = NodeId(8), NodeId(9)


def offer_of(crew: Crew, task_id: str, **more: object) -> Offer:
    record = crew.nodes[A].desk.voter.record(task_key(task_id))
    parts = {"ballot": record.ballot, "seq": record.seq, "attempt": 1, **more}
    return Offer(task_id=task_id, cause=AttemptCause.FIRST, **parts)  # type: ignore[arg-type]  # the test's own parts


def ask(crew: Crew, own: NodeId, offer: Offer) -> OfferAnswer:
    """Offer something to a node that is cut off, and return what it says."""
    node = crew.nodes[own]
    outputs = node.tasks.handle_message(crew.now, A, offer)
    said = [one for output in outputs if isinstance(output, Send) for one in output.messages]
    (answer,) = (one for one in said if isinstance(one, OfferAnswer))
    return answer


def running(slots: int = 1, retries: int = 0) -> tuple[Crew, int]:
    """Return a crew in which P runs task t, and the run's id."""
    crew = Crew({P: slots})
    crew.submit("t", retries=retries)
    (start,) = crew.nodes[P].starts()
    return crew, start.run_id


def test_run_is_started_with_what_its_command_needs_to_know() -> None:
    crew = Crew({P: 1})
    crew.submit("t")
    (start,) = crew.nodes[P].starts()
    record = crew.nodes[A].desk.voter.record(task_key("t"))
    assert start.argv == ("work", "t")
    assert start.env == {
        "MESH_TASK_ID": "t",
        "MESH_TOKEN": str(record.ballot.token),
        "MESH_ATTEMPT": "1",
        "MESH_IDEMPOTENCY_KEY": "t",
    }
    assert crew.body("t").state is TaskState.LEASED


def test_guardian_knows_the_deadlines_before_the_run_starts_and_after_each_renewal() -> None:
    crew, run_id = running()
    node = crew.nodes[P]
    (guard,) = node.said(GuardProcess)
    assert guard == GuardProcess(
        run_id, crew.now + TIMES.owner_s, crew.now + TIMES.owner_s + TIMES.doubt_s
    )
    crew.wait(3 * TIMES.renew_s)
    moved = node.said(GuardProcess)
    assert len(moved) >= 2
    assert moved[-1].freeze_at == node.desk.trusted_until(task_key("t"))  # type: ignore[attr-defined]  # all are of one kind


def test_success_is_written_and_frees_the_slot() -> None:
    crew, run_id = running()
    crew.wait(1.0)
    crew.exit(P, run_id, 0, b"well done\n")
    body = crew.body("t")
    assert body.state is TaskState.DONE
    assert body.result is not None
    assert body.result.stdout_tail == b"well done\n"
    assert crew.nodes[P].said(ReadOutput) == [ReadOutput(run_id, 1)]
    (attempt,) = body.attempts
    assert (attempt.node_id, attempt.end, attempt.exit_code) == (P, End.VERDICT, 0)
    assert attempt.ended == pytest.approx(NOON + 1.0)
    assert crew.nodes[P].tasks.used == 0


def test_failure_is_tried_again_under_a_higher_token_while_retries_are_left() -> None:
    crew, run_id = running(retries=1)
    first = crew.nodes[A].desk.voter.record(task_key("t")).ballot
    crew.exit(P, run_id, 3)
    assert crew.body("t").state is TaskState.SCHEDULED
    crew.wait(2)
    (start,) = crew.nodes[P].starts()
    assert int(start.env["MESH_TOKEN"]) > first.token
    crew.exit(P, start.run_id, 3)
    body = crew.body("t")
    assert body.state is TaskState.FAILED
    assert [one.cause for one in body.attempts] == [AttemptCause.FIRST, AttemptCause.RETRY]


def test_doubt_freezes_the_work_and_a_revival_thaws_it() -> None:
    crew, run_id = running()
    node = crew.nodes[P]
    crew.away = {P}
    crew.wait(TIMES.owner_s + 0.1)
    assert node.said(FreezeProcess) == [FreezeProcess(run_id)]
    crew.away = set()
    crew.wait(1)
    assert node.said(ThawProcess) == [ThawProcess(run_id)]
    assert not node.said(StopProcess)
    crew.exit(P, run_id)
    assert crew.body("t").state is TaskState.DONE
    assert len(crew.body("t").attempts) == 1


def test_lost_work_is_killed_and_its_end_is_no_verdict() -> None:
    crew, run_id = running(retries=1)
    crew.away = {P}
    crew.wait(TIMES.owner_s + TIMES.doubt_s + 0.5)
    node = crew.nodes[P]
    assert node.said(StopProcess) == [StopProcess(run_id, 0.0)]
    crew.exit(P, run_id, 137)
    assert node.tasks.used == 0
    crew.away = set()
    crew.wait(5)
    (start,) = node.starts()
    crew.exit(P, start.run_id)
    body = crew.body("t")
    assert [one.cause for one in body.attempts] == [AttemptCause.FIRST, AttemptCause.LAPSE]
    assert body.retries_left == 1


def test_work_that_was_lost_runs_elsewhere_before_its_owner_is_back() -> None:
    crew = Crew({P: 1, Q: 1})
    crew.submit("t")
    first, second = (P, Q) if crew.nodes[P].tasks.used else (Q, P)
    (run,) = crew.nodes[first].starts()
    crew.away = {first}
    crew.wait(TIMES.owner_s)
    assert crew.nodes[first].said(FreezeProcess)
    crew.wait(TIMES.voter_s + TIMES.grace_s + 2 * CONFIG.offer_timeout_s)
    (start,) = crew.nodes[second].starts()
    crew.away = set()
    crew.wait(1)
    crew.exit(first, run.run_id, 137)
    crew.exit(second, start.run_id)
    body = crew.body("t")
    assert [one.node_id for one in body.attempts] == [first, second]
    assert body.state is TaskState.DONE


def test_verdict_counts_though_the_lease_has_lapsed_if_nobody_was_promised_since() -> None:
    crew, run_id = running()
    crew.away = {P}
    crew.wait(TIMES.owner_s + 0.1)
    crew.exit(P, run_id)  # it had ended before it could be frozen
    crew.wait(TIMES.owner_s + TIMES.doubt_s + 1)
    assert crew.nodes[P].tasks.used == 0
    crew.away = set()
    crew.wait(CONFIG.offer_timeout_s + 5)
    assert crew.body("t").state is TaskState.DONE
    assert len(crew.body("t").attempts) == 1


def test_run_that_the_host_was_too_short_to_start_is_released_and_the_host_rests() -> None:
    crew, run_id = running()
    crew.end(ProcessExit(run_id, 126, "no process could be had", is_host_fault=True), P)
    (attempt,) = crew.body("t").attempts
    assert attempt.end is End.RELEASED
    assert len(crew.nodes[P].said(Emit)) == 1
    assert crew.nodes[P].tasks.free_slots == 0
    crew.wait(5)
    (start,) = crew.nodes[P].starts()
    assert start.env["MESH_ATTEMPT"] == "2"
    assert crew.body("t").cause is AttemptCause.RELEASED


def test_draining_node_lets_its_work_end_and_then_lets_it_go() -> None:
    crew = Crew({P: 2})
    crew.submit("a")
    crew.submit("b")
    one, two = crew.nodes[P].starts()
    crew.do(crew.nodes[P], lambda tasks, now: tasks.drain(now, now + 5))
    assert crew.nodes[P].tasks.free_slots == 0
    crew.exit(P, one.run_id)
    crew.wait(5.1)
    assert crew.nodes[P].said(StopProcess) == [StopProcess(two.run_id, CONFIG.stop_grace_s)]
    crew.exit(P, two.run_id, 143)
    assert crew.body("a").state is TaskState.DONE
    assert crew.body("b").state is TaskState.READY
    assert crew.body("b").attempts[0].end is End.RELEASED
    assert crew.nodes[P].tasks.used == 0
    assert ask(crew, P, offer_of(crew, "b", attempt=2)).decline is Decline.DRAINING


def test_offer_is_declined_by_who_is_busy_or_can_never_run_it() -> None:
    crew, _ = running()
    crew.submit("u")
    assert ask(crew, P, offer_of(crew, "u")).decline is Decline.BUSY
    assert ask(crew, P, offer_of(crew, "u", pool="image")).decline is Decline.UNSUITED
    assert ask(crew, P, offer_of(crew, "u", needs=(("gpu", 1),))).decline is Decline.UNSUITED


def test_offer_of_what_runs_here_is_declined_as_taken_and_as_unsure_in_doubt() -> None:
    crew, _ = running(slots=2)
    assert ask(crew, P, offer_of(crew, "t")).decline is Decline.TAKEN
    crew.away = {P}
    crew.wait(TIMES.owner_s + 0.1)
    assert ask(crew, P, offer_of(crew, "t")).decline is Decline.UNSURE
    assert crew.nodes[P].desk.standing(crew.now, task_key("t")) is Hold.DOUBT
    # A lease of just these voters is in doubt, and another would be too.
    assert ask(crew, P, offer_of(crew, "other")).decline is Decline.UNSURE


def test_who_was_declined_for_want_of_a_slot_is_told_of_the_next() -> None:
    crew, run_id = running()
    crew.away = {P}
    node = crew.nodes[P]
    assert ask(crew, P, offer_of(crew, "other")).decline is Decline.BUSY
    crew.away = set()
    crew.heard.clear()
    crew.do(node, lambda tasks, now: tasks.handle_process(now, ProcessExit(run_id, 0)))
    assert (A, SlotsFree(1)) in crew.heard


@pytest.mark.parametrize("has_more", [False, True])
def test_who_called_several_waits_for_a_slot_here_only_if_more_tasks_wait_there(
    has_more: bool,
) -> None:
    crew, run_id = running()
    crew.away = {P}
    node = crew.nodes[P]
    call = Call(
        offer=offer_of(crew, "other", has_more=has_more),
        round=0,
        window_us=2_000,
        patience_us=50_000,
        called=(Called(P, 1, 10, 0), Called(Q, 1, 10, 0)),
    )
    outputs = node.tasks.handle_message(crew.now, A, call)
    (sent,) = (one for one in outputs if isinstance(one, Send))
    (answer,) = sent.messages
    assert isinstance(answer, OfferAnswer)
    assert answer.decline is Decline.BUSY
    crew.away = set()
    crew.heard.clear()
    crew.do(node, lambda tasks, now: tasks.handle_process(now, ProcessExit(run_id, 0)))
    assert ((A, SlotsFree(1)) in crew.heard) is has_more


def test_claim_that_another_won_frees_the_slot() -> None:
    crew = Crew({P: 1, Q: 1})
    crew.submit("t")
    loser = Q if crew.nodes[P].tasks.used else P
    node = crew.nodes[loser]
    crew.do(node, lambda tasks, now: tasks.handle_message(now, A, offer_of(crew, "t")))
    crew.wait(1)
    assert node.tasks.used == 0
    assert not node.starts()
    assert len(crew.body("t").attempts) == 1


def test_claim_whose_answers_were_lost_takes_up_its_own_grant() -> None:
    crew = Crew({P: 1})
    crew.away = {P}
    crew.submit("t")
    node = crew.nodes[P]
    # Its accepts arrive, and the answers do not.
    crew.away = set()
    crew.loses = lambda to, message: to == P and not isinstance(message, Promised | Offer)
    crew.wait(CONFIG.offer_timeout_s + CONFIG.offer_retry_s * 2 + 0.5)
    assert crew.body("t").state is TaskState.LEASED
    assert not node.starts()
    crew.loses = lambda _to, _message: False
    crew.wait(CONFIG.claim_timeout_s + 1)
    (start,) = node.starts()
    assert start.env["MESH_ATTEMPT"] == "1"
    assert len(crew.body("t").attempts) == 1


def test_cancelled_run_is_marked_first_then_stopped_then_written() -> None:
    crew, run_id = running(retries=3)
    node = crew.nodes[P]
    crew.away = {A, B, C}
    crew.do(node, lambda tasks, now: tasks.handle_message(now, B, CancelRun("t", 1)))
    crew.wait(0.5)
    assert not node.said(StopProcess)  # before it is written down
    crew.away = set()
    crew.wait(1)
    assert (B, CancelAnswer("t", 1, CancelVerdict.STOPPING)) in crew.heard
    assert crew.body("t").is_cancel_requested
    assert node.said(StopProcess) == [StopProcess(run_id, CONFIG.stop_grace_s)]
    crew.exit(P, run_id, 143)
    assert crew.body("t").state is TaskState.CANCELLED


def test_cancellation_of_an_attempt_that_does_not_run_here_is_not_known() -> None:
    crew, _ = running()
    for message in (CancelRun("t", 2), CancelRun("other", 1)):
        outputs = crew.nodes[P].tasks.handle_message(crew.now, B, message)
        answers = [one for output in outputs for one in getattr(output, "messages", ())]
        assert answers == [CancelAnswer(message.task_id, message.attempt, CancelVerdict.UNKNOWN)]


def test_nothing_is_started_before_a_majority_has_granted_it() -> None:
    crew = Crew({P: 1})
    crew.away = {P}
    crew.submit("t")
    crew.away = {B, C}
    node = crew.nodes[P]
    crew.do(node, lambda tasks, now: tasks.handle_message(now, A, offer_of(crew, "t")))
    assert node.tasks.used == 1
    crew.wait(1)
    assert not node.starts()
    assert crew.body("t").state is TaskState.READY


def test_refused_claimant_leaves_no_trace_where_the_lease_lives() -> None:
    crew, _ = running()
    before = crew.nodes[A].desk.voter.record(task_key("t"))
    ballot = before.ballot._replace(n=before.ballot.n + 7, node_id=Q)
    for voter in VOTERS:
        prepare = Prepare(task_key("t"), ballot, 1)
        crew.nodes[voter].tasks.handle_message(crew.now, Q, prepare)
    assert crew.nodes[A].desk.voter.record(task_key("t")) == before


def test_claim_takes_its_offers_cause_for_the_attempt_that_this_was_about_alone() -> None:
    once = claimed(new(), Owner(P, 1))
    for lost_attempt, cause in ((1, AttemptCause.CRASH), (2, AttemptCause.LAPSE)):
        claim = Claim(NOON + 9, Owner(Q, 1), "q", AttemptCause.CRASH, lost_attempt=lost_attempt)
        value = claim(once)
        assert value is not None
        assert of_value(value).cause is cause


def test_node_with_more_slots_than_leases_fit_into_a_renewal_declines_what_is_beyond(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mesh.registers.leaseholder.LEASES_MAX", 2)
    monkeypatch.setattr("mesh.tasks.intake.LEASES_MAX", 2, raising=False)
    crew = Crew({A: 3})
    for task_id in ("t1", "t2", "t3"):
        crew.submit(task_id)
    crew.wait(5)
    first, second = crew.nodes[A].starts()
    assert crew.nodes[A].tasks.free_slots == 0
    answers = [one for _, one in crew.heard if isinstance(one, OfferAnswer)]
    assert {one.decline for one in answers if one.task_id == "t3"} <= {Decline.BUSY}
    crew.exit(A, first.run_id)
    crew.wait(5)
    assert [one.argv[1] for one in crew.nodes[A].starts()] == ["t3"]
    assert second.argv[1] == "t2"
