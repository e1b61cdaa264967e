"""A farewell is proof that the session runs nothing: it is said then, and not otherwise."""

from __future__ import annotations

from mesh.core.effects import Effect, Emit, SendDatagram, StartProcess, Stop, StopProcess
from mesh.core.events import EventKind
from mesh.core.process import ProcessExit
from mesh.node.commands import Leave
from mesh.node.departure import REAP_S
from mesh.node.node import Node
from mesh.tasks.commands import Submit
from mesh.tasks.config import TasksConfig
from mesh.wire.packet import decode_packet
from mesh.wire.records import Metadata, State
from mesh.wire.swim_messages import Alive, Left
from tests.unit.membership.pump import card_bytes
from tests.unit.node.neighbours import Neighbours
from tests.unit.node.talk import (
    NOW,
    carry_out,
    config,
    founder,
    job,
    run_until_stop,
    started,
    submit,
    tell,
)

PATIENCE_S = TasksConfig().stop_grace_s + REAP_S


def farewells(effects: list[Effect]) -> list[Left]:
    packets = [decode_packet(e.data) for e in effects if isinstance(e, SendDatagram)]
    return [m for packet in packets for m in packet.messages if isinstance(m, Left)]


def stopped(effects: list[Effect]) -> list[int]:
    return [effect.run_id for effect in effects if isinstance(effect, StopProcess)]


def everything_until_stop(node: Node) -> list[Effect]:
    effects: list[Effect] = []
    while not any(isinstance(effect, Stop) for effect in effects):
        due = node.next_timeout()
        assert due is not None
        assert due < NOW + 2 * PATIENCE_S
        effects += carry_out(node, node.handle_timeout(due), due)
    return effects


def with_a_run() -> tuple[Node, int]:
    node = founder()
    tell(node, 2, Alive(card_bytes(2, meta=Metadata(slots=0))))
    (run,) = [e.run_id for e in submit(node) if isinstance(e, StartProcess)]
    return node, run


def leaving_with_a_run() -> tuple[Node, int]:
    node, run = with_a_run()
    effects = node.handle_command(NOW, Leave("asked to"))
    assert stopped(effects) == [run]
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


def test_farewell_is_said_as_soon_as_the_last_run_has_ended_and_that_is_durable() -> None:
    node, run = leaving_with_a_run()
    assert State.ALIVE.word in [m["state"] for m in node.view(NOW).members]
    effects = node.handle_process(NOW + 1, ProcessExit(run, 143))
    assert farewells(effects) == [], "others do not know yet that it was let go"
    assert farewells(carry_out(node, effects, NOW + 1))
    assert [stop.exit_code for stop in run_until_stop(node)] == [0]


def test_runs_may_go_on_for_as_long_as_was_said_and_are_stopped_then() -> None:
    node, run = with_a_run()
    effects = node.handle_command(NOW, Leave("asked to", within_s=10.0))
    assert stopped(effects) == []
    assert node.view(NOW).node["phase"] == "leaving"
    now = NOW
    while not stopped(effects):
        now = node.next_timeout() or now
        effects = carry_out(node, node.handle_timeout(now), now)
    assert stopped(effects) == [run]
    assert now == NOW + 10.0


def test_run_that_ends_in_time_is_waited_for_no_longer() -> None:
    node, run = with_a_run()
    node.handle_command(NOW, Leave("asked to", within_s=10.0))
    assert farewells(carry_out(node, node.handle_process(NOW, ProcessExit(run, 0))))
    assert [task["state"] for task in node.view(NOW).tasks] == ["done"]


def test_second_request_can_only_make_a_leave_sooner() -> None:
    node, run = with_a_run()
    node.handle_command(NOW, Leave("first", within_s=10.0))
    assert node.handle_command(NOW, Leave("later", within_s=20.0)) == []
    assert stopped(node.handle_command(NOW, Leave("sooner"))) == [run]
    carry_out(node, node.handle_process(NOW, ProcessExit(run, 143)))
    assert [stop.reason for stop in run_until_stop(node)] == ["first"]


def test_node_whose_runs_do_not_end_stops_without_a_farewell_and_says_so() -> None:
    node, _ = leaving_with_a_run()
    early = carry_out(node, node.handle_timeout(NOW + PATIENCE_S - 0.01))
    assert not any(isinstance(effect, Stop) for effect in early)
    effects = everything_until_stop(node)
    assert farewells(effects) == []
    (stop,) = [e for e in effects if isinstance(e, Stop)]
    assert stop.exit_code == 1
    assert "without a farewell" in stop.reason
    (event,) = [e.event for e in effects if isinstance(e, Emit)]
    assert event.kind is EventKind.WARN
    assert "1 run" in event.detail


def test_what_is_let_go_runs_elsewhere_and_costs_no_retry() -> None:
    wire = Neighbours()
    wire.begin(1, meta=Metadata(slots=0))
    for number in (2, 3):
        wire.begin(number, meta=Metadata(slots=1))
    wire.run(1.0)
    wire.give(1, lambda command: Submit(command, job()))
    ((runs, (start,)),) = wire.started().items()
    wire.do(runs, lambda node, now: node.handle_command(now, Leave("asked to")))
    wire.exit(runs, start.run_id, 143)
    wire.run(1.0, until=lambda: wire.nodes[5 - runs].view(wire.now).running)
    assert list(wire.started()) == [5 - runs]
    (task,) = wire.nodes[1].view(wire.now).tasks
    released, running = task["attempts"]
    assert (released["end"], released["error"]) == (
        "released",
        "it was released: its node is leaving",
    )
    assert running["cause"] == "released"


def test_word_that_no_majority_takes_holds_up_a_leave_until_the_lease_is_lost_anyway() -> None:
    wire = Neighbours()
    wire.begin(1, meta=Metadata(slots=0))
    wire.begin(2)
    wire.run(1.0)
    wire.give(1, lambda command: Submit(command, job()))
    ((_, (start,)),) = wire.started().items()
    wire.away = {1}
    began = wire.now
    wire.do(2, lambda node, now: node.handle_command(now, Leave("asked to")))
    wire.exit(2, start.run_id, 143)
    wire.run(2 * PATIENCE_S, until=lambda: wire.nodes[2].next_timeout() is None)
    (stop,) = wire.heard(2, Stop)
    assert (stop.exit_code, stop.reason) == (0, "asked to")
    assert began + config().leases.doubt_s <= wire.now <= began + PATIENCE_S
