"""A listener behind the door of a key, and rings that are kept nowhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from mesh.core.address import Address
from mesh.core.ids import MeshId
from mesh.runtime.door import PlainDoor
from mesh.runtime.keystore import KeyStore
from mesh.runtime.listener import Listener, ListenLimits
from mesh.runtime.ringpass import RingPass
from mesh.runtime.sealed_door import SealedDoor
from mesh.runtime.streams import connect
from mesh.seal.key import Key
from mesh.seal.ring import ring_of
from tests.runtime.peers import listening

MESH = MeshId(7)


def store(*keys: Key) -> KeyStore:
    """A ring that is kept nowhere: nothing of these tests writes it."""
    return KeyStore(Path("/nonexistent/keys"), ring_of(keys), MESH)


def passing(keys: KeyStore, mesh_id: MeshId = MESH) -> RingPass:
    """What a member of a mesh does with a ring, its own and those of others."""
    return RingPass(keys, lambda: mesh_id)


class Keyed:
    """A listener with a key that answers each request with its upper case."""

    def __init__(self, keys: KeyStore | None, limits: ListenLimits | None = None) -> None:
        self.asked: list[bytes] = []
        self.dialled: list[trio.SocketStream] = []
        self.sock = listening()
        self.address = Address(*self.sock.getsockname())
        self.listener = Listener(
            self.sock,
            trio.current_time,
            self._answer,
            lambda _: None,
            limits,
            door=PlainDoor() if keys is None else SealedDoor(keys),
            on_ring=None if keys is None else passing(keys).answer,
        )

    async def dial(self) -> trio.SocketStream:
        """Connect as anybody may; closed with this peer."""
        stream = await connect(self.address)
        self.dialled.append(stream)
        return stream

    def _answer(self, _source: Address, data: bytes) -> bytes:
        self.asked.append(data)
        return data.upper()


@asynccontextmanager
async def keyed(keys: KeyStore | None, limits: ListenLimits | None = None) -> AsyncIterator[Keyed]:
    peer = Keyed(keys, limits)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.listener.run)
        try:
            yield peer
        finally:
            nursery.cancel_scope.cancel()
            for stream in peer.dialled:
                stream.socket.close()
            peer.sock.close()
