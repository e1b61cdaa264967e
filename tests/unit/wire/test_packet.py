"""The header, the limits, and which error says what."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.core.ids import MeshId, NodeId
from mesh.errors import DecodeError, LocalProtocolError, RemoteProtocolError, VersionError
from mesh.wire.packet import (
    DATAGRAM_BYTES_MAX,
    FRAME_BYTES_MAX,
    HEADER,
    MAGIC,
    MESSAGES_MAX,
    PACKET_BYTES_MAX,
    VERSION,
    VERSIONS,
    Packet,
    decode_packet,
    encode_datagram,
    encode_message,
    encode_packet,
)
from mesh.wire.records import CARD_BYTES_MAX, Cause, Vitals
from mesh.wire.swim_messages import Ack, Alive, Dead, Ping, Refused, Suspect, SyncSame
from tests.unit.wire.strategies import messages

PING = encode_message(Ping(1, 2, 0))
SAME = encode_message(SyncSame())


@given(
    mesh_id=st.integers(0, 2**64 - 1),
    sender=st.integers(1, 2**64 - 1),
    sent=st.lists(messages, min_size=1, max_size=6),
)
def test_a_packet_comes_back_as_it_was_sent(mesh_id: int, sender: int, sent: list[object]) -> None:
    data = encode_packet(MeshId(mesh_id), NodeId(sender), [encode_message(m) for m in sent])
    got = decode_packet(data, FRAME_BYTES_MAX)
    assert got == Packet(MeshId(mesh_id), NodeId(sender), tuple(sent))


def test_the_header_takes_eighteen_bytes() -> None:
    assert HEADER.size == 18
    assert encode_packet(MeshId(1), NodeId(2), []) == b"M\x02" + bytes(7) + b"\1" + bytes(7) + b"\2"


def test_the_version_spoken_lies_in_the_range_understood() -> None:
    assert VERSIONS[0] <= VERSION <= VERSIONS[1]


@pytest.mark.parametrize("theirs", [0, 1, VERSIONS[1] + 1, 255])
def test_another_version_is_refused_with_both_versions(theirs: int) -> None:
    with pytest.raises(VersionError) as caught:
        decode_packet(HEADER.pack(MAGIC, theirs, 1, 2) + b"whatever a later version says")
    assert (caught.value.theirs, caught.value.ours) == (theirs, VERSIONS)
    assert f"version {theirs} is not spoken here" in str(caught.value)
    assert f"speaks {VERSIONS[0]} to {VERSIONS[1]}" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "a header of 18 bytes is expected, found 0"),
        (HEADER.pack(MAGIC, VERSION, 1, 2)[:-1], "a header of 18 bytes is expected, found 17"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n", "begins with byte 0x4d, found 0x47: not a mesh"),
        (HEADER.pack(MAGIC, VERSION, 1, 0) + PING, "a sender's id other than 0"),
        (HEADER.pack(MAGIC, VERSION, 1, 2), "at least one message is expected"),
        (HEADER.pack(MAGIC, VERSION, 1, 2) + PING[:-1], "no msgpack"),
        (HEADER.pack(MAGIC, VERSION, 1, 2) + PING + b"\xc1", "no msgpack"),
        (HEADER.pack(MAGIC, VERSION, 1, 2) + b"\x01", "a message is a list"),
        (HEADER.pack(MAGIC, VERSION, 1, 2) + b"\x90", "found a list of 0"),
        (HEADER.pack(MAGIC, VERSION, 1, 2) + b"\x91\x00", "a message code of version 2 .* found 0"),
        (HEADER.pack(MAGIC, VERSION, 1, 2) + b"\x91\xc3", "a message code .* found True"),
        (HEADER.pack(MAGIC, VERSION, 1, 2) + b"\x91\xa1x", "a message code .* found the text 'x'"),
    ],
)
def test_each_fault_has_a_text_of_its_own(data: bytes, text: str) -> None:
    with pytest.raises(DecodeError, match=text):
        decode_packet(data)


def test_one_bad_message_spoils_its_packet() -> None:
    data = encode_packet(MeshId(1), NodeId(2), [PING, b"\x91\x00", PING])
    with pytest.raises(DecodeError, match="a message code"):
        decode_packet(data)


def test_a_datagram_may_be_exactly_as_long_as_the_limit() -> None:
    text = "x" * 500
    refusals = [encode_message(Refused("full", text)) for _ in range(2)]
    rest = DATAGRAM_BYTES_MAX - HEADER.size - sum(map(len, refusals))
    last = encode_message(Refused("full", "x" * (rest - 11)))
    data = encode_packet(MeshId(1), NodeId(2), [*refusals, last])
    assert len(data) == DATAGRAM_BYTES_MAX
    assert len(decode_packet(data).messages) == 3
    with pytest.raises(DecodeError, match="at most 1400 bytes are expected, found 1401"):
        decode_packet(data + b"x")


def test_a_packet_for_a_datagram_keeps_room_for_a_seal() -> None:
    assert PACKET_BYTES_MAX == DATAGRAM_BYTES_MAX - 48
    room = PACKET_BYTES_MAX - HEADER.size
    assert len(encode_datagram(MeshId(1), NodeId(2), [bytes(room)])) == PACKET_BYTES_MAX
    with pytest.raises(LocalProtocolError, match=r"at most 1352 bytes fits .* found 1353"):
        encode_datagram(MeshId(1), NodeId(2), [bytes(room + 1)])


def test_the_largest_card_fits_beside_a_probe_and_what_it_must_carry() -> None:
    most = 2**32 - 1
    card = encode_message(Alive(bytes(CARD_BYTES_MAX)))
    beside = [
        Ack(most, NodeId(2**64 - 1), most, Vitals(2**16 - 1, 255, 100)),
        Suspect(NodeId(2**64 - 1), 2**48 - 1, most, NodeId(2**64 - 1)),
        Dead(NodeId(2**64 - 1), 2**48 - 1, most, Cause.ENDED, NodeId(2**64 - 1)),
    ]
    encode_datagram(MeshId(1), NodeId(2), [card, *map(encode_message, beside)])


def test_a_packet_holds_a_bounded_number_of_messages() -> None:
    data = encode_packet(MeshId(1), NodeId(2), [SAME] * MESSAGES_MAX)
    assert len(decode_packet(data, FRAME_BYTES_MAX).messages) == MESSAGES_MAX
    with pytest.raises(DecodeError, match="at most 256 messages"):
        decode_packet(data + SAME, FRAME_BYTES_MAX)


@pytest.mark.parametrize(
    "value",
    [{}, {1: 2}, msgpack.Timestamp(1, 2), msgpack.ExtType(5, b"x"), {"a": [1]}],
    ids=["empty map", "map", "timestamp", "extension", "nested map"],
)
def test_maps_and_extensions_have_no_place_on_the_wire(value: object) -> None:
    for raw in (value, [value], [1, value, 9], [1, 0, [value]]):
        with pytest.raises(DecodeError):
            decode_packet(HEADER.pack(MAGIC, VERSION, 1, 2) + msgpack.packb(raw))


def test_a_decode_error_is_a_peers_fault() -> None:
    assert issubclass(DecodeError, RemoteProtocolError)
