"""The voters change between the write that names a task's first owner and its word."""

from __future__ import annotations

import pytest

from mesh.core.ids import NodeId
from mesh.tasks.body import End
from mesh.tasks.commands import New, Submit
from mesh.wire.register_messages import Accept
from mesh.wire.task_messages import Named, TaskState
from mesh.wire.work_messages import Spec
from tests.unit.tasks.crew import A, Crew

P = NodeId(8)
NEW = New(Spec(task_id="", argv=("work",)))


@pytest.mark.parametrize("place", [1, None], ids=["not the first voter", "no voter"])
def test_whoever_is_named_hears_of_it_although_the_voters_changed_meanwhile(
    place: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = Crew({P: 1})
    crew.loses = lambda _to, message: isinstance(message, Accept | Named)
    crew.give(A, lambda number: Submit(number, NEW))
    assert crew.answer(A) is None
    crew.loses = lambda _to, _message: False
    monkeypatch.setattr(crew.nodes[A].desk, "place", lambda _key: place)
    crew.wait(1.0)
    answer = crew.answer(A)
    assert answer is not None
    assert answer.error is None
    (start,) = crew.nodes[P].starts()
    assert start.env["MESH_ATTEMPT"] == "1"
    crew.exit(P, start.run_id)
    crew.wait(1.0)
    body = crew.body(answer.result["id"])
    assert body.state is TaskState.DONE
    assert [one.end for one in body.attempts] == [End.VERDICT]
