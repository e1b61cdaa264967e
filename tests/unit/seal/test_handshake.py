"""Two ends of a stream: same key, other key, no key, recorded, changed."""

from __future__ import annotations

import random

import pytest

from mesh.errors import DecodeError, SealError
from mesh.seal.handshake import (
    HELLO_BYTES,
    AskerHandshake,
    Opened,
    answer_hello,
)
from mesh.seal.key import Key
from mesh.seal.notices import Kind, in_words, kind_of, notice, notice_of
from mesh.seal.ring import KeyRing, ring_of

KEY, OTHER = Key(b"k" * 32), Key(b"o" * 32)
RNG = random.Random(1)


def shake(asker: KeyRing, answerer: KeyRing) -> tuple[Opened, Opened]:
    """Let two rings meet; return the asker's and the answerer's end."""
    handshake = AskerHandshake(asker, RNG.randbytes)
    hello = handshake.hello()
    for _ in range(8):
        assert len(hello) == HELLO_BYTES
        answer, theirs = answer_hello(answerer, RNG.randbytes, hello)
        mine = handshake.take(answer)
        if isinstance(mine, Opened):
            assert theirs is not None
            return mine, theirs
        hello = mine
    raise AssertionError("no key fitted")


def test_frames_pass_both_ways_in_order_and_ends_know_each_others_ring() -> None:
    a, b = ring_of([KEY]), ring_of([KEY, OTHER])
    mine, theirs = shake(a, b)
    for text in (b"", b"one", b"two" * 1000):
        assert theirs.channel.open(mine.channel.seal(text)) == text
        assert mine.channel.open(theirs.channel.seal(text)) == text
    assert (mine.their_digest, theirs.their_digest) == (b.digest, a.digest)


def test_frame_that_is_repeated_skipped_changed_or_turned_back_opens_nothing() -> None:
    for harm in (
        lambda one, two, mine: (one, one),
        lambda one, two, mine: (two,),
        lambda one, two, mine: (one[:-1],),
        lambda one, two, mine: (bytes([one[0] ^ 1]) + one[1:],),
    ):
        mine, theirs = shake(ring_of([KEY]), ring_of([KEY]))
        one, two = mine.channel.seal(b"one"), mine.channel.seal(b"two")
        *before, last = harm(one, two, mine)
        for frame in before:
            theirs.channel.open(frame)
        with pytest.raises(DecodeError, match="does not open"):
            theirs.channel.open(last)
    mine, theirs = shake(ring_of([KEY]), ring_of([KEY]))
    with pytest.raises(DecodeError, match="does not open"):
        mine.channel.open(mine.channel.seal(b"mirror"))


def test_second_key_is_tried_where_the_first_is_not_known() -> None:
    mine, theirs = shake(ring_of([OTHER, KEY]), ring_of([KEY]))
    assert theirs.channel.open(mine.channel.seal(b"x")) == b"x"


def test_other_key_no_key_and_key_needed_are_told_in_plain_words() -> None:
    handshake = AskerHandshake(ring_of([OTHER]), RNG.randbytes)
    answer, opened = answer_hello(ring_of([KEY]), RNG.randbytes, handshake.hello())
    assert opened is None
    with pytest.raises(SealError, match=f"another key than this node .here: {OTHER.name}"):
        handshake.take(answer)
    handshake = AskerHandshake(ring_of([OTHER]), RNG.randbytes)
    hello = handshake.hello()
    assert kind_of(hello) is Kind.ASK
    with pytest.raises(SealError, match="runs without a key"):
        handshake.take(notice(Kind.NO_KEY))
    answer, opened = answer_hello(ring_of([KEY]), RNG.randbytes, b"\x00\x00\x00\x01\x00M\x01")
    assert opened is None
    told = notice_of(answer)
    assert told is not None
    assert "wants a key" in in_words(told, [])


def test_hello_and_answer_with_any_bit_changed_open_no_stream() -> None:
    ring = ring_of([KEY])
    hello = AskerHandshake(ring, RNG.randbytes).hello()
    for i in range(len(hello) * 8):
        changed = _flip(hello, i)
        try:
            _, opened = answer_hello(ring, RNG.randbytes, changed)
        except DecodeError:
            opened = None
        assert opened is None
    handshake = AskerHandshake(ring, RNG.randbytes)
    answer, _ = answer_hello(ring, RNG.randbytes, handshake.hello())
    for i in range(len(answer) * 8):
        with pytest.raises((DecodeError, SealError)):
            handshake.take(_flip(answer, i))
    assert isinstance(handshake.take(answer), Opened)


def _flip(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes((data[bit // 8] ^ (1 << bit % 8),)) + data[bit // 8 + 1 :]


def test_recorded_stream_opens_nothing_at_the_same_answerer() -> None:
    ring = ring_of([KEY])
    handshake = AskerHandshake(ring, RNG.randbytes)
    hello = handshake.hello()
    answer, theirs = answer_hello(ring, RNG.randbytes, hello)
    mine = handshake.take(answer)
    assert isinstance(mine, Opened)
    assert theirs is not None
    frame = mine.channel.seal(b"submit")
    assert theirs.channel.open(frame) == b"submit"
    _, again = answer_hello(ring, RNG.randbytes, hello)
    assert again is not None
    with pytest.raises(DecodeError, match="does not open"):
        again.channel.open(frame)


def test_recorded_answer_convinces_no_asker() -> None:
    ring = ring_of([KEY])
    answer, _ = answer_hello(ring, RNG.randbytes, AskerHandshake(ring, RNG.randbytes).hello())
    handshake = AskerHandshake(ring, RNG.randbytes)
    handshake.hello()
    with pytest.raises(DecodeError, match="without the key"):
        handshake.take(answer)


def test_removed_key_opens_no_stream_any_more() -> None:
    ring = ring_of([KEY, OTHER])
    ring.use(OTHER.key_id)
    ring.remove(KEY.key_id)
    handshake = AskerHandshake(ring_of([KEY]), RNG.randbytes)
    answer, opened = answer_hello(ring, RNG.randbytes, handshake.hello())
    assert opened is None
    with pytest.raises(SealError, match="another key"):
        handshake.take(answer)
