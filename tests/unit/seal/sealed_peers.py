"""Nodes with seals and addresses, and what passes between them."""

from __future__ import annotations

import random

from mesh.core.address import Address
from mesh.core.ids import MeshId, NodeId
from mesh.seal.datagrams import DatagramSeal
from mesh.seal.key import Key
from mesh.seal.ring import KeyRing, ring_of
from mesh.wire.packet import encode_packet

KEY, OTHER = Key(b"k" * 32), Key(b"o" * 32)
MESH = MeshId(7)


class Peer:
    """A seal with an address; `sent` is what it put on the wire, `got` what it let in."""

    def __init__(
        self, number: int, *, ring: KeyRing | None = None, mesh_id: MeshId = MESH, boot: int = 0
    ) -> None:
        self.node_id = NodeId(number)
        self.address = Address("127.0.0.1", 1000 + number)
        self.ring = ring or ring_of([KEY])
        self.mesh_id = mesh_id
        self.seal = DatagramSeal(
            ring=self.ring,
            node_id=self.node_id,
            mesh_id=lambda: self.mesh_id,
            entropy=random.Random(f"{number}/{boot}").randbytes,
            answer=self.answer,
        )
        self.got: list[bytes] = []
        self.asked: list[Address] = []

    def answer(self, source: Address, packet: bytes) -> bytes:
        if not packet.endswith(b"ping"):
            return b""
        self.asked.append(source)
        return encode_packet(self.mesh_id, self.node_id, (b"ack",))

    def says(self, now: float, to: Peer, text: bytes) -> bytes:
        packet = encode_packet(self.mesh_id, self.node_id, (text,))
        return self.seal.seal(now, to.address, packet)

    def hears(self, now: float, other: Peer, data: bytes) -> list[bytes]:
        """Take a datagram; return what it sends in answer."""
        packets, replies = self.seal.open(now, other.address, data)
        self.got += [packet[18:] for packet in packets]
        assert all(to == other.address for to, _ in replies)
        return [reply for _, reply in replies]


def talk(now: float, a: Peer, b: Peer, text: bytes) -> int:
    """Let `a` say something to `b` and all answers pass; return how many datagrams that took."""
    queue, count = [(a, b, a.says(now, b, text))], 0
    while queue:
        sender, receiver, data = queue.pop(0)
        count += 1
        queue += [(receiver, sender, reply) for reply in receiver.hears(now, sender, data)]
        assert count < 10
    return count


def acquainted() -> tuple[Peer, Peer]:
    a, b = Peer(1), Peer(2)
    talk(0.0, a, b, b"hello")
    talk(0.0, b, a, b"hello")
    return a, b
