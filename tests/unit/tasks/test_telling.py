"""What becomes of tasks is told once by each voter, when it is durable there."""

from __future__ import annotations

from mesh.core.effects import Emit
from mesh.core.events import EventKind
from mesh.core.ids import NodeId
from tests.unit.tasks.crew import VOTERS, A, Crew

P, Q = NodeId(8), NodeId(9)

Told = list[tuple[str, str, str, str]]


def told(crew: Crew, own: NodeId = A) -> Told:
    found = [one.event for one in crew.nodes[own].said(Emit) if isinstance(one, Emit)]
    return [
        (event.state, event.cause, event.member, event.detail)
        for event in found
        if event.kind is EventKind.TASK and event.task_id == "t"
    ]


def test_each_voter_tells_that_a_task_runs_and_that_it_is_done_and_nobody_else_does() -> None:
    crew = Crew({P: 1})
    crew.submit("t")
    (start,) = crew.nodes[P].starts()
    crew.exit(P, start.run_id)
    for voter in VOTERS:
        assert told(crew, voter) == [
            ("leased", "first", "n8", "attempt 1"),
            ("done", "first", "n8", "exit 0"),
        ]
    assert told(crew, P) == []


def test_a_failure_that_is_tried_again_is_told_and_so_is_the_second_attempt() -> None:
    crew = Crew({P: 1})
    crew.submit("t", retries=1)
    (start,) = crew.nodes[P].starts()
    crew.exit(P, start.run_id, 3)
    crew.wait(5.0)
    (again,) = crew.nodes[P].starts()
    crew.exit(P, again.run_id, 4)
    assert [(state, cause, detail) for state, cause, _, detail in told(crew)] == [
        ("leased", "first", "attempt 1"),
        ("scheduled", "retry", "exit 3"),
        ("leased", "retry", "attempt 2"),
        ("failed", "retry", "exit 4"),
    ]


def test_an_attempt_whose_node_has_ended_is_told_and_so_is_the_next_one_with_its_cause() -> None:
    crew = Crew({P: 1, Q: 1})
    crew.submit("t")
    first = next(own for own in (P, Q) if crew.nodes[own].starts())
    crew.away.add(first)
    for node in crew.nodes.values():
        node.view.drop(first)
        crew.meet(node, first)
    crew.prove(first)
    crew.wait(1.0)
    assert [(state, cause, node) for state, cause, node, _ in told(crew)] == [
        ("leased", "first", f"n{first}"),
        ("ready", "crash", f"n{first}"),
        ("leased", "crash", f"n{17 - first}"),
    ]


def test_a_task_that_is_lost_with_its_node_is_told_at_once_though_nobody_can_run_it() -> None:
    crew = Crew({P: 1})
    crew.submit("t")
    assert crew.nodes[P].starts()
    crew.away.add(P)
    for node in crew.nodes.values():
        node.view.drop(P)
        crew.meet(node, P)
    crew.prove(P)
    assert told(crew)[-1] == ("ready", "crash", "n8", "")
