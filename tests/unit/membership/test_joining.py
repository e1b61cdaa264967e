"""Finding a mesh through seeds that may be silent, late, or themselves seeking."""

import pytest

from mesh.core.address import Address
from mesh.core.effects import Persist, Stop
from mesh.core.events import EventKind
from mesh.core.ids import NO_MESH, MeshId, NodeId
from mesh.core.requests import Ask
from mesh.errors import DecodeError, ForeignMeshError, TransportError, VersionError
from mesh.membership.joining import REPEAT_S
from mesh.wire.packet import Packet, decode_packet, encode_message, encode_packet
from mesh.wire.records import State
from mesh.wire.swim_messages import Ack, Join, Ping, Waiting, Welcome
from tests.unit.membership.pump import Host, Pump, address, are_equal, card_bytes, node_id


def seeks(host: Host) -> list[str]:
    return [event.detail for event in host.events if event.kind is EventKind.SEEK]


def test_node_without_seeds_founds_and_stores_the_mesh_id() -> None:
    pump = Pump()
    host = pump.add(1)
    assert host.swim.phase == "member"
    assert host.persisted == [{"mesh_id": host.swim.identity.mesh_id, "founder": 1}]
    assert [event.kind for event in host.events] == [EventKind.FOUND]


def test_node_with_seeds_founds_when_told_to() -> None:
    pump = Pump()
    assert pump.add(1, 9, found=True).swim.phase == "member"


def test_node_that_belongs_to_a_mesh_never_founds_another() -> None:
    pump = Pump()
    host = pump.add(1, found=True, mesh_id=MeshId(77))
    assert host.swim.identity.mesh_id == 77
    assert host.persisted == []
    assert EventKind.FOUND not in host.kinds()


def test_founder_that_restarts_with_seeds_asks_them() -> None:
    pump = Pump()
    first = pump.add(1)
    second = pump.add(2, 1, found=True, mesh_id=first.swim.identity.mesh_id)
    pump.run(1.0)
    assert are_equal([first, second])
    assert len(first.swim.table) == 2


def test_newcomer_stores_the_mesh_id_before_it_announces_itself() -> None:
    pump = Pump()
    founder = pump.add(1)
    host = pump.add(2, 1)
    pump.run(1.0)
    assert host.persisted == [{"mesh_id": founder.swim.identity.mesh_id}]
    assert host.kinds()[0] is EventKind.ENTER
    assert founder.kinds(host) == [EventKind.JOIN]
    assert are_equal([founder, host])


def test_newcomer_joins_as_soon_as_its_seed_is_up() -> None:
    pump = Pump()
    host = pump.add(2, 1)
    pump.run(20.0)
    assert host.swim.phase == "seeking"
    founder = pump.add(1)
    assert pump.run_until(lambda: len(founder.swim.table) == 2, 2 * pump.config.join_retry_s)


def test_one_seed_of_several_is_enough() -> None:
    pump = Pump()
    founder = pump.add(1)
    host = pump.add(2, 8, 1, 9)
    pump.run(1.0)
    assert are_equal([founder, host])


def test_while_no_seed_answers_it_is_said_rarely() -> None:
    pump = Pump()
    host = pump.add(2, 8, 9, 1)
    pump.run(3 * REPEAT_S)
    assert 1 <= len(seeks(host)) <= 5
    assert "connection refused" in seeks(host)[0]


def test_reasons_in_another_order_are_not_said_again() -> None:
    pump = Pump()
    pump.names = {str(address(n)): () for n in (7, 8, 9)}
    host = pump.add(2, 7, 8, 9)
    for order in ((7, 8, 9), (9, 8, 7), (8, 9, 7)):  # the answers of each round, by hand
        pump.run_until(lambda: bool(host.swim._entrance._joining._pending), 5.0)
        pump.flight.clear()
        for number in order:
            pump._resolved(host, str(address(number)), ())
    assert len(seeks(host)) == 1


def test_name_that_does_not_resolve_is_named_in_the_reason() -> None:
    pump = Pump()
    pump.names = {"nowhere:7946": ()}
    host = pump.add(2, "nowhere:7946")
    pump.run(1.0)
    assert "trying again: nowhere:7946 was not found" in seeks(host)[0]


