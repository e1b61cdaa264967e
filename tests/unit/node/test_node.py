"""The node as a whole: what it is told, what it answers, what its view shows."""

from __future__ import annotations

import pytest

from mesh.core.effects import (
    Answer,
    Commit,
    Emit,
    Persist,
    Resolve,
    SendDatagram,
    StartExchange,
    StartProcess,
)
from mesh.core.events import EventKind
from mesh.core.ids import NO_MESH, MeshId, NodeId, format_id, low32
from mesh.core.requests import Ask
from mesh.errors import TransportError
from mesh.hooks.commands import TakeTurn
from mesh.node.commands import Leave, SetLoad
from mesh.node.config import Metadata
from mesh.node.delivery import Parcel
from mesh.node.exchanges import Exchanges
from mesh.node.node import Node
from mesh.queues.commands import SetQueue
from mesh.queues.settings import Strategy
from mesh.tasks.body import task_key
from mesh.tasks.commands import New, SubmitMany
from mesh.wire.packet import FRAME_BYTES_MAX, decode_packet
from mesh.wire.parcel_messages import Taken
from mesh.wire.records import Vitals
from mesh.wire.register_messages import Held, Read
from mesh.wire.roster_messages import Roster
from mesh.wire.swim_messages import (
    Ack,
    Alive,
    Join,
    Ping,
    Refused,
    SyncOffer,
    SyncRoot,
    Waiting,
    Welcome,
)
from mesh.wire.work_messages import Spec
from tests.unit.membership.pump import address, card_bytes, node_id
from tests.unit.node.talk import (
    MESH,
    NOW,
    ask,
    carry_out,
    config,
    founder,
    from_host,
    run_until_stop,
    started,
    submit,
    tell,
)

READ = Read(task_key("t"), 1, 5)


def test_node_without_seeds_founds_and_says_so() -> None:
    node = Node(config(mesh_id=NO_MESH), seed=1)
    effects = node.start(NOW)
    assert [type(effect) for effect in effects[:3]] == [Commit, Persist, Emit]
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
    assert "2 to 2" in refusal.text
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


def test_seeking_node_sets_no_queue_and_says_why() -> None:
    node = started(mesh_id=NO_MESH, seeds=("there:1",))
    (answer,) = node.handle_command(NOW, SetQueue(1, "thumbs", Strategy.PULL))
    assert isinstance(answer, Answer)
    assert "belongs to no mesh yet: set it again" in str(answer.error)


def test_seeking_node_takes_no_turn_of_a_hook_and_says_so_at_once() -> None:
    node = started(mesh_id=NO_MESH, seeds=("there:1",))
    (answer,) = node.handle_command(NOW, TakeTurn(1, "shortage/default", 600.0, 7, 5.0))
    assert isinstance(answer, Answer)
    assert "belongs to no mesh yet: ask again" in str(answer.error)


@pytest.mark.parametrize("mesh_id", [NO_MESH, MESH])
def test_seeking_node_answers_only_what_strangers_may_ask(mesh_id: MeshId) -> None:
    node = started(mesh_id=NO_MESH, seeds=("there:1",))
    assert isinstance(ask(node, 9, Join(card_bytes(9), 0, 0, ()), mesh_id)[0], Waiting)
    assert isinstance(ask(node, 9, Ping(1, low32(node_id(1)), 0), mesh_id)[0], Ack)
    for message in (SyncRoot(1), SyncOffer((0,), ()), READ):
        assert isinstance(ask(node, 9, message, mesh_id)[0], Refused)
    assert len(node.view(NOW).members) == 1


def test_parcel_of_work_is_taken_and_answered_by_messages_of_its_own() -> None:
    node = founder()
    tell(node, 2, Alive(card_bytes(2)))
    data = from_host(2, READ, READ)
    reply, effects = node.handle_request(NOW, address(2), data)
    assert decode_packet(reply).messages == (Taken(),)
    answers = [
        m for e in effects if isinstance(e, SendDatagram) for m in decode_packet(e.data).messages
    ]
    assert [m.tag for m in answers if isinstance(m, Held)] == [READ.tag] * 2


def test_parcel_of_a_stranger_is_not_taken() -> None:
    node = founder()
    assert ask(node, 9, READ) == (Taken(), [])
    assert node.counters["dropped_stranger"] == 1


def test_late_reply_of_an_exchange_is_taken_once() -> None:
    node = Node(config(mesh_id=NO_MESH, seeds=("there:1",)), seed=1)
    assert [type(effect) for effect in node.start(NOW)] == [Commit, Resolve]
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
    assert node.view(NOW).node["registers"]["voters"] == ["host-1"], "it has founded the mesh"
    effects = submit(node)
    assert [e.argv for e in effects if isinstance(e, StartProcess)] == [("true",)]


