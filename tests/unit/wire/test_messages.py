"""Every message survives the wire, keeps its code, and is refused when a part is out of range."""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.core.address import Address
from mesh.core.ids import MeshId, NodeId
from mesh.errors import DecodeError, LocalProtocolError
from mesh.wire import records as r
from mesh.wire import schema as s
from mesh.wire import swim_messages as swim
from mesh.wire import work_messages as work
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
from tests.unit.wire.strategies import CODES, messages_of

every_message = pytest.mark.parametrize("kind", CODES, ids=lambda kind: str(kind.__name__))


def packet_of(*raw: object) -> bytes:
    """A packet with a valid header round messages that nobody checked."""
    return HEADER.pack(MAGIC, VERSION, 1, 2) + b"".join(msgpack.packb(item) for item in raw)


@every_message
@given(data=st.data())
def test_every_message_comes_back_as_it_was_sent(kind: type, data: st.DataObject) -> None:
    sent = data.draw(messages_of(kind))
    packet = encode_packet(MeshId(1), NodeId(2), [encode_message(sent)])
    assert decode_packet(packet, FRAME_BYTES_MAX).messages == (sent,)


@every_message
def test_a_message_is_a_frozen_value_with_a_docstring(kind: type) -> None:
    assert vars(kind)["__dataclass_params__"].frozen
    assert kind.__doc__


@every_message
@settings(max_examples=25)
@given(data=st.data())
def test_one_part_too_few_or_too_many_is_refused(kind: type, data: st.DataObject) -> None:
    raw = msgpack.unpackb(encode_message(data.draw(messages_of(kind))))
    with pytest.raises(DecodeError, match="expected a list of"):
        decode_packet(packet_of([*raw, 0]), FRAME_BYTES_MAX)
    if len(raw) > 1:
        with pytest.raises(DecodeError, match="expected a list of"):
            decode_packet(packet_of(raw[:-1]), FRAME_BYTES_MAX)


@every_message
@settings(max_examples=25)
@given(data=st.data())
def test_a_part_of_a_foreign_type_is_refused(kind: type, data: st.DataObject) -> None:
    raw = msgpack.unpackb(encode_message(data.draw(messages_of(kind))))
    for place in range(1, len(raw)):
        wrong = [*raw]
        wrong[place] = 1.5
        with pytest.raises(DecodeError, match=r"expected .*, found 1\.5"):
            decode_packet(packet_of(wrong), FRAME_BYTES_MAX)


def test_both_tables_give_each_message_a_code_of_its_own() -> None:
    assert not swim.SCHEMAS.keys() & work.SCHEMAS.keys()
    assert len(CODES) == len(swim.SCHEMAS) + len(work.SCHEMAS)


@pytest.mark.parametrize("module", [swim, work], ids=lambda module: str(module.__name__))
def test_every_message_class_of_a_file_has_a_code(module: ModuleType) -> None:
    parts_of_messages = {work.Spec}
    for value in vars(module).values():
        if dataclasses.is_dataclass(value) and vars(value)["__module__"] == module.__name__:
            assert value in CODES or value in parts_of_messages


def test_a_value_without_a_code_is_our_own_bug() -> None:
    with pytest.raises(LocalProtocolError, match="Vitals has no code"):
        encode_message(r.Vitals(1, 2, 3))


def test_the_messages_of_an_idle_member_are_small() -> None:
    ping = swim.Ping(2**32 - 1, 2**32 - 1, 2**16 - 1)
    ack = swim.Ack(2**32 - 1, NodeId(0), 2**32 - 1, r.Vitals(127, 255, 100))
    passed_on = swim.Ack(2**32 - 1, NodeId(2**64 - 1), 2**32 - 1, r.Vitals(65535, 255, 100))
    assert len(encode_message(ping)) <= 15
    assert len(encode_message(ack)) <= 17
    assert len(encode_message(passed_on)) <= 27


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ([1, 2**32, 9, 0], "32 bits"),
        ([1, -1, 9, 0], "32 bits"),
        ([1, True, 9, 0], "32 bits"),
        ([2, 0, 0, [b"\x7f\0\0\1", 1]], "an id other than 0"),
        ([1, 0, 2**32, 0], "32 bits"),
        ([1, 0, 9, 2**16], "16 bits"),
        ([3, 0, 0, 2**32, 1, 1, 0], "32 bits"),
        ([2, 0, 9, [b"\x7f\0\0\1", 0]], "a port from 1"),
        ([2, 0, 9, [b"\x7f\0\0\1", 65536]], "a port from 1"),
        ([2, 0, 9, [b"\x7f\0\0\1", True]], "a port from 1"),
        ([2, 0, 9, [b"\x7f\0\0", 1]], "4 or 16 bytes of address"),
        ([2, 0, 9, ["127.0.0.1", 1]], "an address"),
        ([2, 0, 9, [b"\x7f\0\0\1"]], "an address"),
        ([3, 0, 9, 1, 1, 256, 0], "8 bits"),
        ([4, bytes(r.CARD_BYTES_MAX + 1)], "at most 1024 bytes"),
        ([4, "text"], "at most 1024 bytes"),
        ([6, 9, 1, 0, 4, 9], "a Cause"),
        ([6, 9, 1, 0, True, 9], "a Cause"),
        ([7, 9, 2**48, 0], "48 bits"),
        ([12, "x" * 33, "", None], "0 to 32 characters"),
        ([15, bytes(8 * swim.SYNC_BUCKETS + 1)], "at most 512 bytes"),
        ([38, 2**16], "16 bits"),
    ],
)
def test_a_part_out_of_range_is_refused_by_its_rule(message: list[Any], expected: str) -> None:
    with pytest.raises(DecodeError, match=f"expected .*{expected}"):
        decode_packet(packet_of(message), FRAME_BYTES_MAX)


