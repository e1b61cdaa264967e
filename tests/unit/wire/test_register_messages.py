"""The messages of registers come back as they went, and nothing else comes in."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.core.ballot import BALLOT_BYTES, N_MAX, Ballot
from mesh.core.ids import NodeId
from mesh.errors import DecodeError
from mesh.wire import register_messages as rm
from mesh.wire import roster_messages as ro
from mesh.wire import swim_messages, work_messages
from mesh.wire.schema import Field

u32 = st.integers(0, (1 << 32) - 1)
u48 = st.integers(0, (1 << 48) - 1)
u64 = st.integers(0, (1 << 64) - 1)
keys = st.binary(max_size=rm.KEY_BYTES_MAX)
ballots = st.builds(
    Ballot, u32, u32, st.integers(0, N_MAX), st.integers(0, (1 << 64) - 1).map(NodeId)
)
owners = st.builds(rm.Owner, st.integers(1, (1 << 64) - 1).map(NodeId), u48)
bodies = st.binary(max_size=64)
values = st.one_of(
    st.builds(rm.Value, st.sampled_from([rm.Standing.OPEN, rm.Standing.FINAL]), bodies),
    st.builds(rm.Value, st.just(rm.Standing.LEASED), bodies, owners),
)
pairs = st.lists(st.tuples(keys, ballots), max_size=4).map(tuple)
places = st.integers(0, rm.LEASES_MAX - 1)
entries = st.builds(ro.Entry, keys, ballots, ballots, u32, st.none() | values, st.booleans())
voters = st.sets(st.integers(1, (1 << 64) - 1).map(NodeId), min_size=1, max_size=5).map(
    lambda found: tuple(sorted(found))
)
messages = st.one_of(
    st.builds(rm.Prepare, keys, ballots, u48),
    st.builds(rm.Accept, keys, u32, ballots, u32, values),
    st.builds(rm.Renew, u32, u64, pairs),
    st.builds(rm.Read, keys, u32, u48),
    st.builds(rm.Promised, keys, ballots, ballots, u32, st.none() | values),
    st.builds(rm.Accepted, keys, u32, ballots, u32),
    st.builds(rm.Leased, keys, ballots, st.floats(0, 1e6)),
    st.builds(rm.Outbid, keys, ballots, ballots),
    st.builds(rm.WrongEpoch, keys, ballots, u32),
    st.builds(
        rm.Renewed,
        u32,
        u48,
        st.lists(places, max_size=4).map(tuple),
        st.lists(st.tuples(places, ballots), max_size=4).map(tuple),
    ),
    st.builds(ro.Seal, u32),
    st.builds(ro.Fetch, u32, keys),
    st.builds(ro.Sealed, u32, u32),
    st.builds(ro.Page, u32, keys, st.lists(entries, max_size=3).map(tuple), st.booleans()),
    st.builds(ro.Roster, st.integers(1, 9), voters),
    st.builds(ro.AskRoster, u32),
    st.builds(rm.Held, keys, u32, u48, ballots, u32, st.none() | values),
)
FIELDS = dict([*rm.SCHEMAS.values(), *ro.SCHEMAS.values()])


def carried(message: object) -> object:
    return msgpack.unpackb(msgpack.packb(FIELDS[type(message)].pack(message)))


@given(messages)
def test_message_comes_back_as_it_went(message: object) -> None:
    assert FIELDS[type(message)].unpack(carried(message)) == message


@given(
    st.sampled_from(list(FIELDS.values())),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-5, 5)
        | st.floats()
        | st.binary(max_size=24)
        | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=11),
        max_leaves=30,
    ),
)
def test_whatever_comes_in_is_a_message_or_refused(field: Field, raw: object) -> None:
    try:
        field.unpack(raw)
    except DecodeError:
        return


@given(ballots, ballots)
def test_packed_ballots_and_tokens_compare_as_ballots_do(one: Ballot, other: Ballot) -> None:
    assert (one < other) == (one.pack() < other.pack()) == (one.token < other.token)
    assert Ballot.unpack(one.pack()) == one


@pytest.mark.parametrize(
    "raw", [[0, b"", [5, 1]], [1, b"", None], [2, b"", [5, 1]], [1, b"", [0, 1]], [3, b"", None]]
)
def test_value_names_an_owner_exactly_while_it_is_leased(raw: object) -> None:
    with pytest.raises(DecodeError):
        FIELDS[rm.Accept].unpack([b"k", 1, bytes(BALLOT_BYTES), 0, raw])


def test_no_code_is_used_twice() -> None:
    tables = (rm, ro, swim_messages, work_messages)
    codes = [code for table in tables for code in table.SCHEMAS]
    assert len(codes) == len(set(codes))
