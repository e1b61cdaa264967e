"""The messages of repair come back as they went, nothing else comes in, and what is sent often fits a datagram."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.core.ids import MeshId, NodeId
from mesh.errors import DecodeError
from mesh.wire import packet, swim_messages, work_messages
from mesh.wire import parcel_messages as pm
from mesh.wire import register_messages as rm
from mesh.wire import repair_messages as rp
from mesh.wire import roster_messages as ro
from mesh.wire import task_messages as tm
from mesh.wire.schema import Field
from tests.unit.wire.test_register_messages import ballots, keys, u32, u48, u64, values

EPOCHS = u32
stages = st.sampled_from(rp.Stage)
items = st.builds(rp.Item, keys, ballots, u32)
shipped = st.builds(rp.Shipped, keys, ballots, u32, values)
sums = st.binary(min_size=rp.BUCKETS * rp.SUM_BYTES, max_size=rp.BUCKETS * rp.SUM_BYTES)
digests = st.lists(st.binary(min_size=8, max_size=8), max_size=4).map(b"".join)
messages = st.one_of(
    st.builds(rp.Compare, EPOCHS, u64),
    st.builds(rp.Sums, EPOCHS, sums, st.booleans()),
    st.builds(rp.Lack, EPOCHS, u64, st.integers(0, rp.BUCKETS - 1), keys, digests),
    st.builds(rp.Ship, EPOCHS, u64, st.lists(shipped, max_size=3).map(tuple), st.booleans()),
    st.builds(rp.Purge, EPOCHS, u64, stages, u48, st.lists(items, max_size=3).map(tuple)),
    st.builds(rp.Purged, EPOCHS, u64, stages, st.binary(max_size=8), u48),
)
FIELDS = dict(rp.SCHEMAS.values())


@given(messages)
def test_message_comes_back_as_it_went(message: object) -> None:
    data = packet.encode_packet(MeshId(1), NodeId(2), [packet.encode_message(message)])
    assert packet.decode_packet(data, packet.FRAME_BYTES_MAX).messages == (message,)


@given(
    st.sampled_from(list(FIELDS.values())),
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.binary(max_size=24),
        lambda inner: st.lists(inner, max_size=7),
        max_leaves=30,
    ),
)
def test_whatever_comes_in_is_a_message_or_refused(field: Field, raw: object) -> None:
    try:
        field.unpack(raw)
    except DecodeError:
        return


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (rp.Sums, [1, bytes(rp.BUCKETS * rp.SUM_BYTES - 1), True]),
        (rp.Lack, [1, 1, rp.BUCKETS, b"", b""]),
        (rp.Lack, [1, 1, -1, b"", b""]),
        (rp.Lack, [1, 1, True, b"", b""]),
        (rp.Lack, [1, 1, 0, b"", b"seven b"]),
        (rp.Purge, [1, 1, 3, 0, []]),
    ],
)
def test_what_has_not_the_right_size_or_range_is_refused(kind: type, raw: object) -> None:
    with pytest.raises(DecodeError):
        FIELDS[kind].unpack(raw)


def test_sums_of_all_buckets_fit_into_a_datagram() -> None:
    message = rp.Sums((1 << 32) - 1, bytes(rp.BUCKETS * rp.SUM_BYTES), is_answer=True)
    packet.encode_datagram(MeshId(1), NodeId(2), [packet.encode_message(message)])


def test_no_code_of_these_is_used_by_others() -> None:
    for code, (kind, _) in rp.SCHEMAS.items():
        assert packet._BY_CODE[code][0] is kind
        assert packet._BY_TYPE[kind][0] == code
    tables = (rm, ro, tm, pm, swim_messages, work_messages)
    assert not {code for table in tables for code in table.SCHEMAS} & rp.SCHEMAS.keys()


def test_sums_come_back_as_what_msgpack_carries() -> None:
    message = rp.Compare(7, (1 << 64) - 1)
    raw = msgpack.unpackb(packet.encode_message(message))
    assert FIELDS[rp.Compare].unpack(raw[1:]) == message
