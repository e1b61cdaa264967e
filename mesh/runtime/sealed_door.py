"""The door of a node with a key.

Imported only where there is a key: it needs cryptography, which costs a node ten megabytes.
"""

from __future__ import annotations

import os

import trio

from mesh.errors import DecodeError, SealError
from mesh.runtime.door import STRANGER_BYTES_MAX, Passage
from mesh.runtime.keystore import KeyStore
from mesh.seal.handshake import AskerHandshake, Opened, answer_hello
from mesh.seal.ring import KeyRing
from mesh.wire.frames import FrameReader, frame


class SealedPassage:
    """Frames sealed with keys of their own."""

    def __init__(self, ring: KeyRing, opened: Opened) -> None:
        self._ring = ring
        self._opened = opened
        self._digest = ring.digest

    @property
    def is_ring_changed(self) -> bool:
        """Say whether this node's ring has changed since the stream was opened."""
        return self._digest != self._ring.digest

    @property
    def is_ring_other(self) -> bool:
        """Say whether the other end's ring was another than this node's is now."""
        return self._opened.their_digest != self._ring.digest

    def seal(self, body: bytes) -> bytes:
        """Return the next frame's body, sealed."""
        return self._opened.channel.seal(body)

    def open(self, body: bytes) -> bytes:
        """Return the next frame's body. Raises DecodeError."""
        return self._opened.channel.open(body)

    def is_current(self) -> bool:
        """Say whether the ring still holds the stream's key."""
        return self._ring.find(self._opened.key_id) is not None


class SealedDoor:
    """Admits whoever proves a key of the ring."""

    first_bytes_max = STRANGER_BYTES_MAX
    is_plain = False

    def __init__(self, keys: KeyStore) -> None:
        self._keys = keys

    async def enter(self, stream: trio.SocketStream) -> Passage:
        """Prove a key to the other end, and let it prove the same."""
        handshake = AskerHandshake(self._keys.ring, os.urandom)
        reader = FrameReader(STRANGER_BYTES_MAX)
        hello = handshake.hello()
        while True:
            await stream.send_all(frame(hello))
            bodies: list[bytes] = []
            while not bodies:
                data = await stream.receive_some(STRANGER_BYTES_MAX)
                if not data:
                    raise SealError("hung up before it proved that it holds the key of this mesh")
                bodies = reader.feed(data)
            if len(bodies) > 1 or not reader.is_empty:
                raise DecodeError("one frame is expected as the answer to a hello, found more")
            found = handshake.take(bodies[0])
            if isinstance(found, Opened):
                return SealedPassage(self._keys.ring, found)
            hello = found

    def admit(self, first: bytes) -> tuple[bytes, Passage | None]:
        """Let in who proves a key of the ring; tell others what is missing."""
        answer, opened = answer_hello(self._keys.ring, os.urandom, first)
        return answer, None if opened is None else SealedPassage(self._keys.ring, opened)
