"""Frames come out whole, whatever pieces the bytes come in."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.errors import DecodeError
from mesh.wire.frames import FrameKind, FrameReader, exchange_frame, frame, split_exchange


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(bodies=st.lists(st.binary(max_size=40), max_size=8), cuts=st.lists(st.integers(0, 400)))
def test_frames_come_out_whole_however_the_bytes_are_cut(
    bodies: list[bytes], cuts: list[int]
) -> None:
    reader = FrameReader(40)
    found = []
    for piece in pieces(b"".join(map(frame, bodies)), cuts):
        found += reader.feed(piece)
    assert found == bodies
    assert reader.is_empty


@given(body=st.binary(max_size=20), cut=st.integers(0, 23))
def test_a_stream_that_ends_within_a_frame_is_not_empty(body: bytes, cut: int) -> None:
    data = frame(body)
    cut %= len(data)
    reader = FrameReader(20)
    assert reader.feed(data[:cut]) == []
    assert reader.is_empty is (cut == 0)


def test_bytes_may_come_one_by_one() -> None:
    reader = FrameReader(10)
    found = [body for byte in frame(b"hello") + frame(b"") for body in reader.feed(bytes([byte]))]
    assert found == [b"hello", b""]


@pytest.mark.parametrize("size", [11, 2**31, 2**32 - 1])
def test_a_frame_above_the_limit_is_refused_by_its_length_alone(size: int) -> None:
    reader = FrameReader(10)
    with pytest.raises(DecodeError, match=f"at most 10 bytes is expected, found {size}"):
        reader.feed(size.to_bytes(4, "big"))


def test_a_frame_of_exactly_the_limit_is_taken() -> None:
    assert FrameReader(10).feed(frame(bytes(10))) == [bytes(10)]


@given(
    exchange_id=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(FrameKind),
    packet=st.binary(max_size=50),
)
def test_an_exchange_comes_back_as_it_was_sent(
    exchange_id: int, kind: FrameKind, packet: bytes
) -> None:
    (body,) = FrameReader(100).feed(exchange_frame(exchange_id, kind, packet))
    assert split_exchange(body) == (exchange_id, kind, packet)


@pytest.mark.parametrize(
    ("body", "text"),
    [(b"", "at least 5 bytes, found 0"), (bytes(4), "found 4"), (bytes(4) + b"\3", "found 3")],
)
def test_a_body_that_is_no_exchange_is_refused(body: bytes, text: str) -> None:
    with pytest.raises(DecodeError, match=text):
        split_exchange(body)
