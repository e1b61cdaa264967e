"""Tasks whose creation names their first owner: it begins when a majority renewed that, and not before; else others do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mesh.core.ballot import Ballot
from mesh.core.effects import Emit, StopProcess
from mesh.core.ids import NodeId
from mesh.registers import leaseholder
from mesh.registers.upkeep import MESSAGE_LIFE_S
from mesh.tasks import naming
from mesh.tasks.body import End, task_key
from mesh.tasks.commands import CancelTask, New, Submit, SubmitMany
from mesh.tasks.naming import Namings
from mesh.tasks.run import KILLED
from mesh.wire.records import Card
from mesh.wire.register_messages import Accept, Owner, Prepare, Renew, Value
from mesh.wire.roster_messages import Roster
from mesh.wire.task_messages import AttemptCause, Named, Offer, TaskState
from mesh.wire.work_messages import Spec
from tests.unit.tasks.crew import CONFIG, TIMES, VOTERS, A, B, C, Crew
from tests.unit.tasks.made import claimed, new

P, Q = NodeId(8), NodeId(9)
NEW = New(Spec(task_id="", argv=("work",)))


def submit(crew: Crew, own: NodeId = A, what: New = NEW) -> str:
    """Submit a task whose id is drawn, see it acknowledged, and return its id."""
    answer = crew.give(own, lambda number: Submit(number, what))
    assert answer is not None
    assert answer.error is None, answer
    task_id: str = answer.result["id"]
    return task_id


def heard(crew: Crew, *kinds: type) -> list[tuple[NodeId, Any]]:
    return [(to, message) for to, message in crew.heard if isinstance(message, kinds)]


# The way it goes.


def test_whoever_is_named_begins_without_an_offer_or_a_claim() -> None:
    crew = Crew({P: 1})
    task_id = submit(crew)
    (start,) = crew.nodes[P].starts()
    assert start.env["MESH_TASK_ID"] == task_id
    assert start.env["MESH_ATTEMPT"] == "1"
    assert not heard(crew, Offer, Prepare)
    record = crew.nodes[A].desk.voter.record(task_key(task_id))
    assert record.is_named
    assert int(start.env["MESH_TOKEN"]) == record.ballot.token
    crew.exit(P, start.run_id)
    (attempt,) = crew.body(task_id).attempts
    assert (attempt.number, attempt.cause, attempt.end) == (1, AttemptCause.FIRST, End.VERDICT)
    assert crew.body(task_id).state is TaskState.DONE


def test_a_first_voter_may_name_itself() -> None:
    crew = Crew({A: 1})
    submit(crew)
    assert len(crew.nodes[A].starts()) == 1
    assert not heard(crew, Offer, Prepare)


def test_every_voter_draws_ids_of_its_own_and_creates_in_one_round() -> None:
    crew = Crew()
    for own in VOTERS:
        task_id = submit(crew, own)
        assert crew.nodes[own].desk.place(task_key(task_id)) == 0
    assert not heard(crew, Prepare)


def test_one_slot_is_named_once_and_the_next_task_waits_for_it() -> None:
    crew = Crew({P: 1})
    first, second = submit(crew), submit(crew)
    (start,) = crew.nodes[P].starts()
    assert start.env["MESH_TASK_ID"] == first
    assert crew.body(second).state is TaskState.READY
    crew.exit(P, start.run_id)
    (start,) = crew.nodes[P].starts()
    assert start.env["MESH_TASK_ID"] == second


def test_of_a_batch_as_many_are_named_as_there_are_slots() -> None:
    crew = Crew({P: 2, Q: 1})
    answer = crew.give(A, lambda number: SubmitMany(number, (NEW,) * 10))
    assert answer is not None
    ids = [one["id"] for one in answer.result["tasks"]]
    states = [crew.body(task_id).state for task_id in ids]
    assert states.count(TaskState.LEASED) == 3
    assert len(heard(crew, Named)) == 3
    ran: list[str] = []
    for _ in range(10):
        for own in (P, Q):
            for start in crew.nodes[own].starts():
                ran.append(start.env["MESH_TASK_ID"])
                crew.exit(own, start.run_id)
        crew.wait(0.5)
    assert sorted(ran) == sorted(ids)


def test_nobody_is_named_before_a_task_that_waits() -> None:
    crew = Crew({P: 1})
    submit(crew)
    waits = submit(crew)
    crew.nodes[A].view.put(replace(crew.nodes[P].member(), free_slots=5))
    crew.meet(
        crew.nodes[A], P
    )  # it says so, but has not: what waits is offered, declined, and waits on
    third = submit(crew)
    assert crew.body(waits).state is crew.body(third).state is TaskState.READY


# Who names nobody.


def test_of_a_task_with_an_id_of_its_own_nobody_is_named() -> None:
    crew = Crew({P: 1})
    crew.submit("t")
    assert not heard(crew, Named)
    assert len(crew.nodes[P].starts()) == 1


def test_a_member_that_does_not_vote_names_nobody() -> None:
    crew = Crew({P: 1})
    submit(crew, P)
    assert not heard(crew, Named)
    assert len(crew.nodes[P].starts()) == 1


def test_nobody_is_named_for_a_time_to_come() -> None:
    crew = Crew({P: 1})
    at = crew.nodes[A].tasks._steward._unix_offset_s + crew.now + 10
    task_id = submit(crew, A, replace(NEW, not_before=at))
    assert crew.body(task_id).state is TaskState.SCHEDULED
    assert not heard(crew, Named)


# Where it goes wrong.


def test_it_does_not_begin_before_a_majority_holds_the_creation() -> None:
    crew = Crew({P: 1})
    crew.loses = lambda to, message: isinstance(message, Accept) and to in {B, C}
    assert crew.give(A, lambda number: Submit(number, NEW)) is None
    assert heard(crew, Named)
    crew.wait(1.0)
    assert not crew.nodes[P].starts()
    crew.loses = lambda _to, _message: False
    crew.wait(1.0)  # the creation is sent again, and so are renewals
    assert len(crew.nodes[P].starts()) == 1
    assert not heard(crew, Offer)


def test_it_does_not_begin_before_its_own_renewal_is_answered() -> None:
    crew = Crew({P: 1})
    crew.loses = lambda _to, message: isinstance(message, Renew)
    submit(crew)
    assert not crew.nodes[P].starts()
    crew.loses = lambda _to, _message: False
    crew.wait(0.1)
    assert len(crew.nodes[P].starts()) == 1


def test_a_home_that_hears_nothing_is_passed_over_after_as_long_as_an_offer() -> None:
    crew = Crew({P: 1, Q: 1})
    crew.away = {P, Q}
    task_id = submit(crew)
    named = {attempt.node_id for attempt in crew.body(task_id).attempts}
    (other,) = {P, Q} - named
    crew.away = named
    crew.wait(CONFIG.offer_timeout_s + 0.5)
    (start,) = crew.nodes[other].starts()
    crew.exit(other, start.run_id)
    first, second = crew.body(task_id).attempts
    assert (first.end, second.cause) == (End.LOST, AttemptCause.LAPSE)
    assert second.token is not None
    assert second.token.n > 0


def test_a_home_that_is_proved_over_is_passed_over_at_once() -> None:
    crew = Crew({P: 1, Q: 1})
    crew.away = {P, Q}
    task_id = submit(crew)
    (home,) = {attempt.node_id for attempt in crew.body(task_id).attempts}
    crew.away = {home}
    for node in crew.nodes.values():
        node.view.drop(home)
    crew.prove(home)
    (start,) = crew.nodes[P if home == Q else Q].starts()
    assert start.env["MESH_ATTEMPT"] == "2"
    assert crew.body(task_id).cause is AttemptCause.CRASH


@pytest.mark.parametrize("is_draining", [True, False], ids=["draining", "full"])
def test_a_home_that_cannot_lets_it_go_and_another_runs_it_at_no_retrys_cost(
    is_draining: bool,
) -> None:
    crew = Crew({P: 1})
    if is_draining:
        home = crew.nodes[P]
        crew.do(home, lambda tasks, now: tasks.drain(now, now + 60))
    else:
        crew.submit("t")  # B, whose view is older, does not know of it
    task_id = submit(crew, B, replace(NEW, terms=replace(NEW.terms, retries=1)))
    body = crew.body(task_id)
    (attempt,) = body.attempts
    assert (body.state, body.cause) == (TaskState.READY, AttemptCause.RELEASED)
    assert (attempt.end, body.retries_left) == (End.RELEASED, 1)
    assert "it was released: " in attempt.error
    if not is_draining:
        (start,) = crew.nodes[P].starts()
        crew.exit(P, start.run_id)
        (start,) = crew.nodes[P].starts()
        assert start.env["MESH_ATTEMPT"] == "2"


def test_a_home_that_holds_as_many_leases_as_it_may_lets_go_what_it_is_named_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leaseholder, "LEASES_MAX", 1)
    crew = Crew({P: 1})
    crew.submit("t")  # B, whose view is older, does not know of it
    (start,) = crew.nodes[P].starts()
    task_id = submit(crew, B)
    assert crew.body(task_id).cause is AttemptCause.RELEASED
    crew.exit(P, start.run_id)
    assert len(crew.nodes[P].starts()) == 1


def test_a_home_that_drains_before_its_renewal_is_answered_begins_nothing() -> None:
    crew = Crew({P: 1})
    crew.loses = lambda _to, message: isinstance(message, Renew)
    task_id = submit(crew)
    home = crew.nodes[P]
    crew.do(home, lambda tasks, now: tasks.drain(now, now + 60))
    crew.loses = lambda _to, _message: False
    crew.wait(1.0)
    assert not home.starts()
    assert crew.body(task_id).cause is AttemptCause.RELEASED


def test_a_claim_of_what_nobody_renewed_is_granted_and_who_was_named_never_begins() -> None:
    crew = Crew({P: 1, Q: 1})
    crew.loses = lambda _to, message: isinstance(message, Named)
    task_id = submit(crew)
    named = crew.nodes[A].desk.voter.record(task_key(task_id))
    assert named.value is not None
    assert named.value.owner is not None
    home = named.value.owner.node_id
    crew.away = {home}
    crew.wait(CONFIG.offer_timeout_s + 0.5)
    assert len(crew.nodes[P if home == Q else Q].starts()) == 1
    crew.away = set()
    word = Named(named.ballot, named.value)
    crew.do(crew.nodes[home], lambda tasks, now: tasks.handle_message(now, A, word))
    crew.wait(TIMES.doubt_s + 1)
    assert not crew.nodes[home].starts()
    assert crew.nodes[home].tasks.used == 0


def test_a_copy_of_the_word_is_not_taken_up_again() -> None:
    crew = Crew({P: 1})
    task_id = submit(crew)
    ((_, word),) = heard(crew, Named)
    home = crew.nodes[P]
    (start,) = home.starts()
    crew.do(home, lambda tasks, now: tasks.handle_message(now, A, word))
    crew.exit(P, start.run_id)
    crew.do(home, lambda tasks, now: tasks.handle_message(now, A, word))
    assert not home.starts()
    assert home.tasks.used == 0
    assert home.desk.given_up_at(task_key(task_id)) is None


def test_whoever_submits_again_under_the_id_that_was_drawn_finds_the_task() -> None:
    crew = Crew({P: 1})
    task_id = submit(crew)
    again = replace(NEW, spec=replace(NEW.spec, task_id=task_id))
    for own in (A, B, P):
        answer = crew.give(own, lambda number: Submit(number, again))
        if answer is None:
            crew.wait(2.0)  # what is leased is read again, a few times
            answer = crew.answer(own)
        assert answer is not None
        assert answer.result["id"] == task_id
    assert len(crew.nodes[P].starts()) == 1


def test_a_task_that_nobody_renewed_can_be_cancelled() -> None:
    crew = Crew({P: 1})
    crew.away = {P}
    task_id = submit(crew)
    crew.give(B, lambda number: CancelTask(number, task_id))
    crew.wait(5.0)  # so long its owner is asked first
    assert crew.body(task_id).state is TaskState.CANCELLED
    crew.away = set()
    crew.wait(5.0)
    assert not crew.nodes[P].starts()


def test_a_first_voter_that_starts_again_waits_for_what_it_named() -> None:
    crew = Crew({P: 1})
    crew.away = {P}
    task_id = submit(crew)
    steward = crew.nodes[A].tasks._steward
    steward.adopt(crew.now)
    steward.check_invariants()
    assert steward.waits_for(task_key(task_id)) == "its run to end, or its lease"


def test_whoever_was_named_is_not_told_again_when_the_roster_changes() -> None:
    crew = Crew({P: 1})
    submit(crew)
    home = crew.nodes[P]
    (start,) = home.starts()
    crew.away = {P}
    crew.wait(TIMES.owner_s + TIMES.doubt_s + 1)
    assert home.said(StopProcess)
    crew.exit(P, start.run_id, KILLED)
    crew.wait(MESSAGE_LIFE_S)
    crew.away = set()
    crew.loses = lambda _to, message: isinstance(message, Offer)
    crew.do(crew.nodes[A], lambda tasks, now: tasks.adopt(now, Roster(1, VOTERS)))
    assert [one.env["MESH_TOKEN"] for one in home.starts()] == []
    crew.loses = lambda _to, _message: False
    crew.wait(2 * CONFIG.offer_retry_s + CONFIG.offer_timeout_s)
    (again,) = home.starts()
    assert again.env["MESH_ATTEMPT"] == "2"
    assert int(again.env["MESH_TOKEN"]) > int(start.env["MESH_TOKEN"])


# The word itself.


def card(boot: int = 11) -> Card:
    at = Crew().nodes[A].card
    return replace(at, node_id=NodeId(1), boot=boot)


WORD = Named(Ballot(0, 1, 0, B), claimed(new()))


def test_a_word_is_taken_once_and_again_only_when_no_copy_can_come_any_more() -> None:
    namings = Namings(card)
    assert namings.take(0.0, B, WORD) is not None
    assert namings.take(MESSAGE_LIFE_S, B, WORD) is None
    other = replace(WORD, value=claimed(new(task_id="other")))
    assert namings.take(2 * MESSAGE_LIFE_S, B, other) is not None
    assert len(namings) == 1


@pytest.mark.parametrize(
    ("sender", "word"),
    [
        (C, WORD),
        (B, replace(WORD, ballot=Ballot(0, 1, 1, B))),
        (B, replace(WORD, value=new())),
        (B, replace(WORD, value=claimed(new(), Owner(NodeId(1), 12)))),
        (B, replace(WORD, value=Value(WORD.value.standing, b"?", WORD.value.owner))),
    ],
    ids=["not its first voter's", "no creation", "no lease", "another session's", "no task"],
)
def test_a_word_that_is_none_is_not_taken(sender: NodeId, word: Named) -> None:
    assert Namings(card).take(0.0, sender, word) is None


def test_with_too_many_in_mind_no_more_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "TAKEN_MAX", 1)
    namings = Namings(card)
    assert namings.take(0.0, B, WORD) is not None
    assert namings.take(0.0, B, replace(WORD, value=claimed(new(task_id="other")))) is None


# What is told of it.


def test_each_voter_tells_that_a_task_runs_whose_creation_named_its_owner() -> None:
    crew = Crew({P: 1})
    task_id = submit(crew)
    for voter in VOTERS:
        told = [one.event for one in crew.nodes[voter].said(Emit) if isinstance(one, Emit)]
        assert [
            (event.state, event.member, event.detail) for event in told if event.task_id == task_id
        ] == [("leased", "n8", "attempt 1")]
