"""A card has one spelling, fits a datagram, and is shared by all who decode the same bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgpack
import pytest
from hypothesis import given

from mesh.core.address import Address
from mesh.core.ids import NodeId
from mesh.errors import ConfigError, DecodeError
from mesh.wire.records import (
    CARD_BYTES_MAX,
    LABELS_MAX,
    Card,
    Cause,
    Metadata,
    State,
    decode_card,
    encode_card,
)
from tests.unit.wire.strategies import cards

CARD = Card(
    node_id=NodeId(7),
    boot=1,
    incarnation=0,
    name="alpha",
    address=Address("127.0.0.1", 7946),
    meta=Metadata(labels=(("zone", "a"),), offers=(("gpu", 2),)),
)


@given(card=cards)
def test_a_card_comes_back_as_it_was_sent(card: Card) -> None:
    assert decode_card(encode_card(card)) == card


def test_equal_cards_have_equal_bytes_and_are_decoded_once() -> None:
    twin = replace(CARD, meta=Metadata(labels=(("zone", "a"),), offers=(("gpu", 2),)))
    assert encode_card(CARD) == encode_card(twin)
    assert decode_card(encode_card(CARD)) is decode_card(bytes(bytearray(encode_card(CARD))))


def test_a_card_in_another_spelling_is_refused() -> None:
    data = encode_card(CARD)
    assert data[:2] == b"\x96\x07"
    longer = data[:1] + b"\xcc\x07" + data[2:]  # the same id in two bytes instead of one
    assert msgpack.unpackb(longer) == msgpack.unpackb(data)
    with pytest.raises(DecodeError, match="in its one spelling"):
        decode_card(longer)


def test_a_mapped_address_is_declared_in_the_one_spelling() -> None:
    mapped = replace(CARD, address=Address("::ffff:10.0.0.1", 1))
    assert decode_card(encode_card(mapped)).address == Address("10.0.0.1", 1)


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"name": "x" * 65},
        {"name": "two\nlines"},
        {"boot": 2**48},
        {"address": Address("127.0.0.1", 0)},
        {"meta": Metadata(labels=(("b", ""), ("a", "")))},
        {"meta": Metadata(labels=tuple((f"{n:02}", "") for n in range(LABELS_MAX + 1)))},
        {"meta": Metadata(labels=(("a", "\x1b[2J"),))},
        {"meta": Metadata(slots=-1)},
        {"meta": Metadata(pool="")},
    ],
)
def test_a_card_that_nobody_would_accept_is_not_encoded(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        encode_card(replace(CARD, **change))


def test_a_card_too_large_for_a_datagram_is_not_encoded() -> None:
    labels = tuple((f"{n:064}", "x" * 64) for n in range(20))
    with pytest.raises(ConfigError, match=f"may take {CARD_BYTES_MAX} bytes, found"):
        encode_card(replace(CARD, meta=Metadata(labels=labels)))


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x96", b"\x90", b"\x80", bytes(2000)])
def test_what_is_no_card_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match=r"card|list of 6 fields"):
        decode_card(data)


def test_states_and_causes_are_ordered_by_strength_and_read_as_words() -> None:
    words = ["alive", "suspect", "dead", "left", "forgotten"]
    assert [state.word for state in sorted(State)] == words
    assert [cause.word for cause in sorted(Cause)] == ["", "silent", "crashed", "ended"]
