"""Exchanges over real TCP: pipelining, limits on both sides, and peers that misbehave."""

from __future__ import annotations

import errno
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import pytest
import trio

from mesh.core.address import Address
from mesh.core.effects import StartExchange
from mesh.errors import DecodeError, TransportError
from mesh.runtime.listener import Listener, ListenLimits
from mesh.runtime.streams import FIRST_FRAME_BYTES_MAX, Asker, AskLimits
from mesh.wire.frames import FrameKind, exchange_frame

HOST = "127.0.0.1"
Until: TypeAlias = Callable[[Callable[[], bool]], Awaitable[None]]


def listening() -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    sock.bind((HOST, 0))
    sock.listen(64)
    return sock


class Peer:
    """A listener that answers each request with its upper case, and says what it was asked."""

    def __init__(
        self,
        limits: ListenLimits | None = None,
        answer: Callable[[bytes], bytes] = bytes.upper,
    ) -> None:
        self.asked: list[bytes] = []
        self.said: list[str] = []
        self.sock = listening()
        self.address = Address(*self.sock.getsockname())
        self._answer = answer
        self.listener = Listener(
            self.sock, trio.current_time, self._on_request, self.said.append, limits
        )

    def _on_request(self, source: Address, data: bytes) -> bytes:
        self.asked.append(data)
        return self._answer(data)


class Replies:
    """What an asker reported, and a way to wait for it."""

    def __init__(self) -> None:
        self.by_id: dict[int, bytes | TransportError] = {}
        self._more = trio.Event()

    def add(self, exchange_id: int, reply: bytes | TransportError) -> None:
        assert exchange_id not in self.by_id, "answered twice"
        self.by_id[exchange_id] = reply
        self._more.set()

    async def of(self, exchange_id: int) -> bytes | TransportError:
        with trio.fail_after(10):
            while exchange_id not in self.by_id:
                self._more = trio.Event()
                await self._more.wait()
        return self.by_id[exchange_id]

    async def error_of(self, exchange_id: int) -> TransportError:
        reply = await self.of(exchange_id)
        assert isinstance(reply, TransportError)
        return reply


@asynccontextmanager
async def asking(
    peer: Peer | None = None, limits: AskLimits | None = None
) -> AsyncIterator[tuple[Asker, Replies]]:
    replies = Replies()
    async with trio.open_nursery() as nursery:
        asker = Asker(nursery, trio.current_time, replies.add, limits)
        nursery.start_soon(asker.run)
        if peer is not None:
            nursery.start_soon(peer.listener.run)
        try:
            yield asker, replies
        finally:
            nursery.cancel_scope.cancel()
            if peer is not None:
                peer.sock.close()


@asynccontextmanager
async def listening_peer(limits: ListenLimits | None = None) -> AsyncIterator[Peer]:
    peer = Peer(limits)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.listener.run)
        yield peer
        nursery.cancel_scope.cancel()
    peer.sock.close()


async def connect(peer: Peer) -> trio.SocketStream:
    return await trio.open_tcp_stream(peer.address.host, peer.address.port)


async def until_closed(stream: trio.SocketStream) -> bytes:
    data = b""
    with trio.fail_after(10):
        while True:
            try:
                piece = await stream.receive_some()
            except trio.BrokenResourceError:
                return data
            if not piece:
                return data
            data += piece


def request(packet: bytes, wire_id: int = 1) -> bytes:
    return exchange_frame(wire_id, FrameKind.REQUEST, packet)


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
        assert (await replies.error_of(1)).errno == errno.ECONNREFUSED


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
        assert "closed before it answered" in str(await replies.error_of(1))


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


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\x00\x00\x00",
        b"\x00\x00\x00\x02ab",
        (FIRST_FRAME_BYTES_MAX + 1).to_bytes(4, "big"),
        exchange_frame(1, FrameKind.REPLY, b"not asked for"),
        b"\x00\x00\x00\x06\x00\x00\x00\x01\x07z",
    ],
)
async def test_a_broken_frame_closes_its_connection_only(data: bytes) -> None:
    async with listening_peer() as peer:
        good, bad = await connect(peer), await connect(peer)
        await bad.send_all(data)
        assert await until_closed(bad) == b""
        assert peer.listener.counters["dropped_bad_frame"] == 1
        await good.send_all(request(b"still here"))
        reply = exchange_frame(1, FrameKind.REPLY, b"STILL HERE")
        assert await good.receive_some() == reply
        await good.aclose()
        await bad.aclose()


