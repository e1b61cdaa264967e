"""The door of a node with a key, over real TCP: who is let in, who is told what, and what a recording is worth."""

from __future__ import annotations

import os

import pytest
import trio

from mesh.core.address import Address
from mesh.core.effects import StartExchange
from mesh.errors import DecodeError, SealError
from mesh.runtime.door import HELLOS_MAX, STRANGER_BYTES_MAX, PlainDoor
from mesh.runtime.keystore import KeyStore
from mesh.runtime.listener import ListenLimits
from mesh.runtime.sealed_door import SealedDoor
from mesh.runtime.streams import FIRST_FRAME_BYTES_MAX, Asker, connect
from mesh.seal.handshake import AskerHandshake
from mesh.seal.key import Key
from mesh.seal.notices import Kind, notice, notice_of
from mesh.seal.ring import ring_of
from mesh.wire.frames import FrameKind, FrameReader, exchange_body, frame, split_exchange
from tests.runtime.keyed_peers import Keyed, keyed, passing, store
from tests.runtime.peers import Replies, listening, until_closed

KEY, OTHER = Key(b"k" * 32), Key(b"o" * 32)


async def ask(peer: Keyed, keys: KeyStore | None, data: bytes) -> object:
    """Ask one question through an asker of its own; return the answer, or the error."""
    replies = Replies()
    async with trio.open_nursery() as nursery:
        door = PlainDoor() if keys is None else SealedDoor(keys)
        rings = None if keys is None else (passing(keys).offer, lambda got: _take(keys, got))
        asker = Asker(nursery, trio.current_time, replies.add, door=door, rings=rings)
        nursery.start_soon(asker.run)
        asker.ask(StartExchange(1, peer.address, data, 8.0))
        found = await replies.of(1)
        nursery.cancel_scope.cancel()
    return found


def _take(keys: KeyStore, data: bytes) -> None:
    passing(keys).take(data)


async def first_frame(stream: trio.SocketStream) -> bytes:
    reader = FrameReader(STRANGER_BYTES_MAX)
    with trio.fail_after(10):
        while True:
            data = await stream.receive_some()
            assert data, "closed without a word"
            bodies = reader.feed(data)
            if bodies:
                return bodies[0]


@pytest.mark.parametrize(
    "size", [1, 65_000, FIRST_FRAME_BYTES_MAX - 5, FIRST_FRAME_BYTES_MAX + 1, 1 << 20]
)
async def test_question_of_any_length_passes_the_door(size: int) -> None:
    async with keyed(store(KEY)) as peer:
        assert await ask(peer, store(KEY), b"q" * size) == b"Q" * size


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        (KEY, OTHER, "holds another key than this node"),
        (KEY, None, "runs without a key, and this node with one"),
        (None, KEY, "wants a key, and this node has none"),
    ],
    ids=["another key", "they have none", "we have none"],
)
async def test_ends_that_share_no_key_are_told_so_in_plain_words(
    mine: Key | None, theirs: Key | None, words: str
) -> None:
    async with keyed(None if theirs is None else store(theirs)) as peer:
        error = await ask(peer, None if mine is None else store(mine), b"hello")
    assert words in str(error)
    assert "--key FILE" in str(error)
    assert peer.asked == []
    for key in (KEY, OTHER):
        assert key.to_text() not in str(error)


async def test_node_with_a_removed_key_is_told_that_the_mesh_has_changed_its_key() -> None:
    keys = store(KEY)
    keys.ring.add(OTHER)
    keys.ring.use(OTHER.key_id)
    keys.ring.remove(KEY.key_id)
    async with keyed(keys) as peer:
        error = await ask(peer, store(KEY), b"hello")
    assert "the mesh has changed its key" in str(error)
    assert KEY.name in str(error)


async def test_any_key_that_both_hold_opens_a_stream_and_the_later_ring_is_passed_on() -> None:
    ours, theirs = store(KEY), store(KEY)
    theirs.ring.add(OTHER)
    theirs.ring.use(OTHER.key_id)
    async with keyed(theirs) as peer:
        assert await ask(peer, ours, b"x") == b"X"
    assert ours.ring.digest == theirs.ring.digest


