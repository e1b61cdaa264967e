"""Every error that Mesh raises on purpose.

A local fault (our own bug, a wrong setting) and a remote fault (a peer's bytes) differ in type, so
that nobody handles the one as the other. Each text says what was expected, what was found and what
to do; the data behind it is kept in attributes.

Source: the split of local and remote protocol faults follows h11.
"""

from __future__ import annotations

import errno as numbers
from typing import Final

OWN_SHORTAGE: Final = frozenset({numbers.EMFILE, numbers.ENFILE, numbers.ENOMEM, numbers.ENOBUFS})
"""What failed so was not even tried, for want of something here."""


class MeshError(Exception):
    """The root of all errors of this package."""


class ConfigError(MeshError):
    """A setting is wrong or contradicts another; nothing was started. Exit code 2."""


class DataDirectoryError(MeshError):
    """The data directory cannot be used (unreadable, foreign, in use); it was not changed."""


class LocalProtocolError(MeshError):
    """Our own code broke a protocol's rule: a bug, never a peer's fault."""


class RemoteProtocolError(MeshError):
    """A peer broke the protocol. The message is dropped and counted; state is unchanged."""


class DecodeError(RemoteProtocolError):
    """Bytes are no valid message. The only error that decoding raises; state is unchanged."""


class VersionError(DecodeError):
    """The peer speaks a protocol version that this node does not.

    Attributes:
        theirs: the version found in the packet's header.
        ours: the range (lowest, highest) that this node speaks, both inclusive.
    """

    def __init__(self, theirs: int, ours: tuple[int, int]) -> None:
        self.theirs = theirs
        self.ours = ours
        super().__init__(
            f"protocol version {theirs} is not spoken here: this node speaks {ours[0]} to {ours[1]}; "
            "upgrade the older side"
        )


class ForeignMeshError(DecodeError):
    """A packet of another mesh arrived.

    Attributes:
        theirs: the mesh id in the packet's header.
        ours: this node's mesh id.
    """

    def __init__(self, theirs: int, ours: int) -> None:
        self.theirs = theirs
        self.ours = ours
        super().__init__(
            f"mesh {theirs:016x} is not ours ({ours:016x}): two meshes never merge by accident; "
            "check the seed addresses and --data (a host changes meshes with another data directory)"
        )


class TransportError(MeshError):
    """A socket failed.

    Attributes:
        errno: the system's error number; ETIMEDOUT for no answer in time, ECONNRESET for a stream that
            ended before the answer, None where nothing was asked of the other end, or its answer was wrong.
    """

    def __init__(self, message: str, errno: int | None = None) -> None:
        self.errno = errno
        super().__init__(message)

    @property
    def is_own_shortage(self) -> bool:
        """Say whether nothing was asked for want of something here: descriptors, memory."""
        return self.errno in OWN_SHORTAGE


class ForeignStreamError(DecodeError, TransportError):
    """A stream carried what no node of Mesh sends: the peer's fault, and the stream is of no use any more."""


class SealError(MeshError):
    """The two ends of a stream do not share a key. The text says which side lacks what, in words for people."""


class MeshUnreachable(MeshError):  # noqa: N818 - the name users know from the documents
    """No local node answers on the control socket. Exit code 3."""


class CommandRefused(MeshError):  # noqa: N818 - reads as what happened
    """The node understood a command and refused it; nothing changed. Exit code 1."""