def test_vitals_in_an_ack_reach_the_view() -> None:
    node = started()
    tell(node, 2, Alive(card_bytes(2, meta=Metadata(slots=4))))
    tell(node, 2, Ack(9, NodeId(0), 1, Vitals(1, 30, 20)))
    member = next(m for m in node.view(NOW).members if m["name"] == "host-2")
    assert (member["used"], member["load"]) == (3, 0.3)


def test_own_vitals_say_how_busy_this_node_is() -> None:
    node = founder()
    submit(node)
    node.handle_command(NOW, SetLoad(55))
    reply, _ = ask(node, 2, Ping(1, low32(node_id(1)), 0))
    assert isinstance(reply, Ack)
    assert reply.vitals == Vitals(1, 55, 55), (
        "where the use is not known, it counts as busy as its load average"
    )


def test_load_average_is_shown_and_the_use_of_the_processors_is_what_contests_compare() -> None:
    """An idle host with a load average of 2 was 0.61 fit by its acks, and found itself 0.82."""
    teller, hearer = founder(), started()
    teller.handle_command(NOW, SetLoad(200, 5))
    reply, _ = ask(teller, 2, Ping(1, low32(node_id(1)), 0))
    assert isinstance(reply, Ack)
    assert reply.vitals == Vitals(2, 200, 5)
    tell(hearer, 2, Alive(card_bytes(2)))
    tell(hearer, 2, Ack(9, NodeId(0), 1, reply.vitals))
    known, shown = hearer._live.get(node_id(2)), hearer.view(NOW).members
    assert known is not None
    assert known.busy_pct == 5 == teller._work._around.busy_pct()
    assert next(m["load"] for m in shown if m["name"] == "host-2") == 2.0
    assert teller.view(NOW).members[0]["load"] == 2.0


def test_the_lag_of_the_loop_is_known_to_the_tasks() -> None:
    node = started()
    node.handle_command(NOW, SetLoad(55, lag_ms=12))
    assert node._work._around.lag_ms() == 12


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


def test_vitals_that_came_in_over_tcp_reach_placement_too() -> None:
    node = started()
    tell(node, 2, Alive(card_bytes(2)))
    ack = Ack(1, NodeId(0), 1, Vitals(0, 90, 80))
    node._swim._prober.on_ack(NOW, node_id(2), ack)
    node.handle_timeout(NOW)
    live = node._live.get(node_id(2))
    assert live is not None
    assert (live.free_slots, live.busy_pct) == (0, 80)


def test_parcel_that_finds_no_room_is_lost_and_counted_and_harms_nothing() -> None:
    node = founder(meta=Metadata(slots=0))
    tell(node, 2, Alive(card_bytes(2)))
    node._exchanges = Exchanges(work_max=2)
    news = tuple(New(Spec(task_id=str(n), argv=("x" * 2000,))) for n in range(10))
    carry_out(node, node.handle_command(NOW, SubmitMany(1, news)))
    reads = [Read(task_key(str(n)), 1, n) for n in range(10)]
    effects = node.handle_request(NOW, address(2), from_host(2, *reads))[1]
    parcels = [effect for effect in effects if isinstance(effect, StartExchange)]
    assert len(parcels) == 1, "together on a stream, for they are long"
    assert len(decode_packet(parcels[0].data, FRAME_BYTES_MAX).messages) == 10
    for _ in range(2):
        effects += node.handle_request(NOW, address(2), from_host(2, *reads))[1]
    assert len([effect for effect in effects if isinstance(effect, StartExchange)]) == 2
    assert node.view(NOW).node["counters"]["refused_exchanges"] == 1
    node.handle_exchange(NOW, parcels[0].exchange_id, TransportError("timed out"))
    _, effects = node.handle_request(NOW, address(2), from_host(2, *reads))
    assert any(isinstance(effect, StartExchange) for effect in effects)
    node.check_invariants()


def test_outcome_of_a_parcel_says_nothing() -> None:
    node = founder(meta=Metadata(slots=0))
    tell(node, 2, Alive(card_bytes(2)))
    for outcome in (from_host(2, Taken()), TransportError("timed out"), b"garbage"):
        (parcel,) = node._effects(NOW, [Ask(address(2), Parcel((b"x",)), None, 1.0)])
        assert isinstance(parcel, StartExchange)
        assert node.handle_exchange(NOW, parcel.exchange_id, outcome) == []


def test_message_to_a_member_whose_address_nobody_knows_is_counted() -> None:
    node = founder()
    tell(node, 3, Alive(card_bytes(3)))
    tell(node, 3, Roster(2, (node_id(1), node_id(7), node_id(8))))
    carry_out(node, node.handle_timeout(NOW))
    assert node.view(NOW).node["counters"]["unaddressed"] > 0