async def test_long_first_question_passes_though_a_ring_is_offered_before_it() -> None:
    ours, theirs = store(KEY), store(KEY)
    ours.ring.add(OTHER)
    size = FIRST_FRAME_BYTES_MAX + 1
    async with keyed(theirs) as peer:
        assert await ask(peer, ours, b"q" * size) == b"Q" * size
    assert ours.ring.digest == theirs.ring.digest


async def test_ring_that_comes_with_a_removed_key_is_not_taken_over() -> None:
    ours, taken, has_taken, replies = store(KEY, OTHER), list[bytes](), trio.Event(), Replies()

    def take(data: bytes) -> None:
        taken.append(data)
        has_taken.set()

    listener = trio.socket.from_stdlib_socket(listening())
    async with trio.open_nursery() as nursery:
        rings = (passing(ours).offer, take)
        asker = Asker(nursery, trio.current_time, replies.add, door=SealedDoor(ours), rings=rings)
        nursery.start_soon(asker.run)
        asker.ask(StartExchange(1, Address(*listener.getsockname()), b"a", 8.0))
        with trio.fail_after(10):
            accepted, _ = await listener.accept()
        stream = trio.SocketStream(accepted)
        answer, passage = SealedDoor(store(KEY, OTHER)).admit(await first_frame(stream))
        assert passage is not None
        await stream.send_all(frame(answer))
        passage.open(await first_frame(stream))
        await stream.send_all(frame(passage.seal(exchange_body(0, FrameKind.RING, b"counts"))))
        with trio.fail_after(10):
            await has_taken.wait()
        ours.ring.use(OTHER.key_id)
        ours.ring.remove(KEY.key_id)
        await stream.send_all(frame(passage.seal(exchange_body(0, FrameKind.RING, b"too late"))))
        await stream.send_all(frame(passage.seal(exchange_body(1, FrameKind.REPLY, b"A"))))
        assert await replies.of(1) == b"A"
        nursery.cancel_scope.cancel()
    listener.close()
    stream.socket.close()
    assert taken == [b"counts"]


async def test_stream_of_a_removed_key_is_closed_at_its_next_question() -> None:
    keys = store(KEY)
    async with keyed(keys) as peer:
        stream = await peer.dial()
        passage = await SealedDoor(store(KEY)).enter(stream)
        await stream.send_all(frame(passage.seal(exchange_body(1, FrameKind.REQUEST, b"a"))))
        assert split_exchange(passage.open(await first_frame(stream)))[2] == b"A"
        keys.ring.add(OTHER)
        keys.ring.use(OTHER.key_id)
        keys.ring.remove(KEY.key_id)
        await stream.send_all(frame(passage.seal(exchange_body(2, FrameKind.REQUEST, b"b"))))
        assert await until_closed(stream) == b""
    assert peer.asked == [b"a"]


async def test_stranger_may_offer_so_many_keys_and_is_then_let_go() -> None:
    async with keyed(store(KEY)) as peer:
        stream = await peer.dial()
        hello = AskerHandshake(ring_of([OTHER]), os.urandom).hello()
        await stream.send_all(frame(hello) * 2_000)
        told = await until_closed(stream)
        assert told == frame(notice(Kind.OTHER_KEY)) * HELLOS_MAX or told == b""
        assert peer.listener.counters["dropped_strangers"] == 1
        assert await ask(peer, store(KEY), b"x") == b"X"


async def test_stranger_cannot_announce_more_than_a_hello() -> None:
    async with keyed(store(KEY)) as peer:
        stream = await peer.dial()
        await stream.send_all((STRANGER_BYTES_MAX + 1).to_bytes(4, "big") + b"x")
        assert await until_closed(stream) == b""
        assert peer.listener.counters["dropped_bad_frame"] == 1


