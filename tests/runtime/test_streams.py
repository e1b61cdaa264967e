"""Exchanges over real TCP, the asking half: pipelining, limits, and peers that misbehave."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest
import trio
import trio.testing

from mesh.core.address import Address
from mesh.core.effects import StartExchange
from mesh.errors import DecodeError
from mesh.runtime.streams import FIRST_FRAME_BYTES_MAX, AskLimits
from mesh.wire.frames import FrameKind, exchange_frame
from tests.runtime.peers import (
    HOST,
    Peer,
    asking,
    listening,
)

Until: TypeAlias = Callable[[Callable[[], bool]], Awaitable[None]]


async def test_many_exchanges_share_one_connection(until: Until) -> None:
    peer = Peer()
    async with asking(peer) as (asker, replies):
        for number in range(100):
            asker.ask(StartExchange(number, peer.address, b"word %d" % number, 5.0))
        for number in range(100):
            assert await replies.of(number) == b"WORD %d" % number
        assert peer.asked == [b"word %d" % number for number in range(100)]
        assert len(peer.listener._connections) == 1
        assert asker.counters["received_frames"] == 100
        await until(lambda: peer.listener.counters["sent_frames"] == 100)


async def test_a_long_first_request_passes_behind_a_greeting() -> None:
    peer = Peer()
    async with asking(peer) as (asker, replies):
        long = b"x" * (FIRST_FRAME_BYTES_MAX * 3)
        asker.ask(StartExchange(1, peer.address, long, 5.0))
        assert await replies.of(1) == long.upper()
        assert peer.asked == [long]


async def test_a_refused_connection_is_reported_with_its_number() -> None:
    sock = listening()
    nobody = Address(*sock.getsockname())
    sock.close()
    async with asking() as (asker, replies):
        asker.ask(StartExchange(1, nobody, b"x", 5.0))
        error = await replies.error_of(1)
        assert error.errno == errno.ECONNREFUSED
        assert str(error) == "refused the connection (is a node running there?)"


async def test_silence_ends_in_a_timeout_and_the_next_question_connects_afresh() -> None:
    silent = listening()
    address = Address(*silent.getsockname())
    async with asking() as (asker, replies):
        asker.ask(StartExchange(1, address, b"x", 0.05))
        assert "within 0.05 s" in str(await replies.error_of(1))
        assert not asker._by_peer
        asker.ask(StartExchange(2, address, b"x", 0.05))
        await replies.error_of(2)
    silent.close()


async def test_an_unwanted_asker_loses_its_connection_and_hears_of_it() -> None:
    peer = Peer(answer=lambda _: b"")
    async with asking(peer) as (asker, replies):
        asker.ask(StartExchange(1, peer.address, b"x", 5.0))
        error = await replies.error_of(1)
        assert "closed before it answered" in str(error)
        assert error.errno == errno.ECONNRESET  # no refusal, and no silence either


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00\x00\x00\x01x",
        exchange_frame(1, FrameKind.REQUEST, b"turned round"),
    ],
)
async def test_a_seed_that_is_no_mesh_is_reported_and_counted(answer: bytes) -> None:
    server = await trio.open_tcp_listeners(0, host=HOST)
    address = Address(*server[0].socket.getsockname())

    async def babble(stream: trio.SocketStream) -> None:
        await stream.send_all(answer)
        await stream.receive_some()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, babble, server)
        async with asking() as (asker, replies):
            asker.ask(StartExchange(1, address, b"x", 5.0))
            error = await replies.error_of(1)
            assert isinstance(error, DecodeError)
            assert "broke the protocol" in str(error)
            assert asker.counters["dropped_bad_reply"] == 1
        nursery.cancel_scope.cancel()


async def test_an_idle_connection_is_closed_by_the_asker(until: Until) -> None:
    peer = Peer()
    async with asking(peer, AskLimits(idle_s=0.05)) as (asker, replies):
        asker.ask(StartExchange(1, peer.address, b"x", 5.0))
        await replies.of(1)
        await until(lambda: not (asker._by_peer or peer.listener._connections))
        asker.ask(StartExchange(2, peer.address, b"y", 5.0))
        assert await replies.of(2) == b"Y"


async def test_after_a_change_of_address_questions_go_on_new_connections(until: Until) -> None:
    peer = Peer()
    async with asking(peer) as (asker, replies):
        asker.ask(StartExchange(1, peer.address, b"x", 5.0))
        await replies.of(1)
        (before,) = asker._by_peer.values()
        asker.begin_anew()
        await until(lambda: not peer.listener._connections)
        asker.ask(StartExchange(2, peer.address, b"y", 5.0))
        assert await replies.of(2) == b"Y"
        (after,) = asker._by_peer.values()
        assert after is not before


async def test_what_was_asked_before_a_change_of_address_may_still_be_answered() -> None:
    peer = Peer()
    async with asking(peer) as (asker, replies):
        asker.ask(StartExchange(1, peer.address, b"x", 5.0))
        asker.begin_anew()
        assert await replies.of(1) == b"X"
        assert not asker._by_peer


async def test_questions_to_one_peer_are_bounded() -> None:
    silent = listening()
    address = Address(*silent.getsockname())
    async with asking(limits=AskLimits(pending_max=2, queued_bytes_max=1_000)) as (asker, replies):
        asker.ask(StartExchange(1, address, b"x" * 2_000, 5.0))
        assert "bytes wait to be sent" in str(await replies.error_of(1))
        for number in (2, 3, 4):
            asker.ask(StartExchange(number, address, b"x", 5.0))
        assert "unanswered already" in str(await replies.error_of(4))
        assert set(replies.by_id) == {1, 4}
    silent.close()


async def test_at_the_limit_the_asker_closes_its_longest_idle_connection() -> None:
    first, second, third = listening(), listening(), Peer()
    one, two = (Address(*sock.getsockname()) for sock in (first, second))
    async with asking(third, AskLimits(connections_max=2)) as (asker, replies):
        asker.ask(StartExchange(1, third.address, b"x", 5.0))
        await replies.of(1)
        asker.ask(StartExchange(2, one, b"x", 5.0))
        asker.ask(StartExchange(3, two, b"x", 5.0))
        assert third.address not in asker._by_peer
        asker.ask(StartExchange(4, third.address, b"x", 5.0))
        assert "connections are busy" in str(await replies.error_of(4))
    first.close()
    second.close()


async def test_nobody_beyond_loopback_is_dialled() -> None:
    async with asking() as (asker, replies):
        asker.ask(StartExchange(1, Address("192.0.2.1", 9), b"secret", 5.0))
        error = await replies.error_of(1)
        assert "not on loopback" in str(error)
        assert asker._reach.counters["refused_not_loopback"] == 1
