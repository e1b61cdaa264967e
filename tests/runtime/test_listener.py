"""Exchanges over real TCP, the answering half: broken frames, slow ones, and who keeps its place."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest
import trio
import trio.testing

from mesh.core.effects import StartExchange
from mesh.runtime.listener import ListenLimits
from mesh.runtime.streams import FIRST_FRAME_BYTES_MAX, GREETING
from mesh.wire.frames import FrameKind, exchange_frame
from tests.runtime.peers import (
    Peer,
    asking,
    connect,
    half,
    listening_peer,
    request,
    until_bytes,
    until_closed,
)

Until: TypeAlias = Callable[[Callable[[], bool]], Awaitable[None]]


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


async def test_a_strangers_half_frames_cost_no_members_frame() -> None:
    async with listening_peer(ListenLimits(held_bytes_max=300_000)) as peer:
        member, stranger = await connect(peer), await connect(peer)
        await member.send_all(request(b"first"))
        await member.receive_some()
        await stranger.send_all(GREETING + half(200_000))
        await trio.testing.wait_all_tasks_blocked(0.01)
        await member.send_all(request(b"m" * 250_000))
        assert len(await until_bytes(member, 250_009)) == 250_009
        assert await until_closed(stranger) == b""
        assert peer.listener._held_bytes == 0
        await member.aclose()
        await stranger.aclose()


@pytest.mark.parametrize("first", [b"", GREETING + (100_000).to_bytes(4, "big") + b"z"])
async def test_connections_that_only_are_held_keep_neither_members_nor_newcomers_out(
    first: bytes,
) -> None:
    async with listening_peer(ListenLimits(connections_max=8)) as peer:
        member = await connect(peer)
        await member.send_all(request(b"a"))
        assert await member.receive_some()
        held = []
        for _ in range(20):
            held.append(await connect(peer))
            await held[-1].send_all(first)
        newcomer = await connect(peer)
        await newcomer.send_all(request(b"b"))
        assert await until_bytes(newcomer, 10)
        await member.send_all(request(b"c"))  # and who was known keeps its connection
        assert await until_bytes(member, 10)
        assert len(peer.listener._connections) <= 8
        for stream in (member, newcomer, *held):
            await stream.aclose()


async def test_a_frame_that_gets_nowhere_costs_its_connection_its_place_when_all_are_taken() -> (
    None
):
    async with listening_peer(ListenLimits(connections_max=2, stalled_s=0.0)) as peer:
        stalled = [await connect(peer) for _ in range(2)]
        for stream in stalled:
            await stream.send_all(request(b"known"))
            assert await stream.receive_some()
            await stream.send_all(half(10))
        await trio.testing.wait_all_tasks_blocked(0.01)
        newcomer = await connect(peer)
        await newcomer.send_all(request(b"b"))
        assert await until_bytes(newcomer, 10)
        assert await until_closed(stalled[0]) == b""
        for stream in (newcomer, *stalled):
            await stream.aclose()


async def test_members_on_loopback_share_one_host_and_no_limit_of_it() -> None:
    async with listening_peer(ListenLimits(connections_per_host_max=2)) as peer:
        streams = [await connect(peer) for _ in range(6)]
        for stream in streams:
            await stream.send_all(request(b"b"))
            assert await stream.receive_some()
        assert len(peer.listener._connections) == 6
        for stream in streams:
            await stream.aclose()


async def test_one_host_gets_its_share_of_connections_and_the_longest_idle_goes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mesh.runtime.listener.is_loopback", lambda _: False)
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
