"""What a seal costs: processor time of a real node's path for each ping that it answers, with and without a key.

    python bench/seal.py --rounds 15 --pings 20000

A node in a process of its own is pinged by a member that it knows, over loopback: socket, opening, node,
sealing, socket. Sealed and unsealed rounds take turns, so that a busy machine is equally busy for both;
the time is the processor's, of that process alone.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import socket
import statistics
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import trio

from mesh.core.address import Address
from mesh.core.ids import MeshId, NodeId, low32
from mesh.node.acquaint import acquaint
from mesh.node.config import Metadata, NodeConfig, profile
from mesh.node.node import Node
from mesh.runtime.driver import Driver, Hands
from mesh.runtime.keystore import KeyStore
from mesh.runtime.sealing import sealing_for
from mesh.runtime.udp import UdpSocket
from mesh.seal.datagrams import DatagramSeal
from mesh.seal.key import KEY_BYTES, Key
from mesh.seal.ring import ring_of
from mesh.wire.packet import encode_message, encode_packet
from mesh.wire.swim_messages import Ping

MESH: Final = MeshId(7)
NODE, PEER = NodeId(1 << 40), NodeId(2 << 40)
WINDOW: Final = 32
"""Pings on their way at once."""

WARM_UP: Final = 1_920


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round's cost: processor time for each ping and its answer."""

    sealed: bool
    ping_us: float


def _config(node_id: NodeId, address: Address) -> NodeConfig:
    return NodeConfig(
        node_id=node_id,
        boot=1,
        mesh_id=MESH,
        name=f"n{node_id}",
        is_name_given=True,
        address=address,
        meta=Metadata(version="bench"),
        swim=profile("wan"),
        seeds=(),
        found=False,
        expect=0,
        unix_offset_s=0.0,
    )


def _bound() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    return sock


def serve(pipe: Connection, secret: bytes, peer: Address, pings: int) -> None:
    """Run a node that knows a member at `peer`; send back its address, then the time that `pings` took."""
    keys = KeyStore(Path("/nonexistent"), ring_of([Key(secret)])) if secret else None
    sock = _bound()
    node = Node(_config(NODE, Address(*sock.getsockname())), 1)
    other = Node(_config(PEER, peer), 2)
    now = time.monotonic()
    node.start(now)
    other.start(now)
    acquaint([(node, now), (other, now)])
    pipe.send(sock.getsockname())
    trio.run(_answer, node, sock, keys, pings, pipe)
    sock.close()


async def _answer(
    node: Node, sock: socket.socket, keys: KeyStore | None, pings: int, pipe: Connection
) -> None:
    udp = UdpSocket(sock)
    driver = Driver(node, time.monotonic)
    sealing = sealing_for(
        keys, node_id=NODE, mesh_id=lambda: node.identity.mesh_id, clock=time.monotonic, say=print
    )
    send, take, _ = sealing.between(udp.send, driver)
    driver.attach(Hands(**{**_no_hands(), "send": send}))
    count = 0
    begin_ns = 0

    def taken(source: Address, data: bytes) -> None:
        nonlocal count, begin_ns
        count += 1
        if count == WARM_UP:
            begin_ns = time.process_time_ns()
        take(source, data)
        if count == WARM_UP + pings:
            pipe.send(time.process_time_ns() - begin_ns)
            scope.cancel()

    with trio.CancelScope() as scope:
        await udp.receive(taken)


def _no_hands() -> dict[str, Any]:
    def refuse(*what: object) -> None:
        """Leave it: nothing but datagrams is measured."""

    return dict.fromkeys(Hands.__dataclass_fields__, refuse)


def flood(sock: socket.socket, to: Address, secret: bytes, pings: int) -> None:
    """Ping the node so often, no more than WINDOW at once, and wait for each answer."""
    ring = ring_of([Key(secret)]) if secret else None
    seal = ring and DatagramSeal(
        ring=ring,
        node_id=PEER,
        mesh_id=lambda: MESH,
        entropy=os.urandom,
        answer=lambda _source, _packet: b"",
    )
    target = low32(NODE)
    sent = 0
    while sent < pings:
        for _ in range(WINDOW):
            sent += 1
            packet = encode_packet(MESH, PEER, (encode_message(Ping(sent, target, 0)),))
            sock.sendto(seal.seal(time.monotonic(), to, packet) if seal else packet, to)
        for _ in range(WINDOW):
            data, source = sock.recvfrom(2_048)
            if seal and sent <= WARM_UP:
                seal.open(time.monotonic(), Address(*source), data)


def measure(secret: bytes, pings: int) -> Round:
    """Hold one round."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    sock = _bound()
    sock.settimeout(10.0)
    peer = Address(*sock.getsockname())
    process = context.Process(target=serve, args=(theirs, secret, peer, pings))
    process.start()
    theirs.close()
    try:
        flood(sock, Address(*ours.recv()), secret, pings + WARM_UP)
        took_ns = ours.recv()
    finally:
        sock.close()
        process.join(10.0)
        process.kill()
    return Round(sealed=bool(secret), ping_us=took_ns / pings / 1e3)


def to_text(rounds: list[Round]) -> str:
    """Return the medians and what the seal adds."""
    plain, sealed = (
        statistics.median(r.ping_us for r in rounds if r.sealed is is_sealed)
        for is_sealed in (False, True)
    )
    pairs = zip(rounds[::2], rounds[1::2], strict=True)
    more = statistics.median(
        (a.ping_us if a.sealed else b.ping_us) / (b.ping_us if a.sealed else a.ping_us) - 1
        for a, b in pairs
    )
    return "\n".join(
        (
            f"without a key  {plain:7.1f} µs for a ping and its answer",
            f"with a key     {sealed:7.1f} µs",
            f"the seal adds  {sealed - plain:7.1f} µs, {100 * more:.1f} % (median of {len(rounds) // 2} pairs)",
        )
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--pings", type=int, default=20_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    pings = options.pings // WINDOW * WINDOW
    rounds = []
    secret = random.SystemRandom().randbytes(KEY_BYTES)
    for number in range(options.rounds):
        pair = (b"", secret) if number % 2 else (secret, b"")
        rounds += [measure(one, pings) for one in pair]
    if options.json:
        print(json.dumps([{"sealed": r.sealed, "ping_us": r.ping_us} for r in rounds]))
    else:
        print(to_text(rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
