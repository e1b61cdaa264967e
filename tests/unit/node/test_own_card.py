"""A name or a boot that changes at the door is the work's name and boot, too."""

from __future__ import annotations

from typing import Any

from mesh.core.ballot import Ballot
from mesh.core.effects import (
    Answer,
    Commit,
    Effect,
    Emit,
    Persist,
    SendDatagram,
    StartExchange,
    StartProcess,
    Stop,
    StopProcess,
)
from mesh.core.events import EventKind
from mesh.core.ids import low32
from mesh.core.process import ProcessExit
from mesh.node.commands import Leave
from mesh.node.holdings import MUTED
from mesh.node.node import Node
from mesh.node.work import Work
from mesh.tasks.commands import Abandon, Submit
from mesh.wire.packet import decode_packet
from mesh.wire.register_messages import Held, Prepare, Read
from mesh.wire.swim_messages import Ack, Alive, Ping, Refused, Welcome
from mesh.wire.task_messages import AttemptCause, Offer
from tests.unit.membership.pump import address, card_bytes, node_id
from tests.unit.node.talk import (
    NOW,
    ask,
    carry_out,
    config,
    founder,
    from_host,
    job,
    run_until_stop,
    submit,
    tell,
)

PREPARE = Prepare(b"task/other", Ballot(0, 1, 1, node_id(2)), 1)
OFFER = Offer(
    task_id="other",
    ballot=Ballot(0, 1, 1, node_id(2)),
    seq=0,
    attempt=1,
    cause=AttemptCause.FIRST,
)


def exchanges(effects: list[Effect]) -> list[tuple[StartExchange, Any]]:
    found = [effect for effect in effects if isinstance(effect, StartExchange)]
    return [(exchange, decode_packet(exchange.data, 10**6).messages[0]) for exchange in found]


def at_the_door(**changed: Any) -> tuple[Node, StartExchange]:  # noqa: ANN401 - what a config takes
    """A founder that begins its second session, and asks a seed whether others are ahead of it."""
    node = Node(config(seeds=("there:1",), is_founder=True, **changed), seed=1)
    carry_out(node, node.start(NOW))
    (exchange,) = [e for e, _ in exchanges(node.handle_resolved(NOW, "there:1", (address(2),)))]
    return node, exchange


def outranked(node: Node, exchange: StartExchange) -> list[Effect]:
    """Let the seed say that it knows session 50, and let the node in on its second try."""
    effects = node.handle_exchange(NOW, exchange.exchange_id, from_host(2, Welcome(50, ())))
    assert Persist({"boot": 51}) in effects
    second = next(e for e, m in exchanges(effects) if type(m).__name__ == "Join")
    effects += node.handle_exchange(NOW, second.exchange_id, from_host(2, Welcome(50, ())))
    node.check_invariants()
    assert node.view(NOW).node["boot"] == 51
    return effects


def muted_with_a_run() -> tuple[Node, int, list[Effect]]:
    node, exchange = at_the_door()
    (run,) = [e.run_id for e in submit(node, "mine") if isinstance(e, StartProcess)]
    effects = outranked(node, exchange)
    tell(node, 2, Alive(card_bytes(2)))
    return node, run, effects


def of_work(effects: list[Effect]) -> list[object]:
    """Return what a node says to others about tasks and registers, or stores of them."""
    carriers = [effect for effect in effects if isinstance(effect, SendDatagram | StartExchange)]
    said = [message for one in carriers for message in decode_packet(one.data, 10**6).messages]
    stored = [effect for effect in effects if isinstance(effect, Commit)]
    return [*stored, *(message for message in said if type(message) in Work.MESSAGES)]


