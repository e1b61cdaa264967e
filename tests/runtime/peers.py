"""Both halves of exchanges over real TCP, and bytes that break them."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio
import trio.testing

from mesh.core.address import Address
from mesh.errors import TransportError
from mesh.runtime.listener import Listener, ListenLimits
from mesh.runtime.streams import Asker, AskLimits
from mesh.wire.frames import FrameKind, exchange_frame

HOST = "127.0.0.1"


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


def half(size: int) -> bytes:
    """The beginning of a frame that is never ended."""
    return (size + 1_000).to_bytes(4, "big") + b"z" * size


async def until_bytes(stream: trio.SocketStream, count: int) -> bytes:
    data = b""
    with trio.fail_after(10):
        while len(data) < count:
            piece = await stream.receive_some()
            assert piece, f"closed after {len(data)} bytes"
            data += piece
    return data
