"""What two ends of a stream say to each other when they share no key: notices, and these in words.

A notice is not sealed, and nobody has to believe it: it changes the words of an error, and nothing else.
This module knows no cryptography, so that a node without a key can say what it lacks.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

MARK: Final = b"mesh sealed stream"
VERSION: Final = 1

_HEAD: Final = struct.Struct(f">{len(MARK)}sBB")


class Kind(IntEnum):
    """What an unsealed frame of a handshake is."""

    ASK = 0
    ANSWER = 1
    OTHER_KEY = 2
    NO_KEY = 3
    KEY_NEEDED = 4


def notice(kind: Kind) -> bytes:
    """Return the body of a notice."""
    return _HEAD.pack(MARK, VERSION, kind)


def kind_of(body: bytes) -> Kind | None:
    """Return what a first frame is; None: nothing of a handshake."""
    if len(body) < _HEAD.size or not body.startswith(MARK):
        return None
    _, version, kind = _HEAD.unpack_from(body)
    return Kind(kind) if version == VERSION and kind <= max(Kind) else None


def notice_of(body: bytes) -> Kind | None:
    """Return which notice a frame is; None if it is none."""
    kind = kind_of(body)
    return kind if kind is not None and kind >= Kind.OTHER_KEY else None


def in_words(kind: Kind, tried: list[str]) -> str:
    """Return a notice for people, as a predicate; `tried` names the keys that this node holds."""
    if kind is Kind.OTHER_KEY:
        mine = " and ".join(tried)
        return (
            f"holds another key than this node (here: {mine}): the mesh has changed its key, or it is another mesh; "
            "join with the key file of a member (--key FILE)"
        )
    if kind is Kind.NO_KEY:
        return "runs without a key, and this node with one: the same key is expected on both (--key FILE)"
    return "wants a key, and this node has none: join with the key file of a member (--key FILE)"
