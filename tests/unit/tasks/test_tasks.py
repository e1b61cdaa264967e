"""The face: whole ways of tasks through nodes side by side, and what it does with what makes no sense."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.core.effects import StartProcess
from mesh.core.ids import NodeId
from mesh.core.process import ProcessExit
from mesh.errors import LocalProtocolError
from mesh.tasks.body import task_key
from mesh.tasks.commands import CancelTask, GetTask, WaitFor
from mesh.wire.register_messages import Owner
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
from tests.unit.tasks.crew import TIMES, VOTERS, A, B, C, Crew
from tests.unit.tasks.made import NOON

P, Q = NodeId(8), NodeId(9)


def test_task_goes_from_a_client_to_its_end_and_whoever_waits_is_told() -> None:
    crew = Crew({P: 1})
    crew.submit("t", own=C)
    assert crew.give(B, lambda number: WaitFor(number, "t")) is None
    (start,) = crew.nodes[P].starts()
    crew.exit(P, start.run_id)
    crew.wait(1)
    answer = crew.answer(B)
    assert answer is not None
    assert answer.result["state"] == "done"


def test_tasks_run_as_slots_are_free_and_each_once() -> None:
    crew = Crew({A: 1, P: 2, Q: 1})
    ids = [f"t{number}" for number in range(20)]
    for task_id in ids:
        crew.submit(task_id)
    ran: list[str] = []
    for _ in range(40):
        for own, node in crew.nodes.items():
            assert node.tasks.used <= node.card.meta.slots
            for start in node.starts():
                ran.append(start.env["MESH_TASK_ID"])
                crew.exit(own, start.run_id)
        crew.wait(0.5)
    assert sorted(ran) == sorted(ids)
    assert all(crew.body(task_id).state is TaskState.DONE for task_id in ids)


def test_owner_that_is_proved_to_be_gone_is_followed_long_before_its_lease_ends() -> None:
    crew = Crew({P: 1, Q: 1})
    crew.submit("t")
    first, second = (P, Q) if crew.nodes[P].tasks.used else (Q, P)
    crew.away = {first}
    for node in crew.nodes.values():
        node.view.drop(first)
        crew.meet(node, first)
    crew.prove(first)
    crew.wait(TIMES.owner_s / 4)  # the voter that hears it first offers before the others know
    (start,) = crew.nodes[second].starts()
    assert start.env["MESH_ATTEMPT"] == "2"
    body = crew.body("t")
    assert body.cause is AttemptCause.CRASH
    assert body.attempts[0].owner == Owner(first, 1)


def test_second_voter_sees_to_a_task_whose_first_voter_is_gone() -> None:
    crew = Crew({P: 1})
    first = crew.nodes[A].desk.seats(task_key("t")).voters[0]
    crew.away = {P}
    crew.submit("t", own=A)
    crew.away = {first}
    for node in crew.nodes.values():
        node.view.drop(first)
        crew.meet(node, first)
    crew.wait(10)
    assert len(crew.nodes[P].starts()) == 1


def test_task_is_cancelled_wherever_it_is() -> None:
    crew = Crew({P: 1})
    crew.submit("runs")
    crew.submit("waits")
    (start,) = crew.nodes[P].starts()
    running, waiting = (start.env["MESH_TASK_ID"], "waits")
    crew.give(B, lambda number: CancelTask(number, waiting))
    crew.give(C, lambda number: CancelTask(number, running))
    crew.wait(1)
    crew.exit(P, start.run_id, 143)
    crew.wait(1)
    assert crew.body("runs").state is TaskState.CANCELLED
    assert crew.body("waits").state is TaskState.CANCELLED
    assert crew.body("waits").attempt == 0


def test_question_at_the_owners_own_node_costs_it_no_lease() -> None:
    crew = Crew({A: 1})
    crew.submit("t")
    (start,) = crew.nodes[A].starts()
    for _ in range(2):
        crew.submit("t")
        crew.give(A, lambda number: GetTask(number, "t"))
    crew.wait(3 * TIMES.voter_s)
    crew.exit(A, start.run_id)
    assert crew.body("t").state is TaskState.DONE
    assert len(crew.body("t").attempts) == 1


def test_view_shows_what_this_node_votes_on_and_runs() -> None:
    crew = Crew({P: 1})
    crew.submit("t")
    crew.submit("u")
    counts = crew.nodes[A].tasks.view()["counts"]
    assert (counts["ready"], counts["leased"]) == (1, 1)
    (run,) = crew.nodes[P].tasks.view()["running"]
    assert (run["id"], run["attempt"], run["is_frozen"]) == ("t", 1, False)


def test_what_is_final_is_made_into_json_once_and_what_is_not_anew() -> None:
    crew = Crew({P: 1})
    crew.submit("t")
    (start,) = crew.nodes[P].starts()
    crew.submit("u")
    tasks = crew.nodes[A].tasks
    before = {task["id"]: task for task in tasks.newest(9)}
    assert {name: task["state"] for name, task in before.items()} == {"t": "leased", "u": "ready"}
    crew.exit(P, start.run_id)
    after = {task["id"]: task for task in tasks.newest(9)}
    assert (after["t"]["state"], after["t"]["owner"]) == ("done", crew.body("t").attempts[0].name)
    assert after["u"] is not before["u"]
    again = {task["id"]: task for task in tasks.newest(9)}
    assert again["t"] is after["t"]
    assert again["t"] == after["t"]
    assert [task["id"] for task in tasks.newest(1)] == ["u"]
    assert {task["id"] for task in tasks.newest(9)} == {"t", "u"}


def test_why_a_task_waits_is_told_in_words() -> None:
    crew = Crew()
    crew.submit("t")
    answer = crew.give(A, lambda number: GetTask(number, "t"))
    assert answer is not None
    assert "a slot" in answer.result["waits_for"]


def test_what_is_no_message_about_tasks_is_refused() -> None:
    node = Crew().nodes[A]
    with pytest.raises(LocalProtocolError, match="no message about tasks"):
        node.tasks.handle_message(100.0, B, object())


def test_process_that_nobody_started_is_not_minded() -> None:
    crew = Crew({P: 1})
    crew.end(ProcessExit(99, 0), P)
    assert crew.nodes[P].tasks.used == 0


_task_ids = st.sampled_from(["t", "u", "x" * 128, "task/\N{SNOWMAN}"])
_messages = st.one_of(
    st.builds(
        OfferAnswer, _task_ids, st.integers(0, 3), st.sampled_from(Decline), st.integers(0, 9)
    ),
    st.builds(SlotsFree, st.integers(0, 65_535)),
    st.builds(CancelRun, _task_ids, st.integers(0, 3)),
    st.builds(CancelAnswer, _task_ids, st.integers(0, 3), st.sampled_from(CancelVerdict)),
)


@given(st.lists(st.tuples(st.sampled_from([A, B, P, Q, NodeId(77)]), _messages), max_size=12))
@settings(max_examples=30, deadline=None)
def test_whatever_members_say_nothing_is_run_twice_or_lost(
    said: list[tuple[NodeId, OfferAnswer | SlotsFree | CancelRun | CancelAnswer]],
) -> None:
    crew = Crew({P: 1})
    crew.submit("t")
    starts: list[StartProcess] = []
    for sender, message in said:
        if isinstance(message, CancelRun) and message.task_id == "t":
            continue
        for own in (A, P):
            node = crew.nodes[own]
            crew.do(node, lambda tasks, now: tasks.handle_message(now, sender, message))  # noqa: B023 - done at once
        starts += crew.nodes[P].starts()
    crew.wait(1)
    starts += crew.nodes[P].starts()
    (start,) = starts
    crew.exit(P, start.run_id)
    crew.wait(1)
    assert crew.body("t").state is TaskState.DONE


def test_offers_of_what_does_not_exist_come_to_nothing() -> None:
    crew = Crew({P: 1})
    crew.submit("t")
    record = crew.nodes[A].desk.voter.record(task_key("t"))
    (start,) = crew.nodes[P].starts()
    crew.exit(P, start.run_id)
    ghost = Offer(task_id="ghost", ballot=record.ballot, seq=0, attempt=1, cause=AttemptCause.FIRST)
    crew.do(crew.nodes[P], lambda tasks, now: tasks.handle_message(now, A, ghost))
    crew.wait(5)
    assert crew.nodes[P].tasks.used == 0
    assert not crew.nodes[P].starts()


@pytest.mark.parametrize("steward", VOTERS)
def test_what_a_draining_node_lets_go_runs_elsewhere_at_once_whoever_offers_it(
    steward: NodeId,
) -> None:
    crew = Crew({A: 1, P: 1})
    names = (f"t{n}" for n in itertools.count())
    of = next(
        name for name in names if crew.nodes[A].desk.seats(task_key(name)).voters[0] == steward
    )
    crew.submit(of)
    runs = {own: crew.nodes[own].starts() for own in (A, P)}
    ((owner, (run,)),) = ((own, started) for own, started in runs.items() if started)
    crew.do(crew.nodes[owner], lambda tasks, now: tasks.drain(now, now))
    crew.exit(owner, run.run_id, 143)
    crew.wait(0.05)
    (again,) = crew.nodes[P if owner == A else A].starts()
    assert again.env["MESH_ATTEMPT"] == "2"


def test_a_draining_node_offers_to_others_what_it_lets_go_itself() -> None:
    crew = Crew({A: 1, B: 1})
    for name in (f"t{n}" for n in itertools.count()):
        if crew.nodes[A].desk.seats(task_key(name)).voters[0] != A:
            continue
        crew.submit(name)
        if runs := crew.nodes[A].starts():
            break
        (elsewhere,) = crew.nodes[B].starts()
        crew.exit(B, elsewhere.run_id)
    crew.do(crew.nodes[A], lambda tasks, now: tasks.drain(now, now))
    crew.exit(A, runs[0].run_id, 143)
    crew.wait(0.05)
    (again,) = crew.nodes[B].starts()
    assert again.env["MESH_ATTEMPT"] == "2"


def _seen(crew: Crew, own: NodeId, task_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a task as a node answers for it, and as it lists it."""
    answer = crew.give(own, lambda number: GetTask(number, task_id))
    assert answer is not None
    (listed,) = (one for one in crew.nodes[own].tasks.newest(9) if one["id"] == task_id)
    return answer.result, listed