def test_lists_longer_than_their_limit_are_refused() -> None:
    card = r.encode_card(
        r.Card(
            node_id=NodeId(1),
            boot=1,
            incarnation=0,
            name="n",
            address=Address("127.0.0.1", 1),
            meta=r.Metadata(),
        )
    )
    full = decode_packet(packet_of([11, [card] * swim.MET_MAX]), FRAME_BYTES_MAX)
    assert len(full.messages[0].met) == swim.MET_MAX
    with pytest.raises(DecodeError, match="at most 256 items, found a list of 257"):
        decode_packet(packet_of([11, [card] * (swim.MET_MAX + 1)]), FRAME_BYTES_MAX)


def test_the_largest_lists_that_messages_may_hold_fit_the_reader() -> None:
    for items_max in (swim.MEMBERS_MAX, work.ARGUMENTS_MAX):
        raw = packet_of([0, [0] * items_max])
        with pytest.raises(DecodeError, match="a message code"):
            decode_packet(raw, FRAME_BYTES_MAX)


def test_the_lists_of_a_datagram_are_short() -> None:
    with pytest.raises(DecodeError, match="max_array_len"):
        decode_packet(packet_of([11, [b""] * 65]), DATAGRAM_BYTES_MAX)


FIELDS = {
    "uint": s.uint(8),
    "flag": s.flag,
    "text": s.text(3),
    "printable": s.printable(3),
    "blob": s.blob(3),
    "many": s.many(s.uint(8), 3),
    "pairs": s.pairs(s.text(3), s.uint(8), 3),
    "address": s.address,
}


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS.keys())
@pytest.mark.parametrize("raw", [None, 1.5, {}, object(), -1, "long", b"long", [0, 0, 0, 0, 0]])
def test_a_field_refuses_everything_else_with_a_decode_error(field: s.Field, raw: object) -> None:
    with pytest.raises(DecodeError, match=r"expected .*, found "):
        field.unpack(raw)


def test_an_optional_field_takes_nothing_or_its_inner_value() -> None:
    field = s.optional(s.address)
    here = Address("127.0.0.1", 1)
    assert field.unpack(field.pack(None)) is None
    assert field.unpack(field.pack(here)) == here
    with pytest.raises(DecodeError):
        field.unpack(0)


@pytest.mark.parametrize("value", [True, False])
def test_a_flag_is_true_or_false(value: bool) -> None:
    assert s.flag.unpack(s.flag.pack(value)) is value


@pytest.mark.parametrize(
    "raw", [[["b", 1], ["a", 1]], [["a", 1], ["a", 2]], [["a"]], [["a", 1, 1]], [["a", 1]] * 4]
)
def test_pairs_are_sorted_unique_and_bounded(raw: object) -> None:
    with pytest.raises(DecodeError):
        FIELDS["pairs"].unpack(raw)


@pytest.mark.parametrize("raw", ["a\nb", "\x1b[2J", "a\x00", "\u202e", "\u2028", "\x7f"])
def test_a_text_that_people_see_cannot_steer_their_terminal(raw: str) -> None:
    with pytest.raises(DecodeError, match="printable"):
        s.printable(10).unpack(raw)
    assert s.printable(10).unpack("Zoë 雪 #1") == "Zoë 雪 #1"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ("a" * 40, f"the text '{'a' * 40}'"),
        ("a" * 41, "a text of 41"),
        (b"12", "2 bytes"),
        ([[[]]], "a list of 1"),
        (None, "None"),
        (-1, "-1"),
        ({}, "a value of type dict"),
    ],
)
def test_what_was_found_is_described_in_a_few_words(found: object, words: str) -> None:
    assert s.describe(found) == words
