"""What a stream passes before its frames are read: a handshake where there is a key, nothing where there is none.

The asking half enters, the answering half admits; both get a passage that seals and opens the bodies of
frames from then on. A node without a key tells whoever comes with one what is missing, and the other
way round.
"""

from __future__ import annotations

import os
from typing import Final, Protocol

import msgpack
import trio

from mesh.errors import DecodeError, SealError
from mesh.runtime.keystore import KeyStore
from mesh.seal.handshake import AskerHandshake, Opened, answer_hello
from mesh.seal.notices import Kind, in_words, kind_of, notice, notice_of
from mesh.seal.ring import KEYS_MAX, RING_BYTES_MAX, KeyRing, decode_ring
from mesh.wire.frames import FrameKind, FrameReader, exchange_body, frame

STRANGER_BYTES_MAX: Final = 4_096
"""The longest first frame that a node with a key reads: a hello, or what deserves a notice."""

HELLOS_MAX: Final = KEYS_MAX
"""A stranger may offer so many keys on one connection."""

_TEXT_BYTES_MAX: Final = 400


class Passage(Protocol):
    """Both directions of one admitted stream."""

    is_ring_other: bool
    """The other end's ring differs from ours."""

    def seal(self, body: bytes) -> bytes:
        """Return a frame's body as it goes out."""
        ...

    def open(self, body: bytes) -> bytes:
        """Return a frame's body as it was meant. Raises DecodeError."""
        ...

    def is_current(self) -> bool:
        """Say whether the key that the stream was opened with is still held."""
        ...


class Door(Protocol):
    """Lets streams in and out."""

    first_bytes_max: int | None
    """The longest first frame; None: the listener's own limit."""

    is_plain: bool
    """The first frame is a request already."""

    async def enter(self, stream: trio.SocketStream) -> Passage:
        """Open a stream from the asking end. Raises SealError, DecodeError or what the stream raises."""
        ...

    def admit(self, first: bytes) -> tuple[bytes, Passage | None]:
        """Return what to answer to a stranger's frame, b"" for nothing, and the passage once it may pass."""
        ...


class PlainPassage:
    """Frames as they are; a notice from a node with a key ends the stream in plain words."""

    is_ring_other = False

    def seal(self, body: bytes) -> bytes:
        """Return it as it is."""
        return body

    def open(self, body: bytes) -> bytes:
        """Return it as it is. Raises SealError for a notice."""
        found = notice_of(body)
        if found is not None:
            raise SealError(in_words(found, []))
        return body

    def is_current(self) -> bool:
        """Say True: there is no key to lose."""
        return True


class PlainDoor:
    """The door of a node without a key: loopback only, and open."""

    first_bytes_max = None
    is_plain = True

    async def enter(self, _stream: trio.SocketStream) -> Passage:
        """Enter at once."""
        return PlainPassage()

    def admit(self, first: bytes) -> tuple[bytes, Passage | None]:
        """Admit everybody but who speaks sealed, who is told that there is no key here."""
        if kind_of(first) is Kind.ASK:
            return notice(Kind.NO_KEY), None
        return b"", PlainPassage()


class SealedPassage:
    """Frames sealed with keys of their own."""

    def __init__(self, ring: KeyRing, opened: Opened) -> None:
        self._ring = ring
        self._opened = opened
        self.is_ring_other = opened.their_digest != ring.digest
        self.seal = opened.channel.seal
        self.open = opened.channel.open

    def is_current(self) -> bool:
        """Say whether the ring still holds the stream's key."""
        return self._ring.find(self._opened.key_id) is not None


class SealedDoor:
    """The door of a node with a key."""

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


def ring_offer(ring: KeyRing) -> bytes:
    """Return the body of a frame that offers this node's ring."""
    return exchange_body(0, FrameKind.RING, ring.to_bytes())


def take_offer(keys: KeyStore, data: bytes) -> bytes:
    """Merge an offered ring and return the answer: the ring as it is now, and why it is not kept, if so.

    Raises:
        DecodeError: what is offered is no ring.
    """
    problem = keys.merge(decode_ring(data))
    return bytes(msgpack.packb([keys.ring.to_bytes(), problem]))


def read_answer(data: bytes) -> tuple[KeyRing, str]:
    """Return the ring and the problem that an answer to an offer tells.

    Raises:
        DecodeError: it is no such answer.
    """
    try:
        ring, problem = msgpack.unpackb(data, max_array_len=2, max_bin_len=RING_BYTES_MAX)
        text = str(problem)[:_TEXT_BYTES_MAX]
    except Exception as error:
        raise DecodeError(
            f"an answer to a key ring is expected, found {type(error).__name__}"
        ) from error
    if type(ring) is not bytes:
        raise DecodeError("an answer to a key ring is expected, found no ring in it")
    return decode_ring(ring), text
