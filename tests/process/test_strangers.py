"""Bytes from strangers on a running node's port: counted and dropped, and nothing else happens."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest

from mesh.core.address import Address, split_host_port
from mesh.core.ids import MeshId, NodeId, low32
from mesh.demo.witness import Witness
from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess
from mesh.runtime.streams import GREETING
from mesh.wire.frames import FrameKind, FrameReader, exchange_frame, frame, split_exchange
from mesh.wire.packet import (
    DATAGRAM_BYTES_MAX,
    FRAME_BYTES_MAX,
    HEADER,
    MAGIC,
    VERSION,
    VERSIONS,
    decode_packet,
    encode_message,
    encode_packet,
)
from mesh.wire.swim_messages import Ping, Refused

ANSWER_TIMEOUT_S = 5.0


@pytest.fixture(scope="module")
def pair(shared_fleet: Fleet) -> tuple[NodeProcess, NodeProcess]:
    nodes = shared_fleet.start("a"), shared_fleet.start("b")
    shared_fleet.wait_whole()
    return nodes


@pytest.fixture(autouse=True)
def is_undisturbed(pair: tuple[NodeProcess, NodeProcess], shared_fleet: Fleet) -> Iterator[None]:
    """After every test both nodes are the same, see each other, and nobody was accused."""
    before = [node.call("status") for node in pair]
    witnesses = [Witness(node) for node in pair]
    yield
    for node, old in zip(pair, before, strict=True):
        new = node.call("status")
        assert (new["pid"], new["boot"], new["phase"]) == (old["pid"], old["boot"], "member")
    shared_fleet.wait_whole(5.0)
    for witness in witnesses:
        assert [e for e in witness.events() if e["kind"] in {"dead", "leave", "conflict"}] == []


def ping_packet(node: NodeProcess, *, mesh_id: int | None = None, version: int = VERSION) -> bytes:
    status = node.call("status")
    target = low32(int(status["node_id"], 16))
    of = int(status["mesh_id"], 16) if mesh_id is None else mesh_id
    packet = encode_packet(MeshId(of), NodeId(99), [encode_message(Ping(1, target, 0))])
    return bytes([packet[0], version]) + packet[2:]


def address_of(node: NodeProcess) -> Address:
    return Address(*split_host_port(node.call("status")["address"]))


def garbage(node: NodeProcess) -> Iterator[bytes]:
    """Datagrams of every kind of wrong."""
    rng = random.Random(7)
    good = ping_packet(node)
    yield b""
    for size in (1, 2, HEADER.size - 1, HEADER.size, 100, DATAGRAM_BYTES_MAX, 9_000, 65_507):
        yield rng.randbytes(size)
        yield bytes([MAGIC, VERSION]) + rng.randbytes(max(0, size - 2))
    for cut in range(len(good)):
        yield good[:cut]
    for _ in range(200):
        place = rng.randrange(len(good))
        yield good[:place] + bytes([good[place] ^ (1 << rng.randrange(8))]) + good[place + 1 :]
    yield good + b"\xc1"
    yield good[: HEADER.size] + b"\xdd\xff\xff\xff\xff"  # a list of four thousand million things
    yield good[: HEADER.size] + b"\x91" * 1000  # lists in lists


def dropped(node: NodeProcess, name: str) -> int:
    return int(node.call("status")["counters"].get(name, 0))


def test_garbage_in_datagrams_is_counted_and_dropped(
    pair: tuple[NodeProcess, NodeProcess],
) -> None:
    node = pair[0]
    before = dropped(node, "dropped_garbage")
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for data in garbage(node):
            sock.sendto(data, address_of(node))
            sent += 1
    assert sent >= 240
    wait_until(
        lambda: dropped(node, "dropped_garbage") >= before + 60 or None,
        ANSWER_TIMEOUT_S,
        lambda: AssertionError(f"too few counted: {node.call('status')['counters']}"),
    )


@pytest.mark.parametrize(
    ("counter", "settings"),
    [("dropped_foreign_mesh", {"mesh_id": 12345}), ("dropped_version", {"version": 99})],
)
def test_other_meshes_and_versions_in_datagrams_are_counted(
    pair: tuple[NodeProcess, NodeProcess], counter: str, settings: dict[str, int]
) -> None:
    node = pair[0]
    before = dropped(node, counter)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(ping_packet(node, **settings), address_of(node))
    wait_until(
        lambda: dropped(node, counter) == before + 1 or None,
        ANSWER_TIMEOUT_S,
        lambda: AssertionError(f"not counted: {node.call('status')['counters']}"),
    )


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">I", FRAME_BYTES_MAX + 1000) + b"x",  # oversized
        struct.pack(">I", (1 << 32) - 1),
        frame(b""),
        frame(b"\0\0"),
        frame(b"\0\0\0\1\7rest"),  # neither request nor reply
        exchange_frame(1, FrameKind.REQUEST, b"no packet"),
        exchange_frame(1, FrameKind.REPLY, b"nobody asked"),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_garbage_on_a_stream_costs_that_connection_only(
    pair: tuple[NodeProcess, NodeProcess], data: bytes
) -> None:
    with socket.create_connection(address_of(pair[0]), timeout=ANSWER_TIMEOUT_S) as sock:
        with suppress(OSError):  # it may close before all of it was sent
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            while sock.recv(65536):
                pass


def test_truncated_frame_ends_without_an_answer(pair: tuple[NodeProcess, NodeProcess]) -> None:
    packet = ping_packet(pair[0])
    whole = exchange_frame(1, FrameKind.REQUEST, packet)
    with socket.create_connection(address_of(pair[0]), timeout=ANSWER_TIMEOUT_S) as sock:
        sock.sendall(whole[:-1])
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(65536) == b""


def test_stream_of_another_version_is_told_both_versions(
    pair: tuple[NodeProcess, NodeProcess],
) -> None:
    request = exchange_frame(5, FrameKind.REQUEST, ping_packet(pair[0], version=99))
    with socket.create_connection(address_of(pair[0]), timeout=ANSWER_TIMEOUT_S) as sock:
        sock.sendall(request)
        frames: list[bytes] = []
        reader = FrameReader(FRAME_BYTES_MAX)
        while not frames:
            data = sock.recv(65536)
            assert data, "the node closed the connection without a word"
            frames = reader.feed(data)
    exchange_id, kind, packet = split_exchange(frames[0])
    (answer,) = decode_packet(packet, FRAME_BYTES_MAX).messages
    assert (exchange_id, kind) == (5, FrameKind.REPLY)
    assert isinstance(answer, Refused)
    assert answer.code == "version"
    assert "99" in answer.text
    assert f"{VERSIONS[0]} to {VERSIONS[1]}" in answer.text


def test_many_silent_connections_keep_nobody_out(pair: tuple[NodeProcess, NodeProcess]) -> None:
    at = address_of(pair[0])
    idle = [socket.create_connection(at, timeout=ANSWER_TIMEOUT_S) for _ in range(200)]
    try:
        pair[1].call("tasks")
        assert pair[0].call("status")["phase"] == "member"
    finally:
        for sock in idle:
            sock.close()


def test_a_node_can_join_while_slow_senders_hold_every_place(fleet: Fleet) -> None:
    at = address_of(fleet.start("first"))
    begun = GREETING + struct.pack(">I", 100_000) + b"z"
    held = [socket.create_connection(at, timeout=ANSWER_TIMEOUT_S) for _ in range(600)]
    try:
        for sock in held:
            with suppress(OSError):  # its place was given to another already
                sock.sendall(begun)
        fleet.start("late")
        fleet.wait_whole()
    finally:
        for sock in held:
            sock.close()
