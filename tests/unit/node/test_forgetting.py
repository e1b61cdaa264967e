"""A node is told to forget a member: what it answers, what it shows, what its work hears."""

from __future__ import annotations

import pytest

from mesh.core.effects import Answer, Effect, Emit, SendDatagram
from mesh.core.events import EventKind
from mesh.core.ids import NO_MESH, format_id
from mesh.membership.member import Change
from mesh.node.commands import ForgetMember, Leave
from mesh.node.node import Node
from mesh.node.roll import Roll
from mesh.placement.live_view import LiveView
from mesh.wire.packet import decode_packet
from mesh.wire.records import Cause, Rank, State
from mesh.wire.swim_messages import Alive, Dead, Forget
from tests.unit.membership.pump import card, card_bytes, node_id
from tests.unit.node.talk import NOW, started, tell

GONE = (State.DEAD, Cause.SILENT)
FORGOTTEN = (State.FORGOTTEN, Cause.NONE)


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


@pytest.mark.parametrize(
    ("before", "after", "ended"),
    [
        ((1, 0, *GONE), (1, 0, *FORGOTTEN), None),
        ((1, 0, State.LEFT, Cause.NONE), (1, 0, *FORGOTTEN), None),
        ((1, 0, *FORGOTTEN), (1, 3, *FORGOTTEN), None),
        ((1, 0, State.ALIVE, Cause.NONE), (1, 0, *FORGOTTEN), 1),
        ((1, 0, State.SUSPECT, Cause.NONE), (1, 0, *FORGOTTEN), 1),
        ((1, 0, *GONE), (2, 0, *FORGOTTEN), 1),
    ],
)
def test_work_hears_that_a_session_ended_once_and_not_again_when_it_is_forgotten(
    before: Rank, after: Rank, ended: int | None
) -> None:
    node = started()
    roll = Roll(node._swim.table, LiveView())
    change = Change(card=card(3), after=after, before=before, is_card_new=False)
    (news,) = roll.apply([change], "member")
    assert news.ended_boot == ended
    assert not news.is_up
    assert not news.reason.startswith("left"), "that would be a proof"
