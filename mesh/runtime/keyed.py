"""What a node with a key puts between its sockets and its driver: datagrams sealed, streams behind a door."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import trio

from mesh.core.address import Address
from mesh.core.events import EventKind
from mesh.core.ids import MeshId, NodeId
from mesh.errors import DecodeError
from mesh.runtime.clock import Clock
from mesh.runtime.control import Service
from mesh.runtime.keydesk import KeyDesk
from mesh.runtime.keystore import KeyStore
from mesh.runtime.port import SealedPort
from mesh.runtime.ringpass import RingPass, read_told
from mesh.runtime.sealed_door import SealedDoor
from mesh.runtime.sealing import Inner, Members, Pass
from mesh.seal.datagrams import DatagramSeal
from mesh.wire.packet import decode_packet
from mesh.wire.swim_messages import Ping

SETTLE_S: Final = 1.0
"""The pause between two tries to take over the ring of the mesh."""


class KeyedSealing:
    """One ring for datagrams, streams and `mesh key`; whoever meets a later ring takes it over."""

    def __init__(
        self,
        keys: KeyStore,
        *,
        node_id: NodeId,
        mesh_id: Callable[[], MeshId],
        clock: Clock,
        say: Callable[[str], None],
    ) -> None:
        self.door = SealedDoor(keys)
        self._rings = RingPass(keys, mesh_id)
        self._desk: KeyDesk | None = None
        self._seal: DatagramSeal | None = None
        self._entered = trio.Event()
        self._keys = keys
        self._node_id = node_id
        self._mesh_id = mesh_id
        self._clock = clock
        self._say = say

    def describe(self) -> Mapping[str, Any]:
        """Return the ids of the keys, the sealing one first."""
        return {"keys": [key.name for key in self._keys.ring]}

    def between(self, send: Pass, inner: Inner) -> tuple[Pass, Pass, Mapping[str, int]]:
        """Return a sealing `send` and an opening `take`, and counts of what did not open."""

        def answer(source: Address, packet: bytes) -> bytes:
            return inner.handle_request(source, packet) if is_lone_ping(packet) else b""

        seal = self._seal = DatagramSeal(
            ring=self._keys.ring,
            node_id=self._node_id,
            mesh_id=self._mesh_id,
            entropy=os.urandom,
            answer=answer,
        )
        port = SealedPort(seal, self._clock, send=send, take=inner.handle_datagram)
        return port.send, port.take, seal.counters

    @property
    def era(self) -> object:
        """The keys, the mesh and the session that what is sealed ahead is bound to."""
        return None if self._seal is None else self._seal.era

    def seal_ahead(self, receiver: NodeId, packet: bytes) -> bytes:
        """Return what to send to one member when this node sends nothing any more. After `between`."""
        assert self._seal is not None, "what seals is built by `between`"
        return self._seal.seal_ahead(receiver, packet)

    def offer(self) -> bytes:
        """Return the body of a frame that offers this node's ring."""
        return self._rings.offer()

    def on_offer(self, data: bytes) -> bytes:
        """Take over what another member knows later, and answer with the ring as it is then."""
        before = self._keys.ring.digest
        answer = self._rings.answer(data)
        is_changed = self._keys.ring.digest != before
        self._tell(before, read_told(answer).problem if is_changed else "")
        return answer

    def on_answer(self, data: bytes) -> None:
        """Take over what another member answered to an offer."""
        before = self._keys.ring.digest
        self._tell(before, self._rings.take(data).problem)

    def service(self, members: Members) -> Service:
        """Return what answers `mesh key`."""
        self._desk = KeyDesk(self._keys, self.door, self._rings, members)
        return self._desk.serve

    def note(self, kind: EventKind) -> None:
        """Hear what happened to this node: whoever founds a mesh brings its keys, whoever enters takes them over."""
        if kind is EventKind.FOUND:
            self._tell(self._keys.ring.digest, self._rings.count())
        elif kind is EventKind.ENTER:
            self._entered.set()

    def begin_anew(self) -> None:
        """This host's address has changed: whoever is at an address proves itself there anew."""
        if self._seal is not None:
            self._seal.begin_anew()

    async def run(self) -> None:
        """Once this node has entered a mesh, see to it that it holds the keys that count there."""
        await self._entered.wait()
        while self._desk is not None:
            before = self._keys.ring.digest
            counts = await self._desk.settle()
            self._tell(before, "")
            if counts:
                return
            await trio.sleep(SETTLE_S)

    def _tell(self, before: bytes, problem: str) -> None:
        if self._keys.ring.digest != before:
            first, *others = self.describe()["keys"]
            more = f", {', '.join(others)} opened too" if others else ""
            self._say(f"the key ring was changed, as a member told: sealed with key {first}{more}")
        if problem:
            self._say(f"warning: {problem}")


def is_lone_ping(packet: bytes) -> bool:
    """Say whether a plain packet only asks whether this node is there: to answer that changes nothing."""
    try:
        messages = decode_packet(packet).messages
    except DecodeError:
        return False
    return len(messages) == 1 and isinstance(messages[0], Ping)
