"""Whatever bytes come in, decoding gives a value or a DecodeError, quickly and in little memory."""

from __future__ import annotations

import contextlib
import timeit
import tracemalloc
from collections.abc import Callable

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mesh.core.ids import MeshId, NodeId
from mesh.errors import DecodeError
from mesh.wire.frames import FrameReader, split_exchange
from mesh.wire.packet import (
    DATAGRAM_BYTES_MAX,
    FRAME_BYTES_MAX,
    HEADER,
    MAGIC,
    VERSION,
    decode_packet,
    encode_message,
    encode_packet,
)
from mesh.wire.records import CARD_BYTES_MAX, Card, Vitals, decode_card, encode_card
from mesh.wire.swim_messages import Ack, Ping
from tests.unit.wire.strategies import cards, messages

VALID_HEADER = HEADER.pack(MAGIC, VERSION, 1, 2)

# Each begins as msgpack does and means harm: depth, announced lengths, types, text, repeats.
HOSTILE = {
    "nested lists": b"\x91" * 900 + b"\xc0",
    "nested lists behind a code": b"\x92\x01" + b"\x91" * 900 + b"\xc0",
    "lists nested without end": b"\x91" * 5000,
    "lists that announce much": (b"\xdc" + (1300).to_bytes(2, "big")) * 460,
    "the longest list": b"\xdd\xff\xff\xff\xff",
    "the longest list behind a code": b"\x92\x01\xdd\xff\xff\xff\xff",
    "the longest map": b"\xdf\xff\xff\xff\xff",
    "the longest text": b"\xdb\xff\xff\xff\xff",
    "the longest bytes": b"\xc6\xff\xff\xff\xff",
    "the longest extension": b"\xc9\xff\xff\xff\xff\x05",
    "an extension": b"\x92\x01" + msgpack.packb(msgpack.ExtType(5, b"data")),
    "a timestamp": msgpack.packb([1, msgpack.Timestamp(2**33, 5), 1]),
    "a timestamp of too many nanoseconds": b"\xd7\xff" + b"\xff" * 8,
    "a timestamp of 96 bits": b"\xc7\x0c\xff" + b"\xff" * 12,
    "no UTF-8": b"\x93\x0c\xa2\xff\xfe\xa0",
    "half a surrogate": b"\x93\x0c\xa3\xed\xa0\x80\xa0",
    "a map with a list as key": b"\x81\x91\x01\x02",
    "a key twice": b"\x82\xa1a\x01\xa1a\x02",
    "not a number": b"\x93\x01\xcb\x7f\xf8\0\0\0\0\0\0\x01",
    "a byte that msgpack never uses": b"\xc1",
    "many short lists": b"\x9f" * 900,
}


def total(decode: Callable[..., object], *args: object) -> None:
    """Decode; a DecodeError is as good as a value, anything else is a fault of ours."""
    with contextlib.suppress(DecodeError):
        decode(*args)


@given(data=st.binary(max_size=200))
def test_any_bytes_give_a_packet_or_a_decode_error(data: bytes) -> None:
    total(decode_packet, data)


@given(body=st.binary(max_size=200))
def test_any_bytes_behind_a_valid_header_give_a_packet_or_a_decode_error(body: bytes) -> None:
    total(decode_packet, VALID_HEADER + body)


json_like = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.binary(), inner),
    max_leaves=12,
)


@given(code=st.integers(0, 45), parts=st.lists(json_like, max_size=7))
@example(code=1, parts=[1, 2])
def test_any_values_behind_a_code_give_a_packet_or_a_decode_error(
    code: int, parts: list[object]
) -> None:
    body = msgpack.packb([code, *parts], unicode_errors="surrogatepass")
    total(decode_packet, VALID_HEADER + body, FRAME_BYTES_MAX)


@given(
    message=messages,
    changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.none() | st.integers(0, 10**6),
)
def test_a_damaged_packet_gives_a_packet_or_a_decode_error(
    message: object, changes: list[tuple[int, int]], cut: int | None
) -> None:
    data = bytearray(encode_packet(MeshId(1), NodeId(2), [encode_message(message)]))
    for place, value in changes:
        data[HEADER.size + place % (len(data) - HEADER.size)] = value
    damaged = bytes(data if cut is None else data[: cut % len(data)])
    total(decode_packet, damaged, FRAME_BYTES_MAX)


@given(message=messages)
def test_every_truncated_packet_is_refused(message: object) -> None:
    data = encode_packet(MeshId(1), NodeId(2), [encode_message(message)])
    for size in range(min(len(data), 300)):
        with pytest.raises(DecodeError):
            decode_packet(data[:size], FRAME_BYTES_MAX)


@given(data=st.binary(max_size=CARD_BYTES_MAX + 10))
def test_any_bytes_give_a_card_or_a_decode_error(data: bytes) -> None:
    total(decode_card, data)


@given(card=cards, place=st.integers(0, 10**6), value=st.integers(0, 255))
def test_a_damaged_card_is_refused_or_another_card_in_its_one_spelling(
    card: Card, place: int, value: int
) -> None:
    data = bytearray(encode_card(card))
    data[place % len(data)] = value
    with contextlib.suppress(DecodeError):
        assert encode_card(decode_card(bytes(data))) == data


@given(pieces=st.lists(st.binary(max_size=30)))
def test_any_stream_gives_frames_or_a_decode_error(pieces: list[bytes]) -> None:
    reader = FrameReader(64)
    with contextlib.suppress(DecodeError):
        for piece in pieces:
            for body in reader.feed(piece):
                total(split_exchange, body)


hostile = pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())


@hostile
@pytest.mark.parametrize("bytes_max", [DATAGRAM_BYTES_MAX, FRAME_BYTES_MAX])
def test_hostile_bytes_are_refused_in_little_memory(body: bytes, bytes_max: int) -> None:
    data = (VALID_HEADER + body)[:bytes_max]
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            decode_packet(data, bytes_max)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < (500_000 if bytes_max == DATAGRAM_BYTES_MAX else 10_000_000)


@hostile
def test_hostile_bytes_are_no_card(body: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_card(body)


def test_a_refused_packet_leaves_nothing_behind() -> None:
    def refuse_all() -> None:
        for body in HOSTILE.values():
            total(decode_packet, VALID_HEADER + body, FRAME_BYTES_MAX)

    refuse_all()
    tracemalloc.start()
    try:
        refuse_all()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            refuse_all()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 100_000  # one kilobyte for each refusal would be 420,000


def best_us(work: Callable[[], object]) -> float:
    """The best of many short runs: other programs on the machine only ever add time."""
    return min(timeit.repeat(work, number=200, repeat=30)) / 200 * 1e6


@pytest.mark.parametrize(
    "message",
    [
        Ping(2**32 - 1, 2**31, 2**16 - 1),
        Ack(2**32 - 1, NodeId(2**63), 1_700_000_000, Vitals(4, 100, 60)),
    ],
    ids=["ping", "ack"],
)
def test_a_probe_costs_microseconds_to_encode_and_decode(message: object) -> None:
    def encode() -> bytes:
        return encode_packet(MeshId(1), NodeId(2), [encode_message(message)])

    data = encode()
    assert best_us(encode) < 10
    assert best_us(lambda: decode_packet(data)) < 10
