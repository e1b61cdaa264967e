"""The node as a whole: what it is told, what it answers, what its view shows."""

from __future__ import annotations

from typing import Any

import pytest

from mesh.core.effects import (
    Answer,
    Effect,
    Emit,
    Persist,
    Resolve,
    SendDatagram,
    StartExchange,
    StartProcess,
)
from mesh.core.events import EventKind
from mesh.core.ids import NO_MESH, MeshId, NodeId, format_id, low32
from mesh.core.requests import Outgoing
from mesh.errors import TransportError
from mesh.node.commands import Leave, SetLoad
from mesh.node.config import Metadata
from mesh.node.exchanges import Exchanges
from mesh.node.node import Node
from mesh.wire.packet import decode_packet
from mesh.wire.records import Cause, Vitals
from mesh.wire.swim_messages import (
    Ack,
    Alive,
    Dead,
    Join,
    Ping,
    Refused,
    SyncOffer,
    SyncRoot,
    Waiting,
    Welcome,
)
from mesh.wire.work_messages import Offer, Spec, TaskQuery
from tests.unit.membership.pump import address, card_bytes, node_id
from tests.unit.node.talk import (
    MESH,
    NOW,
    ask,
    config,
    from_host,
    run_until_stop,
    started,
    submit,
    tell,
)


def test_node_without_seeds_founds_and_says_so() -> None:
    node = Node(config(mesh_id=NO_MESH), seed=1)
    effects = node.start(NOW)
    assert [type(effect) for effect in effects[:2]] == [Persist, Emit]
    view = node.view(NOW)
    assert view.node["phase"] == "member"
    assert view.node["mesh_id"] != ""


def test_seeking_node_is_in_its_own_view() -> None:
    node = started(mesh_id=NO_MESH, seeds=("there:1",))
    view = node.view(NOW + 5)
    assert (view.node["phase"], view.node["mesh_id"]) == ("seeking", "")
    assert [(m["name"], m["self"], m["state"]) for m in view.members] == [("host-1", True, "alive")]
    assert view.members[0]["since"] == NOW + 1_000_000.0


def test_view_shows_every_member_with_what_is_known_of_it() -> None:
    node = started()
    meta = Metadata(slots=4, labels=(("zone", "a"),))
    tell(node, 2, Alive(card_bytes(2, meta=meta)))
    node.handle_command(NOW, SetLoad(70))
    members = {m["name"]: m for m in node.view(NOW).members}
    assert list(members) == ["host-1", "host-2"]
    other = members["host-2"]
    assert other["node_id"] == format_id(node_id(2))
    assert (other["slots"], other["used"], other["load"], other["rtt_ms"]) == (4, None, None, None)
    assert (other["labels"], other["self"]) == ({"zone": "a"}, False)
    assert (members["host-1"]["used"], members["host-1"]["load"]) == (0, 0.7)


def test_two_of_one_name_are_told_apart() -> None:
    node = started()
    for number in (2, 3):
        tell(node, number, Alive(card_bytes(number, name="ada")))
    names = [m["name"] for m in node.view(NOW).members]
    assert names == sorted({"host-1", *(f"ada~{format_id(node_id(n))[:4]}" for n in (2, 3))})


@pytest.mark.parametrize(
    ("data", "counter"),
    [
        (b"", "dropped_garbage"),
        (b"GET / HTTP/1.1\r\n\r\n", "dropped_garbage"),
        (from_host(2, Ping(1, low32(node_id(1)), 0))[:-1], "dropped_garbage"),
        (b"M\x09" + from_host(2, Ping(1, low32(node_id(1)), 0))[2:], "dropped_version"),
        (from_host(2, Ping(1, low32(node_id(1)), 0), mesh_id=MeshId(5)), "dropped_foreign_mesh"),
        (from_host(2, Ping(1, low32(node_id(1)), 0), mesh_id=NO_MESH), "dropped_foreign_mesh"),
        (from_host(1, Ping(1, low32(node_id(1)), 0)), "dropped_own"),
        (from_host(2, SyncRoot(1)), "dropped_misplaced"),
    ],
)
def test_datagram_that_is_not_for_this_node_is_counted_and_changes_nothing(
    data: bytes, counter: str
) -> None:
    node = started()
    before = node.view(NOW)
    effects = node.handle_datagram(NOW, address(2), data)
    assert node.counters[counter] == 1
    assert all(not isinstance(effect, Emit | SendDatagram) for effect in effects)
    assert node.view(NOW).members == before.members


