"""Messages that go to one member together: by datagram if each fits into one, else in parcels on a stream."""

from __future__ import annotations

from mesh.core.ballot import Ballot
from mesh.core.ids import MeshId, NodeId
from mesh.node.budget import SHARE_BYTES_MAX
from mesh.node.delivery import DATAGRAMS_MAX, PARCEL_BYTES_MAX, Parcel, pack
from mesh.wire.packet import (
    DATAGRAM_ITEMS_MAX,
    FRAME_BYTES_MAX,
    MESSAGES_MAX,
    decode_packet,
    encode_datagram,
    encode_message,
    encode_packet,
)
from mesh.wire.register_messages import Accept, Read, Renew, Renewed, Standing, Value

BALLOT = Ballot(0, 1, 1, NodeId(2))


def accept(size: int, number: int = 0) -> Accept:
    return Accept(b"task/%d" % number, 1, BALLOT, 0, Value(Standing.OPEN, bytes(size)))


def parcels(messages: list[object]) -> list[Parcel]:
    """Return what is packed, which is to go on streams, and is all of it, in order."""
    packed = pack(messages)
    found = [one for one in packed if isinstance(one, Parcel)]
    assert len(found) == len(packed) > 0
    sent: list[object] = []
    for parcel in found:
        data = encode_packet(MeshId(1), NodeId(2), parcel.parts)
        assert len(data) <= FRAME_BYTES_MAX
        sent += decode_packet(data, FRAME_BYTES_MAX).messages
    assert sent == messages
    return found


def datagrams(messages: list[object]) -> list[bytes]:
    """Return what is packed, each of which may leave in a datagram, and be read there."""
    found = [one for one in pack(messages) if isinstance(one, bytes)]
    assert found == [encode_message(message) for message in messages]
    for part in found:
        decode_packet(encode_datagram(MeshId(1), NodeId(2), [part]))
    return found


def test_short_messages_go_by_datagram_in_order() -> None:
    assert len(datagrams([Read(b"task/t", 1, number) for number in range(20)])) == 20
    assert pack([]) == []


def test_one_message_that_fits_into_no_datagram_takes_the_others_onto_the_stream() -> None:
    (parcel,) = parcels([Read(b"task/t", 1, 1), accept(SHARE_BYTES_MAX), Read(b"task/t", 1, 2)])
    assert len(parcel.parts) == 3


def test_what_would_take_too_many_datagrams_goes_on_a_stream() -> None:
    size = 500
    count = DATAGRAMS_MAX * SHARE_BYTES_MAX // len(encode_message(accept(size)))
    assert len(datagrams([accept(size)] * count)) == count
    assert len(parcels([accept(size)] * (count + 1))) == 1


def test_list_that_is_too_long_for_a_datagram_goes_on_a_stream_though_it_has_few_bytes() -> None:
    longest = DATAGRAM_ITEMS_MAX
    for count, is_short in ((longest, True), (longest + 1, False)):
        answer = Renewed(1, 1, tuple(range(count)), ())
        assert len(encode_message(answer)) <= SHARE_BYTES_MAX
        assert len(datagrams([answer]) if is_short else parcels([answer])) == 1
    renewal = Renew(1, 1, tuple((b"%d" % number, BALLOT) for number in range(longest + 1)))
    assert len(parcels([renewal])) == 1


def test_parcel_holds_a_bounded_number_of_messages() -> None:
    messages: list[object] = [accept(100, number) for number in range(2 * MESSAGES_MAX + 1)]
    assert [len(parcel.parts) for parcel in parcels(messages)] == [MESSAGES_MAX, MESSAGES_MAX, 1]


def test_parcel_holds_a_bounded_number_of_bytes_and_is_filled_before_the_next_begins() -> None:
    size = 500_000
    found = parcels([accept(size, number) for number in range(40)])
    sizes = [sum(map(len, parcel.parts)) for parcel in found]
    assert all(PARCEL_BYTES_MAX - size - 100 < taken <= PARCEL_BYTES_MAX for taken in sizes[:-1])
    assert len(found) == 3