async def test_hello_with_a_wrong_tag_is_not_answered() -> None:
    async with keyed(store(KEY)) as peer:
        stream = await peer.dial()
        hello = AskerHandshake(ring_of([KEY]), os.urandom).hello()
        await stream.send_all(frame(hello[:-1] + bytes((hello[-1] ^ 1,))))
        assert await until_closed(stream) == b""
        assert peer.listener.counters["dropped_bad_frame"] == 1


async def recorded(keys: KeyStore) -> bytes:
    """Return what an asker sends on a stream that asks one question."""
    async with keyed(keys) as peer:
        stream = await peer.dial()
        handshake = AskerHandshake(keys.ring, os.urandom)
        sent = frame(handshake.hello())
        await stream.send_all(sent)
        opened = handshake.take(await first_frame(stream))
        assert not isinstance(opened, bytes)
        asked = frame(opened.channel.seal(exchange_body(1, FrameKind.REQUEST, b"pay 10")))
        await stream.send_all(asked)
        await first_frame(stream)
        assert peer.asked == [b"pay 10"]
    return sent + asked


async def test_recorded_stream_played_back_asks_nothing() -> None:
    keys = store(KEY)
    data = await recorded(keys)
    async with keyed(keys) as peer:
        stream = await peer.dial()
        await stream.send_all(data)
        await until_closed(stream)
        assert peer.asked == []
        assert peer.listener.counters["dropped_bad_frame"] == 1


async def test_recorded_hello_earns_no_place_no_time_and_no_long_frame() -> None:
    keys = store(KEY)
    data = await recorded(keys)
    hello = data[: 4 + int.from_bytes(data[:4], "big")]
    limits = ListenLimits(first_frame_s=0.5, connections_max=2)
    async with keyed(keys, limits) as peer:
        greedy = await peer.dial()
        await greedy.send_all(hello)
        await first_frame(greedy)
        await greedy.send_all((1 << 20).to_bytes(4, "big") + b"z")
        assert await until_closed(greedy) == b""
        assert peer.listener.counters["dropped_bad_frame"] == 1
        silent = await peer.dial()
        await silent.send_all(hello)
        await first_frame(silent)
        assert await until_closed(silent) == b""
        assert peer.listener.counters["dropped_slow"] == 1


async def test_recorded_hellos_in_every_place_cost_a_member_nothing() -> None:
    keys = store(KEY)
    data = await recorded(keys)
    hello = data[: 4 + int.from_bytes(data[:4], "big")]
    async with keyed(keys, ListenLimits(connections_max=4)) as peer:
        member = await peer.dial()
        passage = await SealedDoor(keys).enter(member)
        await member.send_all(frame(passage.seal(exchange_body(1, FrameKind.REQUEST, b"a"))))
        passage.open(await first_frame(member))
        for _ in range(8):
            stranger = await peer.dial()
            await stranger.send_all(hello)
            await first_frame(stranger)
        await member.send_all(frame(passage.seal(exchange_body(2, FrameKind.REQUEST, b"b"))))
        assert split_exchange(passage.open(await first_frame(member)))[2] == b"B"
        assert peer.listener.counters["dropped_full"] >= 4


async def test_answer_of_an_impostor_is_refused_by_the_asker() -> None:
    listener = trio.socket.from_stdlib_socket(listening())
    for answer, error in (
        (b"\0" * 75, DecodeError),
        (notice(Kind.OTHER_KEY), SealError),
        (b"", SealError),
    ):
        stream = await connect(Address(*listener.getsockname()))
        accepted, _ = await listener.accept()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_impersonate, trio.SocketStream(accepted), answer)
            with pytest.raises(error):
                await SealedDoor(store(KEY)).enter(stream)
        stream.socket.close()
    listener.close()


async def _impersonate(stream: trio.SocketStream, answer: bytes) -> None:
    await first_frame(stream)
    if answer:
        await stream.send_all(frame(answer))
    await stream.aclose()


def test_notice_is_nothing_else_and_nothing_else_is_a_notice() -> None:
    assert notice_of(notice(Kind.KEY_NEEDED)) is Kind.KEY_NEEDED
    for body in (b"", b"x" * 40, notice(Kind.ASK), notice(Kind.KEY_NEEDED)[:-1]):
        assert notice_of(body) is None
