"""A node is told to forget a member: what it answers, what it shows, what it tells."""

from __future__ import annotations

import pytest

from mesh.core.effects import Answer, Effect, Emit, SendDatagram
from mesh.core.events import EventKind
from mesh.core.ids import NO_MESH, format_id
from mesh.node.commands import ForgetMember, Leave
from mesh.node.node import Node
from mesh.wire.packet import decode_packet
from mesh.wire.records import Cause
from mesh.wire.swim_messages import Alive, Dead, Forget
from tests.unit.membership.pump import card_bytes, node_id
from tests.unit.node.talk import NOW, started, tell


def with_a_dead_member() -> Node:
    node = started()
    tell(node, 2, Alive(card_bytes(2)), Alive(card_bytes(3)))
    tell(node, 2, Dead(node_id(3), 1, 0, Cause.ENDED, node_id(2)))
    return node


def forget(node: Node, whom: str) -> tuple[Answer, list[Effect]]:
    effects = node.handle_command(NOW, ForgetMember(7, whom))
    node.check_invariants()
    (answer,) = [effect for effect in effects if isinstance(effect, Answer)]
    assert answer.command_id == 7
    return answer, effects


def listed(node: Node) -> dict[str, str]:
    return {row["name"]: row["state"] for row in node.view(NOW).members}


def test_a_forgotten_member_is_not_shown_any_more() -> None:
    node = with_a_dead_member()
    assert listed(node) == {"host-1": "alive", "host-2": "alive", "host-3": "dead"}
    answer, effects = forget(node, "host-3")
    assert answer.error is None
    assert answer.result == {"node_id": format_id(node_id(3)), "name": "host-3", "was": "dead"}
    assert [e.event.kind for e in effects if isinstance(e, Emit)] == [EventKind.FORGET]
    assert listed(node) == {"host-1": "alive", "host-2": "alive"}


def test_the_others_are_told_with_the_next_round_of_gossip() -> None:
    node = with_a_dead_member()
    while (due := node.next_timeout()) is not None and due < NOW + 1:
        node.handle_timeout(due)  # what was told before has come to rest
    forget(node, "host-3")
    told: list[object] = []
    while (due := node.next_timeout()) is not None and due < NOW + 2 and not told:
        packets = [
            decode_packet(effect.data)
            for effect in node.handle_timeout(due)
            if isinstance(effect, SendDatagram)
        ]
        told = [m for packet in packets for m in packet.messages if isinstance(m, Forget)]
    assert told
    assert all(m == Forget(node_id(3), 1, 0, node_id(1), 0) for m in told)


@pytest.mark.parametrize(
    ("whom", "text"),
    [
        ("host-2", "host-2 is alive"),
        ("host-1", "host-1 is this node itself"),
        ("host-9", "no member is known here by the name or id 'host-9'"),
    ],
)
def test_a_refusal_changes_nothing(whom: str, text: str) -> None:
    node = with_a_dead_member()
    before = node.view(NOW)
    answer, effects = forget(node, whom)
    assert answer.result is None
    assert text in str(answer.error)
    assert not any(isinstance(effect, Emit) for effect in effects)
    assert node.view(NOW).members == before.members


def test_a_node_that_seeks_a_mesh_or_leaves_it_answers_too() -> None:
    seeking = started(mesh_id=NO_MESH, seeds=("10.9.9.9:7946",))
    answer, _ = forget(seeking, "host-3")
    assert "no member is known here" in str(answer.error)
    leaving = with_a_dead_member()
    leaving.handle_command(NOW, Leave("asked to"))
    assert forget(leaving, "host-3")[0].error is None