def _part(crew: Crew, gone: NodeId) -> None:
    """Let a member go from everybody's view."""
    for node in crew.nodes.values():
        node.view.drop(gone)
        crew.meet(node, gone)


def test_task_whose_owner_is_proved_over_is_said_to_be_lost_and_what_it_waits_for() -> None:
    crew = Crew({P: 1})
    crew.submit("t")
    for seen in _seen(crew, A, "t"):
        assert (seen["lost"], seen["lost_cause"], seen["lost_since"]) == (False, None, None)
    crew.wait(0.5)
    since = NOON + crew.now - 100.0
    crew.away = {P}
    _part(crew, P)
    crew.prove(P)
    crew.wait(1)
    for seen in _seen(crew, A, "t"):
        assert (seen["state"], seen["owner"]) == ("leased", f"n{P}")
        assert (seen["lost"], seen["lost_cause"]) == (True, "crash")
        assert seen["lost_since"] == pytest.approx(since)
        assert "has a slot" in seen["waits_for"]


def test_run_that_its_own_node_holds_frozen_is_listed_so_there() -> None:
    crew = Crew({A: 1})
    crew.submit("t")
    (listed,) = crew.nodes[A].tasks.newest(9)
    assert listed["frozen"] is False
    crew.away = {A}
    crew.wait(TIMES.renew_s)
    while not crew.nodes[A].tasks.view()["running"][0]["is_frozen"]:
        crew.wait(0.1)
    (listed,) = crew.nodes[A].tasks.newest(9)
    assert (listed["state"], listed["frozen"], listed["lost"]) == ("leased", True, False)


def test_task_whose_lease_ran_out_is_said_to_be_lost_until_somebody_has_it_again() -> None:
    crew = Crew({P: 1, Q: 1})
    member = crew.nodes[Q].member()
    _part(crew, Q)
    crew.submit("t")
    crew.away = {P}
    _part(crew, P)
    crew.wait(TIMES.voter_s / 2)
    assert [seen["lost"] for seen in _seen(crew, A, "t")] == [False, False]
    crew.wait(TIMES.voter_s + TIMES.grace_s)
    assert [seen["lost_cause"] for seen in _seen(crew, A, "t")] == ["lapse", "lapse"]
    for node in crew.nodes.values():
        node.view.put(member)
        crew.meet(node, Q)
    crew.wait(5)
    assert crew.body("t").attempt == 2
    assert [(seen["lost"], seen["waits_for"]) for seen in _seen(crew, A, "t")] == [(False, "")] * 2