def test_seeds_that_answer_garbage_stop_the_node() -> None:
    pump = Pump()
    pump.garbage = {address(8): b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"}
    host = pump.add(2, 8)
    pump.run(1.0)
    assert host.stop is not None
    assert host.stop.exit_code == 1
    assert "no seed is a mesh node" in host.stop.reason


@pytest.mark.parametrize("other", ["silent", "unresolved"])
def test_garbage_from_one_seed_stops_nothing_while_another_may_come_up(other: str) -> None:
    pump = Pump()
    pump.garbage = {address(8): b"HTTP/1.1 400 Bad Request\r\n"}
    pump.names = {"late:7946": ()} if other == "unresolved" else {"late:7946": (address(1),)}
    host = pump.add(2, 8, "late:7946")
    pump.run(3.0)
    assert host.stop is None
    pump.names["late:7946"] = (address(1),)
    founder = pump.add(1)
    pump.run(3.0)
    assert are_equal([founder, host])


def test_member_of_a_mesh_does_not_stop_because_a_seed_address_serves_something_else_now() -> None:
    pump = Pump()
    pump.garbage = {address(8): b"HTTP/1.1 400 Bad Request\r\n"}
    host = pump.add(2, 8, mesh_id=MeshId(5))
    pump.run(3.0)
    assert host.stop is None


def test_seed_that_is_this_node_itself_is_not_asked() -> None:
    pump = Pump()
    host = pump.add(2, 2)
    pump.run(5.0)
    assert host.asked == []
    assert seeks(host) == ["the only seed is this node itself; --found founds a mesh"]


def test_seed_that_turns_out_to_be_this_node_itself_is_said() -> None:
    pump = Pump()
    host = pump.add(2, 7)
    other = Host(host.swim, address(7))  # another way to the same process
    pump.hosts.append(other)
    pump.run(2.0)
    assert seeks(host)[0] == "the only seed is this node itself; --found founds a mesh"
    assert host.stop is None


def test_another_mesh_is_refused_with_both_ids() -> None:
    pump = Pump()
    pump.add(1)
    host = pump.add(2, 1, mesh_id=MeshId(5))
    pump.run(1.0)
    assert host.stop is not None
    assert host.stop.exit_code == 1


def test_foreign_and_version_errors_stop_with_what_was_found() -> None:
    for error in (VersionError(9, (1, 1)), ForeignMeshError(7, 8)):
        pump = Pump()
        host = pump.add(2, 1, mesh_id=MeshId(8))
        pump.cut = lambda _a, _b: True
        pump.run(0.01)
        outputs = host.swim.handle_reply(pump.now, host.asked[0].tag, error)
        stops = [o for o in outputs if isinstance(o, Stop)]
        assert [stop.exit_code for stop in stops] == [1]


def test_known_higher_boot_is_outranked_and_stored_before_it_is_announced() -> None:
    pump = Pump()
    first, second = pump.mesh(2, settle_s=1.0)
    pump.kill(second)
    back = pump.restart(second, boot=1, seeds=(1,))
    # The first session was boot 1 and is known: let the mesh know of a much later one.
    first.swim.table.apply_card(pump.now, card_bytes(2, boot=50))
    back.sent.clear()
    pump.run(1.0)
    assert {"boot": 51} in back.persisted
    assert back.swim.identity.card.boot == 51
    assert first.knows(back).boot == 51
    assert are_equal([first, back])


def test_fresh_node_outranks_a_known_boot_before_anything_is_sent() -> None:
    pump = Pump()
    founder = pump.add(1)
    founder.swim.table.apply_card(pump.now, card_bytes(2, boot=50))
    host = pump.add(2, 1)
    pump.run(1.0)
    assert host.persisted[0] == {"boot": 51}
    assert founder.knows(host).boot == 51
    assert all(card_bytes(2, boot=1) not in sent.data for sent in host.sent)


def test_absurd_known_boot_is_no_crash() -> None:
    host, ask = _asking()
    welcome = Welcome(2**48 - 1, ())
    host.swim.handle_reply(200.0, ask.tag, Packet(MeshId(7), node_id(1), (welcome,)))
    assert host.swim.identity.card.boot < 2**48


def test_welcome_without_a_mesh_is_not_believed() -> None:
    host, ask = _asking()
    host.swim.handle_reply(200.0, ask.tag, Packet(NO_MESH, node_id(1), (Welcome(0, ()),)))
    assert host.swim.phase == "seeking"
    assert host.swim.next_timeout() is not None


def test_welcome_in_answer_to_a_verification_is_not_believed() -> None:
    pump = Pump()
    pump.add(1)
    pump.add(3, 1, name="ada")
    pump.run(1.0)
    host = pump.add(4, 1, name="ada")
    pump.run_until(lambda: any(isinstance(ask.message, Ping) for ask in host.asked), 1.0)
    ask = next(ask for ask in host.asked if isinstance(ask.message, Ping))
    host.swim.handle_reply(pump.now, ask.tag, Packet(MeshId(7), node_id(3), (Welcome(9, ()),)))
    assert host.swim.phase == "seeking"


def test_reply_of_an_earlier_round_is_ignored() -> None:
    host, ask = _asking()
    host.swim.handle_reply(101.0, ask.tag, TransportError("timed out"))
    host.swim.handle_timeout(105.0)
    late = Packet(MeshId(7), node_id(1), (Welcome(0, ()),))
    assert host.swim.handle_reply(105.1, ask.tag, late) == []
    assert host.swim.phase == "seeking"


def test_resolution_that_never_answers_does_not_end_the_search() -> None:
    pump = Pump()
    host = pump.add(2, 1)
    pump.flight.clear()  # the answer is lost: against the contract, but not for ever
    founder = pump.add(1)
    pump.run(120.0)
    assert are_equal([founder, host])
    assert len(founder.swim.table) == 2


def test_node_known_to_a_mesh_is_found_by_the_others_while_its_seeds_are_down() -> None:
    pump = Pump()
    hosts = pump.mesh(4)
    pump.kill(hosts[3])
    pump.run(5.0)
    assert hosts[0].state_of(hosts[3]) is State.DEAD
    back = pump.restart(hosts[3], seeds=(90, 91))
    pump.run(15.0)
    assert are_equal([*hosts[:3], back])
    assert len(seeks(back)) <= 2  # alone, and no longer
    asked = len(back.asked)
    pump.run(5.0)
    joins = [ask for ask in back.asked[asked:] if isinstance(ask.message, Join)]
    assert joins == []


def test_member_that_asks_a_seeking_node_counts_as_nobody_who_founds() -> None:
    pump = Pump()
    second, third = pump.add(2, 3, 1, expect=3), pump.add(3, 2, expect=3)
    pump.run(2.0)
    member = pump.add(1, 2, mesh_id=MeshId(55))  # restarts: its data directory names a mesh
    pump.run(6.0)
    ids = {host.swim.identity.mesh_id for host in (member, second, third)}
    assert ids == {55}
    assert are_equal([member, second, third])


def test_waiting_with_broken_cards_does_not_get_past_the_wire() -> None:
    broken = encode_message(Waiting((b"\xff", b"", card_bytes(2))))
    with pytest.raises(DecodeError):
        decode_packet(encode_packet(NO_MESH, node_id(1), [broken]))


def test_reply_that_makes_no_sense_is_said_and_waited_out() -> None:
    host, ask = _asking()
    ack = Ack(1, NodeId(0), 1, host.swim.identity.vitals)
    outputs = host.swim.handle_reply(101.0, ask.tag, Packet(NO_MESH, node_id(1), (ack,)))
    assert not any(isinstance(o, Stop) for o in outputs)


def test_broken_join_raises_decode_error_and_changes_nothing() -> None:
    pump = Pump()
    host = pump.add(1)
    with pytest.raises(DecodeError):
        host.swim.handle_request(pump.now, node_id(2), Join(b"\x00", 0, 0, ()))
    assert len(host.swim.table) == 1


def test_leaving_node_lets_nobody_in() -> None:
    pump = Pump()
    hosts = pump.mesh(2)
    pump.leave(hosts[0])
    reply, _ = hosts[0].swim.handle_request(pump.now, node_id(9), Join(card_bytes(9), 0, 0, ()))
    assert reply is None


def _asking() -> tuple[Host, Ask]:
    pump = Pump()
    host = pump.add(2, 1)
    pump.run_until(lambda: bool(host.asked), 1.0)
    assert isinstance(host.asked[0].message, Join)
    assert host.asked[0].to == Address("10.0.0.2", 7946)
    assert not any(isinstance(value, Persist) for value in host.persisted)
    return host, host.asked[0]