async def test_a_later_frame_beyond_the_limit_closes_the_connection() -> None:
    async with listening_peer() as peer:
        stream = await connect(peer)
        await stream.send_all(request(b"a") + b"\x7f\xff\xff\xff")
        await until_closed(stream)
        assert peer.listener.counters["dropped_bad_frame"] == 1
        await stream.aclose()


async def test_a_stream_that_ends_within_a_frame_is_counted() -> None:
    async with listening_peer() as peer:
        stream = await connect(peer)
        await stream.send_all(request(b"cut off")[:7])
        await stream.send_eof()
        await until_closed(stream)
        assert peer.listener.counters["dropped_bad_frame"] == 1
        await stream.aclose()


async def test_a_connection_without_a_first_frame_in_time_is_closed() -> None:
    async with listening_peer(ListenLimits(first_frame_s=0.05)) as peer:
        stream = await connect(peer)
        await stream.send_all(b"\x00\x00")
        await until_closed(stream)
        assert peer.listener.counters["dropped_slow"] == 1
        await stream.aclose()


async def test_a_frame_that_never_ends_is_closed() -> None:
    async with listening_peer(ListenLimits(frame_s=0.1, idle_s=60.0)) as peer:
        stream = await connect(peer)
        await stream.send_all(request(b"fine"))
        assert await stream.receive_some()
        await stream.send_all(request(b"x" * 100)[:50])
        await until_closed(stream)
        assert peer.listener.counters["dropped_slow"] == 1
        await stream.aclose()


async def test_a_slow_frame_within_its_time_is_answered() -> None:
    async with listening_peer() as peer:
        stream = await connect(peer)
        for byte in request(b"drop by drop"):
            await stream.send_all(bytes([byte]))
            await trio.lowlevel.checkpoint()
        assert await stream.receive_some() == exchange_frame(1, FrameKind.REPLY, b"DROP BY DROP")
        await stream.aclose()


async def test_half_received_frames_are_bounded_for_all_together() -> None:
    async with listening_peer(ListenLimits(held_bytes_max=100_000)) as peer:
        greedy = await connect(peer)
        await greedy.send_all(request(b"first"))
        await greedy.receive_some()
        with pytest.raises(trio.BrokenResourceError):
            await greedy.send_all(request(b"x" * 8_000_000))
        assert peer.listener._held_bytes == 0
        await greedy.aclose()


async def test_one_host_gets_its_share_of_connections_and_the_longest_idle_goes_first() -> None:
    async with listening_peer(ListenLimits(connections_per_host_max=2)) as peer:
        streams = [await connect(peer)]
        await streams[0].send_all(request(b"a"))
        assert await streams[0].receive_some()
        for _ in range(2):
            streams.append(await connect(peer))
            await streams[-1].send_all(request(b"b"))
            assert await streams[-1].receive_some()
        assert await until_closed(streams[0]) == b""
        assert peer.listener.counters["dropped_full"] == 1
        assert len(peer.listener._connections) == 2
        for stream in streams:
            await stream.aclose()


async def test_running_out_of_descriptors_is_survived_and_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peer = Peer(ListenLimits(accept_pause_s=0.01))
    real = peer.listener._sock.accept
    failures = 3

    async def accept() -> object:
        nonlocal failures
        if failures:
            failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return await real()

    monkeypatch.setattr(peer.listener._sock, "accept", accept)
    async with asking(peer) as (asker, replies):
        asker.ask(StartExchange(1, peer.address, b"x", 5.0))
        assert await replies.of(1) == b"X"
    assert peer.listener.counters["accept_errors"] == 3
    assert len(peer.said) == 1
    assert "Too many open files" in peer.said[0]


async def test_nobody_beyond_loopback_is_dialled() -> None:
    async with asking() as (asker, replies):
        asker.ask(StartExchange(1, Address("192.0.2.1", 9), b"secret", 5.0))
        error = await replies.error_of(1)
        assert "not on loopback" in str(error)
        assert asker._reach.counters["refused_not_loopback"] == 1
