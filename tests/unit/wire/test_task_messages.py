"""The messages of tasks come back as they went, and nothing else comes in."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mesh.core.ballot import N_MAX, Ballot
from mesh.core.ids import NodeId
from mesh.errors import DecodeError
from mesh.wire import register_messages, roster_messages, swim_messages, work_messages
from mesh.wire import task_messages as tm
from mesh.wire.schema import Field
from tests.property.test_wire_any_bytes import HOSTILE, json_like
from tests.unit.wire.strategies import ids, pairs, texts, uints, words

ballots = st.builds(
    Ballot, uints(32), uints(32), st.integers(0, N_MAX), st.integers(0, 2**64 - 1).map(NodeId)
)
placements = st.builds(
    tm.Placement, st.sampled_from(tm.PlacedBy), st.none() | ids, st.sampled_from(tm.Decline)
)
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "task_id": texts(128, 1),
    "ballot": ballots,
    "seq": uints(32),
    "from_seq": uints(32),
    "first_seq": uints(32),
    "next_seq": uints(32),
    "attempt": uints(32),
    "cause": st.sampled_from(tm.AttemptCause),
    "queue": texts(128),
    "pool": texts(128),
    "node_class": texts(128),
    "labels": pairs(words(), texts(128)),
    "needs": pairs(words(), uints(48)),
    "has_more": st.booleans(),
    "placement": st.none() | placements,
    "decline": st.sampled_from(tm.Decline),
    "free_slots": uints(16),
    "verdict": st.sampled_from(tm.CancelVerdict),
    "pieces_max": uints(8),
    "stream": uints(2),
    "data": st.binary(max_size=100),
    "reason": st.sampled_from(tm.FollowReason),
    "seconds": st.integers(0, tm.WATCH_S_MAX),
    "state": st.sampled_from(tm.TaskState),
    "value": st.builds(
        register_messages.Value,
        st.just(register_messages.Standing.LEASED),
        st.binary(max_size=100),
        st.builds(register_messages.Owner, ids, uints(48)),
    ),
    "owner": st.none() | st.builds(register_messages.Owner, ids, uints(48)),
}


def messages_of(kind: type) -> st.SearchStrategy[Any]:
    """Any valid message of one type. KeyError: a new part has no strategy yet, add it above."""
    return st.builds(kind, **{part.name: PARTS[part.name] for part in dataclasses.fields(kind)})


KINDS = [kind for kind, _ in tm.SCHEMAS.values()]
messages = st.sampled_from(KINDS).flatmap(messages_of)
CODES = {kind: code for code, (kind, _) in tm.SCHEMAS.items()}


def form_of(message: object) -> Field:
    return tm.SCHEMAS[CODES[type(message)]][1]


@given(message=messages)
def test_a_message_comes_back_as_it_went(message: object) -> None:
    form = form_of(message)
    data = msgpack.packb(form.pack(message))
    assert form.unpack(msgpack.unpackb(data)) == message


@given(code=st.sampled_from(sorted(tm.SCHEMAS)), raw=json_like)
@example(code=82, raw=["a"])
def test_any_value_is_a_message_or_refused(code: int, raw: object) -> None:
    with contextlib.suppress(DecodeError):
        tm.SCHEMAS[code][1].unpack(raw)


@given(message=messages, place=st.integers(0, 30), found=json_like)
def test_any_value_in_any_place_of_a_message_is_valid_or_refused(
    message: object, place: int, found: object
) -> None:
    form = form_of(message)
    raw = form.pack(message)
    raw[place % len(raw)] = found
    with contextlib.suppress(DecodeError):
        assert form.unpack(raw) is not None


@given(message=messages, data=st.data())
def test_damaged_bytes_are_a_message_or_refused(message: object, data: st.DataObject) -> None:
    form = form_of(message)
    damaged = bytearray(msgpack.packb(form.pack(message)))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        raw = msgpack.unpackb(bytes(damaged), max_array_len=64, max_map_len=0, max_ext_len=0)
    except Exception:  # noqa: BLE001 - the packet's reader refuses what is no msgpack
        return
    with contextlib.suppress(DecodeError):
        form.unpack(raw)


@pytest.mark.parametrize("bad", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_bytes_are_no_message(bad: bytes) -> None:
    try:
        raw = msgpack.unpackb(bad, max_array_len=1024, strict_map_key=False)
    except Exception:  # noqa: BLE001 - the packet's reader refuses what is no msgpack
        return
    for _, form in tm.SCHEMAS.values():
        with pytest.raises(DecodeError):
            form.unpack(raw)


def test_every_code_is_of_one_message() -> None:
    tables = [
        swim_messages.SCHEMAS,
        work_messages.SCHEMAS,
        register_messages.SCHEMAS,
        roster_messages.SCHEMAS,
    ]
    taken = {code for table in tables for code in table}
    assert not taken & tm.SCHEMAS.keys()
    assert all(80 <= code <= 95 for code in tm.SCHEMAS)
    assert len(set(KINDS)) == len(KINDS)


def test_nobody_is_watched_for_longer_than_the_limit() -> None:
    form = form_of(tm.Watch("a", 1))
    with pytest.raises(DecodeError):
        form.unpack(["a", tm.WATCH_S_MAX + 1])


def test_an_offer_of_a_common_task_fits_into_a_datagram_many_times() -> None:
    ballot = Ballot(0, 3, 70_000, NodeId(2**63))
    offer = tm.Offer(
        task_id="0123456789ab",
        ballot=ballot,
        seq=0,
        attempt=1,
        cause=tm.AttemptCause.FIRST,
        pool="image",
        needs=(("gpu", 1),),
    )
    assert len(msgpack.packb(form_of(offer).pack(offer))) < 80