def test_request_of_another_version_is_refused_with_both_versions() -> None:
    node = started()
    data = b"M\x09" + from_host(2, Ping(1, low32(node_id(1)), 0))[2:]
    reply, effects = node.handle_request(NOW, address(2), data)
    refusal = decode_packet(reply).messages[0]
    assert isinstance(refusal, Refused)
    assert refusal.code == "version"
    assert "version 9" in refusal.text
    assert "1 to 1" in refusal.text
    assert effects == []


def test_request_that_is_garbage_gets_no_reply() -> None:
    node = started()
    assert node.handle_request(NOW, address(2), b"\x00" * 40) == (b"", [])
    two = from_host(2, Ping(1, low32(node_id(1)), 0), Ping(2, low32(node_id(1)), 0))
    assert node.handle_request(NOW, address(2), two) == (b"", [])
    broken = from_host(9, Join(b"\x01", 0, 0, ()), mesh_id=NO_MESH)
    assert node.handle_request(NOW, address(9), broken) == (b"", [])
    assert node.counters["dropped_garbage"] == 3


def test_join_of_another_mesh_is_refused_and_of_none_is_welcome() -> None:
    node = started()
    refusal, _ = ask(node, 9, Join(card_bytes(9), 0, 0, ()), MeshId(5))
    assert isinstance(refusal, Refused)
    assert refusal.code == "foreign_mesh"
    welcome, effects = ask(node, 9, Join(card_bytes(9), 0, 0, ()), NO_MESH)
    assert isinstance(welcome, Welcome)
    assert [e.event.kind for e in effects if isinstance(e, Emit)] == [EventKind.JOIN]


@pytest.mark.parametrize("mesh_id", [NO_MESH, MESH])
def test_seeking_node_answers_only_what_strangers_may_ask(mesh_id: MeshId) -> None:
    node = started(mesh_id=NO_MESH, seeds=("there:1",))
    assert isinstance(ask(node, 9, Join(card_bytes(9), 0, 0, ()), mesh_id)[0], Waiting)
    assert isinstance(ask(node, 9, Ping(1, low32(node_id(1)), 0), mesh_id)[0], Ack)
    offer = SyncOffer((0,), ())
    spec = Spec(task_id="t", argv=("true",))
    for message in (SyncRoot(1), offer, TaskQuery(""), Offer(spec, 1, 1)):
        assert isinstance(ask(node, 9, message, mesh_id)[0], Refused)
    assert len(node.view(NOW).members) == 1


def test_work_of_a_stranger_is_not_taken() -> None:
    node = started()
    spec = Spec(task_id="t", argv=("true",))
    reply, effects = ask(node, 9, Offer(spec, 1, 1))
    assert reply is None
    assert effects == []
    assert node.counters["dropped_stranger"] == 1


def test_late_reply_of_an_exchange_is_taken_once() -> None:
    node = Node(config(mesh_id=NO_MESH, seeds=("there:1",)), seed=1)
    assert [type(effect) for effect in node.start(NOW)] == [Resolve]
    effects = node.handle_resolved(NOW, "there:1", (address(2),))
    (exchange,) = [e for e in effects if isinstance(e, StartExchange)]
    error = TransportError("timed out")
    assert node.handle_exchange(NOW, exchange.exchange_id, error) != []
    assert node.handle_exchange(NOW, exchange.exchange_id, error) == []
    assert node.handle_exchange(NOW, 12345, b"whatever") == []


def test_task_is_refused_until_the_node_belongs_to_a_mesh() -> None:
    node = started(mesh_id=NO_MESH, seeds=("there:1",), expect=2)
    (answer,) = submit(node)
    assert isinstance(answer, Answer)
    assert "belongs to no mesh yet" in (answer.error or "")
    ask(node, 9, Join(card_bytes(9, meta=Metadata(slots=0)), 2, 0, ()), NO_MESH)
    assert node.view(NOW).node["phase"] == "member"
    effects = submit(node)
    assert [e.argv for e in effects if isinstance(e, StartProcess)] == [("true",)]


