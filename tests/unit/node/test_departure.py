"""A farewell is proof that the session runs nothing: it is said then, and not otherwise."""

from __future__ import annotations

from mesh.core.effects import Effect, Emit, SendDatagram, StartProcess, Stop, StopProcess
from mesh.core.events import EventKind
from mesh.core.process import ProcessExit, ProcessOutput
from mesh.node.commands import Leave
from mesh.node.departure import REAP_S
from mesh.node.node import Node
from mesh.wire.packet import decode_packet
from mesh.wire.records import Metadata, State
from mesh.wire.swim_messages import Alive, Left
from mesh.wire.work_messages import Offer, Spec
from mesh.work.config import WorkConfig
from tests.unit.membership.pump import card_bytes
from tests.unit.node.talk import NOW, ask, run_until_stop, started, submit, tell

PATIENCE_S = WorkConfig().stop_grace_s + REAP_S


def farewells(effects: list[Effect]) -> list[Left]:
    packets = [decode_packet(e.data) for e in effects if isinstance(e, SendDatagram)]
    return [m for packet in packets for m in packet.messages if isinstance(m, Left)]


def everything_until_stop(node: Node) -> list[Effect]:
    effects: list[Effect] = []
    while not any(isinstance(effect, Stop) for effect in effects):
        due = node.next_timeout()
        assert due is not None
        assert due < NOW + 2 * PATIENCE_S
        effects += node.handle_timeout(due)
    return effects


def leaving_with_a_run() -> tuple[Node, int]:
    node = started()
    tell(node, 2, Alive(card_bytes(2, meta=Metadata(slots=0))))
    (run,) = [e.run_id for e in submit(node) if isinstance(e, StartProcess)]
    effects = node.handle_command(NOW, Leave("asked to"))
    assert [e.run_id for e in effects if isinstance(e, StopProcess)] == [run]
    assert farewells(effects) == []
    return node, run


def test_leave_is_told_and_then_the_node_stops() -> None:
    node = started()
    tell(node, 2, Alive(card_bytes(2)))
    effects = node.handle_command(NOW, Leave("asked to"))
    assert node.handle_command(NOW, Leave("again")) == []
    assert farewells(effects)
    assert node.view(NOW).node["phase"] == "leaving"
    stops = run_until_stop(node)
    assert [(stop.exit_code, stop.reason) for stop in stops] == [(0, "asked to")]
    assert node.next_timeout() is None


def test_farewell_is_said_as_soon_as_the_last_run_has_ended() -> None:
    node, run = leaving_with_a_run()
    assert State.ALIVE.word in [m["state"] for m in node.view(NOW).members]
    effects = node.handle_process(NOW + 1, ProcessExit(run, 143))
    assert farewells(effects)
    assert [stop.exit_code for stop in run_until_stop(node)] == [0]


def test_node_whose_runs_do_not_end_stops_without_a_farewell_and_says_so() -> None:
    node, _ = leaving_with_a_run()
    assert not any(isinstance(e, Stop) for e in node.handle_timeout(NOW + PATIENCE_S - 0.01))
    effects = everything_until_stop(node)
    assert farewells(effects) == []
    (stop,) = [e for e in effects if isinstance(e, Stop)]
    assert stop.exit_code == 1
    assert "without a farewell" in stop.reason
    (event,) = [e.event for e in effects if isinstance(e, Emit)]
    assert event.kind is EventKind.WARN
    assert "1 run" in event.detail


def test_output_that_nobody_takes_holds_up_a_leave_but_makes_no_lie_of_it() -> None:
    node = started()
    tell(node, 2, Alive(card_bytes(2)))
    _, effects = ask(node, 2, Offer(Spec(task_id="t", argv=("true",)), 1, 1))
    (run,) = [e.run_id for e in effects if isinstance(e, StartProcess)]
    node.handle_process(NOW, ProcessOutput(run, 1, b"piece"))
    node.handle_command(NOW, Leave("asked to"))
    assert farewells(node.handle_process(NOW, ProcessExit(run, 143))) == []
    assert farewells(node.handle_timeout(NOW + PATIENCE_S))
    assert [stop.exit_code for stop in run_until_stop(node)] == [0]