def test_tasks_name_their_node_as_it_is_called_since_it_was_renamed() -> None:
    node, exchange = at_the_door(is_name_given=False)
    holder = card_bytes(2, name="host-1")
    refusal = from_host(2, Refused("name_taken", "taken", holder))
    effects = node.handle_exchange(NOW, exchange.exchange_id, refusal)
    due = node.next_timeout()
    assert due is not None
    node.handle_timeout(due)
    effects = node.handle_resolved(due, "there:1", (address(2),))
    (again,) = [e for e, _ in exchanges(effects)]
    node.handle_exchange(due, again.exchange_id, from_host(2, Welcome(0, ())))
    name = node.identity.card.name
    assert name != "host-1"
    submit(node)
    (task,) = node.view(NOW).tasks
    assert (task["keeper"], task["owner"]) == (name, name)


def test_work_of_a_session_that_was_not_raised_goes_on() -> None:
    node, exchange = at_the_door()
    submit(node, "mine")
    effects = node.handle_exchange(NOW, exchange.exchange_id, from_host(2, Welcome(0, ())))
    assert not any(isinstance(effect, StopProcess) for effect in effects)
    assert node.view(NOW).node["registers"]["votes"]


def test_node_whose_disk_is_older_than_the_mesh_remembers_stops_its_runs_and_says_why_once() -> (
    None
):
    node, run, effects = muted_with_a_run()
    assert [e.run_id for e in effects if isinstance(e, StopProcess)] == [run]
    effects += node.handle_timeout(NOW + 1)
    warnings = [
        e.event.detail
        for e in effects
        if isinstance(e, Emit) and e.event.kind is EventKind.WARN and "older" in e.event.detail
    ]
    assert len(warnings) == 1
    assert "start it with an empty data directory" in warnings[0]


def test_node_whose_disk_is_too_old_votes_and_claims_nothing_and_writes_down_no_more_than_that() -> (
    None
):
    node, run, effects = muted_with_a_run()
    for message in (PREPARE, OFFER):
        effects += tell(node, 2, message)
        effects += ask(node, 2, message)[1]
    effects += node.handle_process(NOW, ProcessExit(run, 143))
    now = NOW
    while (due := node.next_timeout()) is not None and due < NOW + 10:
        now = max(now, due)
        effects += node.handle_timeout(now)
    (only,) = of_work(effects)
    assert isinstance(only, Commit)
    assert (only.records, only.numbers) == ((), {MUTED: 1})
    assert node.handle_committed(now, only.number) == []
    assert not any(isinstance(effect, StartProcess) for effect in effects)
    assert not node.view(now).node["registers"]["votes"]


def test_node_answers_nothing_of_the_very_packet_that_says_how_old_its_disk_is() -> None:
    node = founder()
    tell(node, 2, Alive(card_bytes(2)))
    read = Read(b"task/mine", 1, 7)
    assert any(isinstance(message, Held) for message in of_work(tell(node, 2, read)))
    (only,) = of_work(tell(node, 2, Alive(card_bytes(1, boot=50)), read))
    assert isinstance(only, Commit)
    assert only.numbers == {MUTED: 1}


def test_node_whose_disk_is_too_old_offers_no_slot_and_refuses_tasks_in_words() -> None:
    node, _, _ = muted_with_a_run()
    reply, _ = ask(node, 2, Ping(1, low32(node_id(1)), 0))
    assert isinstance(reply, Ack)
    assert reply.vitals is not None
    assert reply.vitals.free_slots == 0
    (answer,) = node.handle_command(NOW, Submit(9, job("another")))
    assert isinstance(answer, Answer)
    assert "votes, claims and runs nothing" in str(answer.error)
    assert node.handle_command(NOW, Abandon(9)) == []


def test_node_whose_disk_is_too_old_waits_for_its_runs_to_end_before_it_says_farewell() -> None:
    node, run, _ = muted_with_a_run()
    effects = node.handle_command(NOW, Leave("asked to"))
    assert not any(isinstance(effect, Stop) for effect in effects)
    node.handle_process(NOW, ProcessExit(run, 143))
    assert [stop.exit_code for stop in run_until_stop(node)] == [0]