def test_work_of_one_that_died_is_not_offered_to_one_that_died_with_it() -> None:
    node = started(meta=Metadata(slots=0))
    for number in (2, 3, 4):
        tell(node, number, Alive(card_bytes(number, meta=Metadata(slots=8))))
    offered: dict[Any, int] = {}
    for count in range(12):
        for effect in submit(node, f"job-{count}"):
            if isinstance(effect, StartExchange):
                offered[effect.to] = offered.get(effect.to, 0) + 1
    assert len(offered) == 3
    deaths = [Dead(node_id(n), 1, 0, Cause.SILENT, node_id(4)) for n in (2, 3)]
    effects = tell(node, 4, *deaths)
    asked = {e.to for e in effects if isinstance(e, StartExchange)}
    assert asked <= {address(4)}


def test_vitals_in_an_ack_reach_the_view() -> None:
    node = started()
    tell(node, 2, Alive(card_bytes(2, meta=Metadata(slots=4))))
    tell(node, 2, Ack(9, NodeId(0), 1, Vitals(1, 30)))
    member = next(m for m in node.view(NOW).members if m["name"] == "host-2")
    assert (member["used"], member["load"]) == (3, 0.3)


def test_own_vitals_say_how_busy_this_node_is() -> None:
    node = started()
    submit(node)
    node.handle_command(NOW, SetLoad(55))
    reply, _ = ask(node, 2, Ping(1, low32(node_id(1)), 0))
    assert isinstance(reply, Ack)
    assert reply.vitals == Vitals(1, 55)


def test_node_that_has_left_hears_nothing() -> None:
    node = started()
    node.handle_command(NOW, Leave("asked to"))
    assert len(run_until_stop(node)) == 1
    assert tell(node, 2, Ping(1, low32(node_id(1)), 0)) == []
    assert ask(node, 2, Ping(1, low32(node_id(1)), 0)) == (None, [])


def test_calling_early_late_and_twice_is_harmless() -> None:
    node = started()
    tell(node, 2, Alive(card_bytes(2)))
    for now in (NOW, NOW, NOW + 0.001, NOW + 50.0, NOW + 50.0):
        node.handle_timeout(now)
        node.check_invariants()


def test_work_hears_of_a_death_that_was_refuted_in_the_same_datagram(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = started()
    tell(node, 2, Alive(card_bytes(2)))
    tell(node, 3, Alive(card_bytes(3)))
    ended: list[tuple[int, str]] = []
    hear = node._work.handle_member_down

    def note(now: float, member: NodeId, boot: int, reason: str) -> list[Outgoing]:
        ended.append((boot, reason))
        return hear(now, member, boot, reason)

    monkeypatch.setattr(node._work, "handle_member_down", note)
    dead = Dead(node_id(3), 1, 0, Cause.CRASHED, node_id(2))
    effects = tell(node, 2, dead, Alive(card_bytes(3, incarnation=1)))
    kinds = [effect.event.kind for effect in effects if isinstance(effect, Emit)]
    assert kinds == [EventKind.DEAD, EventKind.RETURN]
    assert ended == [(1, "declared dead (crashed)")]


def test_vitals_that_came_in_over_tcp_reach_placement_too() -> None:
    node = started()
    tell(node, 2, Alive(card_bytes(2)))
    ack = Ack(1, NodeId(0), 1, Vitals(0, 90))
    node._swim._prober.on_ack(NOW, node_id(2), ack)
    node.handle_timeout(NOW)
    live = node._live.get(node_id(2))
    assert live is not None
    assert (live.free_slots, live.load_pct) == (0, 90)


def test_exchanges_are_bounded_and_one_more_fails_at_once() -> None:
    node = started(meta=Metadata(slots=0))
    for number in (2, 3, 4, 5):
        tell(node, number, Alive(card_bytes(number, meta=Metadata(slots=1))))
    node._exchanges = Exchanges(work_max=2)
    asked = [effect for n in range(4) for effect in submit(node, f"job-{n}")]
    exchanges = [e for e in asked if isinstance(e, StartExchange)]
    assert len(exchanges) == 2
    assert node.view(NOW).node["counters"]["refused_exchanges"] >= 2
    due = node.next_timeout()
    assert due is not None
    node.handle_exchange(NOW, exchanges[0].exchange_id, TransportError("timed out"))
    later: list[Effect] = []
    while not any(isinstance(e, StartExchange) for e in later):
        due = node.next_timeout()
        assert due is not None
        assert due < NOW + 10
        later += node.handle_timeout(due)
    node.check_invariants()
