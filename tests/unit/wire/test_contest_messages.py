"""The messages of contests come back as they went, and nothing else comes in."""

from __future__ import annotations

import contextlib

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.errors import DecodeError
from mesh.wire import contest_messages as cm
from mesh.wire import task_messages as tm
from mesh.wire.packet import PACKET_BYTES_MAX, encode_message
from mesh.wire.schema import Field
from tests.property.test_wire_any_bytes import HOSTILE, json_like
from tests.unit.wire.strategies import ids, pairs, texts, uints, weighings, words
from tests.unit.wire.test_task_messages import messages_of

called = st.builds(
    cm.Called,
    ids,
    uints(16),
    uints(8),
    uints(16),
    st.none() | uints(8),
    uints(8),
    st.none() | uints(32),
)
times_us = st.integers(1, cm.WINDOW_US_MAX)
words_said = st.builds(
    cm.Word,
    uints(40),
    ids,
    st.none() | uints(16),
    pairs(words(), uints(8)),
    st.sampled_from(tm.Decline),
)
contests = st.builds(
    cm.Contest,
    attempt=uints(32),
    at_ms=uints(48),
    window_us=uints(40),
    rounds=uints(8),
    is_first_window=st.booleans(),
    called=st.lists(st.tuples(ids, uints(16)), max_size=5).map(tuple),
    said=st.lists(words_said, max_size=3).map(tuple),
    winner=st.none() | ids,
    after_us=st.none() | uints(40),
    weights=weighings,
)
messages = st.one_of(
    st.builds(
        cm.Call,
        messages_of(tm.Offer),
        uints(8),
        times_us,
        times_us,
        st.lists(called, min_size=1, max_size=6, unique_by=lambda one: one.node_id).map(tuple),
        weighings,
    ),
    st.builds(cm.Bid, texts(128, 1), uints(32), uints(8), uints(16), pairs(words(), uints(8))),
    st.builds(cm.Settled, texts(128, 1), uints(32)),
    st.builds(cm.AskVitals, st.integers(0, cm.ASK_S_MAX)),
    st.builds(cm.VitalsTold, uints(16), uints(8), uints(8), st.integers(0, cm.ASK_S_MAX)),
    st.builds(cm.AskContest, texts(128, 1)),
    st.builds(cm.ContestTold, texts(128, 1), st.none() | contests),
)
CODES = {kind: code for code, (kind, _) in cm.SCHEMAS.items()}


def form_of(message: object) -> Field:
    return cm.SCHEMAS[CODES[type(message)]][1]


@given(message=messages)
def test_a_message_comes_back_as_it_went(message: object) -> None:
    form = form_of(message)
    assert form.unpack(msgpack.unpackb(msgpack.packb(form.pack(message)))) == message


@given(code=st.sampled_from(sorted(cm.SCHEMAS)), raw=json_like)
def test_any_value_is_a_message_or_refused(code: int, raw: object) -> None:
    with contextlib.suppress(DecodeError):
        cm.SCHEMAS[code][1].unpack(raw)


@given(message=messages, place=st.integers(0, 30), found=json_like)
def test_any_value_in_any_place_of_a_message_is_valid_or_refused(
    message: object, place: int, found: object
) -> None:
    form = form_of(message)
    raw = form.pack(message)
    raw[place % len(raw)] = found
    with contextlib.suppress(DecodeError):
        assert form.unpack(raw) is not None


@pytest.mark.parametrize("bad", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_bytes_are_no_message(bad: bytes) -> None:
    try:
        raw = msgpack.unpackb(bad, max_array_len=1024, strict_map_key=False)
    except Exception:  # noqa: BLE001 - the packet's reader refuses what is no msgpack
        return
    for _, form in cm.SCHEMAS.values():
        with pytest.raises(DecodeError):
            form.unpack(raw)


def call_of(*members: cm.Called, window_us: int = 1_000, weights: cm.Weighing = ()) -> cm.Call:
    offer = tm.Offer(
        task_id="t" * 32,
        ballot=Ballot(1, 1, 1, NodeId(2**64 - 1)),
        seq=0,
        attempt=1,
        cause=tm.AttemptCause.FIRST,
        pool="pool",
        labels=(("zone", "eu-west-1"),),
        needs=(("memory", 2**40),),
    )
    return cm.Call(offer, 0, window_us, 50_000, members, weights)


@pytest.mark.parametrize(
    "bad",
    [
        call_of(),
        call_of(*[cm.Called(NodeId(7), 1, 0, 0)] * 2),
        call_of(cm.Called(NodeId(7), 1, 0, 0), window_us=0),
        call_of(cm.Called(NodeId(7), 1, 0, 0), window_us=cm.WINDOW_US_MAX + 1),
        call_of(*[cm.Called(NodeId(n), 1, 0, 0) for n in range(1, cm.CALLED_MAX + 2)]),
    ],
)
def test_a_call_names_some_members_each_once_and_a_wait_that_ends(bad: cm.Call) -> None:
    form = form_of(bad)
    with pytest.raises(DecodeError, match="expected"):
        form.unpack(form.pack(bad))


def test_the_largest_call_of_a_usual_task_fits_into_a_datagram() -> None:
    most = [
        cm.Called(NodeId(2**64 - n), 65_535, 255, 65_535, 255, 255, 60_000_000)
        for n in range(1, cm.CALLED_MAX + 1)
    ]
    weights = tuple((name, 1e6) for name in cm.WEIGHED)
    assert len(encode_message(call_of(*most, weights=weights))) < PACKET_BYTES_MAX - 100


@pytest.mark.parametrize(
    "bad",
    [
        (("cpu", 0.0),),
        (("cpu", -1.0),),
        (("cpu", float("nan")),),
        (("cpu", float("inf")),),
        (("cpu", 1e7),),
        (("zone", 1.0),),
        (("lag", 1.0), ("cpu", 1.0)),
        (("cpu", 1.0), ("cpu", 1.0)),
    ],
)
def test_weights_are_of_parts_that_are_weighed_each_once_and_count(bad: cm.Weighing) -> None:
    call = call_of(cm.Called(NodeId(7), 1, 0, 0), weights=bad)
    form = form_of(call)
    with pytest.raises(DecodeError, match="expected"):
        form.unpack(form.pack(call))
