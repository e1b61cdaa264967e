"""What a stream passes before its frames are read: a handshake where there is a key, nothing where there is none.

The asking half enters, the answering half admits; both get a passage that seals and opens the bodies of
frames from then on. A node without a key tells whoever comes with one what is missing, and the other
way round.
"""

from __future__ import annotations

from typing import Final, Protocol

import trio

from mesh.errors import SealError
from mesh.seal.notices import Kind, in_words, kind_of, notice, notice_of
from mesh.seal.ring import KEYS_MAX

STRANGER_BYTES_MAX: Final = 4_096
"""The longest first frame that a node with a key reads: a hello, or what deserves a notice."""

SEAL_BYTES_MAX: Final = 16
"""By how much a passage lengthens a frame."""

HELLOS_MAX: Final = KEYS_MAX
"""A stranger may offer so many keys on one connection."""


class Passage(Protocol):
    """Both directions of one admitted stream."""

    @property
    def is_ring_other(self) -> bool:
        """Say whether the other end's ring differs from ours."""
        ...

    @property
    def is_ring_changed(self) -> bool:
        """Say whether our ring has changed since the stream was opened: the other end may not know."""
        ...

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

    @property
    def first_bytes_max(self) -> int | None:
        """The longest first frame; None: the listener's own limit."""
        ...

    @property
    def is_plain(self) -> bool:
        """Say whether the first frame is a request already."""
        ...

    async def enter(self, stream: trio.SocketStream) -> Passage:
        """Open a stream from the asking end. Raises SealError, DecodeError or what the stream raises."""
        ...

    def admit(self, first: bytes) -> tuple[bytes, Passage | None]:
        """Return what to answer to a stranger's frame, b"" for nothing, and the passage once it may pass."""
        ...


class PlainPassage:
    """Frames as they are; a notice from a node with a key ends the stream in plain words."""

    is_ring_other = False
    is_ring_changed = False

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
