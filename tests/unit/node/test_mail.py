"""What a packet is taken for: by its mesh, its sender, the way that it came; and what is counted."""

from __future__ import annotations

import pytest

from mesh.core.ballot import Ballot
from mesh.core.ids import NO_MESH, MeshId
from mesh.core.requests import Ask
from mesh.errors import DecodeError, ForeignMeshError, TransportError
from mesh.membership.identity import Identity
from mesh.node.delivery import Parcel
from mesh.node.mail import Mail
from mesh.wire.packet import MESSAGES_MAX, decode_packet, encode_message
from mesh.wire.parcel_messages import Taken
from mesh.wire.register_messages import Prepare, Read
from mesh.wire.swim_messages import Alive, Nack, Ping, Refused, SyncRoot, SyncSame
from tests.unit.membership.pump import address, card, card_bytes, node_id
from tests.unit.node.talk import MESH, from_host

READ = Read(b"task/t", 1, 5)
PREPARE = Prepare(b"task/t", Ballot(0, 1, 1, node_id(2)), 1)
ASKED = Ask(address(2), SyncRoot(1), ("sync", node_id(2)), 1.0)


def mail(mesh_id: MeshId = MESH) -> Mail:
    return Mail(Identity(card(1), mesh_id))


def test_datagram_is_taken_with_all_that_may_travel_so_and_the_rest_is_counted() -> None:
    at = mail()
    packet = at.open_datagram(from_host(2, Alive(card_bytes(3)), SyncRoot(1), READ, Taken()))
    assert packet is not None
    assert packet.messages == (Alive(card_bytes(3)), READ)
    assert at.counters == {"dropped_misplaced": 2}


def test_datagram_of_nothing_that_may_travel_so_is_none() -> None:
    at = mail()
    assert at.open_datagram(from_host(2, SyncRoot(1), Taken())) is None
    assert at.counters["dropped_misplaced"] == 2


@pytest.mark.parametrize("mesh_id", [NO_MESH, MESH, MeshId(5)])
def test_node_of_no_mesh_takes_no_datagram(mesh_id: MeshId) -> None:
    at = mail(NO_MESH)
    assert at.open_datagram(from_host(2, READ, mesh_id=mesh_id)) is None
    assert at.counters == {"dropped_foreign_mesh": 1}


def test_request_is_one_message_or_a_parcel_of_work() -> None:
    at = mail()
    for messages in ((SyncRoot(1),), (READ,), (READ, PREPARE), (READ,) * MESSAGES_MAX):
        packet = at.open_request(from_host(2, *messages))
        assert packet is not None
        assert not isinstance(packet, Refused)
        assert packet.messages == messages
    assert at.counters == {}


@pytest.mark.parametrize(
    "messages",
    [
        (SyncRoot(1), SyncRoot(2)),
        (SyncRoot(1), READ),
        (READ, SyncRoot(1)),
        (READ, Nack(1)),
        (READ, Taken()),
    ],
)
def test_request_of_several_messages_that_are_not_all_of_work_is_garbage(
    messages: tuple[object, ...],
) -> None:
    at = mail()
    assert at.open_request(from_host(2, *messages)) is None
    assert at.counters == {"dropped_garbage": 1}


@pytest.mark.parametrize(("own", "theirs"), [(MESH, MeshId(5)), (MESH, NO_MESH), (NO_MESH, MESH)])
def test_parcel_of_another_mesh_or_of_none_is_refused_in_words(own: MeshId, theirs: MeshId) -> None:
    at = mail(own)
    refused = at.open_request(from_host(2, READ, PREPARE, mesh_id=theirs))
    assert isinstance(refused, Refused)
    assert refused.code == "foreign_mesh"


def test_stranger_may_ping_a_node_of_a_mesh() -> None:
    packet = mail().open_request(from_host(9, Ping(1, 2, 0), mesh_id=NO_MESH))
    assert packet is not None
    assert not isinstance(packet, Refused)


def test_reply_is_one_message_of_this_mesh() -> None:
    at = mail()
    packet = at.open_reply(ASKED, from_host(2, SyncSame()))
    assert not isinstance(packet, Exception)
    assert packet.messages == (SyncSame(),)
    assert isinstance(at.open_reply(ASKED, from_host(2, SyncSame(), SyncSame())), DecodeError)
    assert isinstance(at.open_reply(ASKED, b"garbage"), DecodeError)
    foreign = at.open_reply(ASKED, from_host(2, SyncSame(), mesh_id=MeshId(5)))
    assert isinstance(foreign, ForeignMeshError)
    assert at.counters == {"dropped_garbage": 2, "dropped_foreign_mesh": 1}
    lost = TransportError("timed out")
    assert at.open_reply(ASKED, lost) is lost


def test_what_is_closed_is_opened_at_the_other_end() -> None:
    at = mail()
    for message, messages in (
        (READ, (READ,)),
        (Parcel((encode_message(READ), encode_message(PREPARE))), (READ, PREPARE)),
    ):
        packet = decode_packet(at.close(message))
        assert (packet.mesh_id, packet.sender, packet.messages) == (MESH, node_id(1), messages)
    packet = decode_packet(at.close_datagram([encode_message(READ)]))
    assert packet.messages == (READ,)
