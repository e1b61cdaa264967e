"""Which task starts where, and when, as whole nodes do it."""

from __future__ import annotations

from mesh.core.effects import StartProcess
from mesh.core.process import ProcessExit
from mesh.node.config import Metadata
from mesh.tasks.commands import GetTask, New, Submit, SubmitMany
from mesh.wire.work_messages import Spec
from tests.unit.node.neighbours import Neighbours
from tests.unit.node.talk import NOW, carry_out, founder, job, submit


def ran(effects: list[object]) -> list[tuple[int, str]]:
    starts = [effect for effect in effects if isinstance(effect, StartProcess)]
    return [(start.run_id, start.env["MESH_TASK_ID"]) for start in starts]


def test_tasks_of_one_queue_start_in_the_order_of_their_submission() -> None:
    node = founder(meta=Metadata(slots=1))
    names = ["delta", "alpha", "charlie", "bravo"]
    effects: list[object] = [effect for name in names for effect in submit(node, name)]
    order: list[str] = []
    while (started := ran(effects)) != []:
        ((run, name),) = started
        order.append(name)
        effects = [*carry_out(node, node.handle_process(NOW, ProcessExit(run, 0)))]
    assert order == names


def test_slot_that_becomes_free_is_used_at_once() -> None:
    wire = Neighbours()
    wire.begin(1, meta=Metadata(slots=0))
    wire.begin(2, meta=Metadata(slots=1))
    wire.run(1.0)
    wire.give(1, lambda command: SubmitMany(command, (job("first"), job("second"))))
    ((_, (first,)),) = wire.started().items()
    wire.exit(2, first.run_id)
    ((_, (second,)),) = wire.started().items()
    assert [run.env["MESH_TASK_ID"] for run in (first, second)] == ["first", "second"]


def test_task_that_no_member_fits_waits_and_says_for_what_until_one_joins() -> None:
    wire = Neighbours()
    wire.begin(1)
    wants = New(Spec(task_id="t", argv=("true",), labels=(("gpu", "yes"),)))
    wire.give(1, lambda command: Submit(command, wants))
    wire.run(5.0)
    assert wire.started() == {}
    shown = wire.answer(wire.give(1, lambda command: GetTask(command, "t")))
    assert shown is not None
    assert shown.result["state"] == "ready"
    assert shown.result["waits_for"]
    wire.begin(2, meta=Metadata(slots=1, labels=(("gpu", "yes"),)))
    wire.run(2.0, until=lambda: wire.nodes[2].view(wire.now).running)
    assert list(wire.started()) == [2]
