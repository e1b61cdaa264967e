"""A name or a boot that changes at the door is the work's name and boot, too."""

from __future__ import annotations

from typing import Any

import pytest

from mesh.core.effects import Effect, Persist, StartExchange, StartProcess, StopProcess
from mesh.core.ids import NO_MESH
from mesh.core.process import ProcessExit
from mesh.node.config import Metadata
from mesh.node.node import Node
from mesh.wire.packet import decode_packet
from mesh.wire.swim_messages import Alive, Refused, Welcome
from mesh.wire.work_messages import CancelRun, Decline, Offer, OfferAnswer, Spec
from tests.unit.membership.pump import address, card_bytes
from tests.unit.node.talk import NOW, ask, config, from_host, submit, tell


def exchanges(effects: list[Effect]) -> list[tuple[StartExchange, Any]]:
    found = [effect for effect in effects if isinstance(effect, StartExchange)]
    return [(exchange, decode_packet(exchange.data, 10**6).messages[0]) for exchange in found]


def at_the_door(**changed: Any) -> tuple[Node, StartExchange]:  # noqa: ANN401 - what a config takes
    node = Node(config(seeds=("there:1",), **changed), seed=1)
    node.start(NOW)
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


def test_tasks_name_their_keeper_as_it_is_called_since_it_was_renamed() -> None:
    node, exchange = at_the_door(mesh_id=NO_MESH, is_name_given=False)
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


def test_later_boot_known_at_the_door_is_the_works_too() -> None:
    node, exchange = at_the_door(mesh_id=NO_MESH)
    outranked(node, exchange)
    tell(node, 2, Alive(card_bytes(2)))
    answer, _ = ask(node, 2, Offer(Spec(task_id="t", argv=("true",)), 1, 1))
    assert answer == OfferAnswer(Decline.NONE, 51, 1)


def test_runs_of_a_session_whose_number_was_raised_are_stopped_and_their_tasks_run_again() -> None:
    node, exchange = at_the_door()
    (first,) = [e.run_id for e in submit(node, "mine") if isinstance(e, StartProcess)]
    effects = outranked(node, exchange)
    assert [e.run_id for e in effects if isinstance(e, StopProcess)] == [first]
    effects = node.handle_process(NOW, ProcessExit(first, 143))
    node.check_invariants()
    view = node.view(NOW)
    (task,) = view.tasks
    lost, running = task["attempts"]
    assert (lost["number"], lost["error"]) == (1, "host-1 began a new session")
    assert (running["number"], running["cause"], task["state"]) == (2, "crash", "leased")
    started_again = [e for e in effects if isinstance(e, StartProcess)]
    assert len(started_again) <= 1


@pytest.mark.parametrize("is_accepted", [False, True])
def test_attempts_given_away_under_the_old_number_end_and_are_never_offered_under_the_new(
    is_accepted: bool,
) -> None:
    node, exchange = at_the_door(meta=Metadata(slots=0))
    tell(node, 2, Alive(card_bytes(2, meta=Metadata(slots=1))))
    ((offered, offer),) = exchanges(submit(node, "mine"))
    assert (offer.attempt, offer.keeper_boot) == (1, 1)
    answer = from_host(2, OfferAnswer(Decline.NONE, 1, 0))
    if is_accepted:
        node.handle_exchange(NOW, offered.exchange_id, answer)
    effects = outranked(node, exchange)
    if not is_accepted:
        effects += node.handle_exchange(NOW, offered.exchange_id, answer)
    messages = [message for _, message in exchanges(effects)]
    assert CancelRun("mine", 1) in messages
    assert all((m.attempt, m.keeper_boot) == (2, 51) for m in messages if isinstance(m, Offer))
    node.check_invariants()


def test_work_of_a_session_that_was_not_raised_goes_on() -> None:
    node, exchange = at_the_door()
    submit(node, "mine")
    effects = node.handle_exchange(NOW, exchange.exchange_id, from_host(2, Welcome(0, ())))
    assert not any(isinstance(effect, StopProcess) for effect in effects)
