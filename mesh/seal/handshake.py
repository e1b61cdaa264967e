"""Two ends of a stream prove the key to each other, and draw keys for this stream alone.

    asker                                  answerer
    hello: key id, 16 random bytes, tag ─►            the tag shows that it holds a key of the ring
                                        ◄─ hello: 16 random bytes, tag     so does this, for both random parts
    everything after is sealed with keys derived from the key and both random parts

A stream that was recorded and is played back meets other random bytes, and opens nothing. An answerer
that holds another key, or none, says so in a notice that nobody has to believe: it changes the words
of the error, and nothing else. What is read of a stranger before its tag was checked is one frame of
`HELLO_BYTES`.

Both hellos carry the digest of the sender's ring, so that whoever knows a later one passes it on.

Source: our own, after the pre-shared key handshakes of [RFC 8446 §2.2] without a Diffie-Hellman part:
whoever learns the key can read what was recorded (docs/security.md).
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from mesh.errors import DecodeError, SealError
from mesh.seal.channel import Channel
from mesh.seal.key import Key
from mesh.seal.ring import DIGEST_BYTES, KeyRing

_MARK: Final = b"mesh sealed stream"
VERSION: Final = 1
_RANDOM_BYTES: Final = 16
_TAG_BYTES: Final = 16
_ASK: Final = struct.Struct(f">{len(_MARK)}sBB4s{_RANDOM_BYTES}s{DIGEST_BYTES}s")
_ANSWER: Final = struct.Struct(f">{len(_MARK)}sBB{_RANDOM_BYTES}s{DIGEST_BYTES}s")
_NOTICE: Final = struct.Struct(f">{len(_MARK)}sBB")

HELLO_BYTES: Final = _ASK.size + _TAG_BYTES
"""The longest frame of a handshake."""


class _Kind(IntEnum):
    ASK = 0
    ANSWER = 1
    OTHER_KEY = 2
    NO_KEY = 3
    KEY_NEEDED = 4


NO_KEY_NOTICE: Final = _NOTICE.pack(_MARK, VERSION, _Kind.NO_KEY)
"""What a node without a key answers to a hello."""

KEY_NEEDED_NOTICE: Final = _NOTICE.pack(_MARK, VERSION, _Kind.KEY_NEEDED)
"""What a node with a key answers to whoever speaks unsealed."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A stream whose ends have proved the key: what seals it, and the other end's ring."""

    channel: Channel
    their_digest: bytes


class AskerHandshake:
    """The end that opened the stream. Tries the keys of its ring in turn, on one stream."""

    def __init__(self, ring: KeyRing, entropy: Callable[[int], bytes]) -> None:
        self._ring = ring
        self._entropy = entropy
        self._keys = list(ring)
        self._tried: list[str] = []
        self._key: Key | None = None
        self._hello = b""

    def hello(self) -> bytes:
        """Return the next hello to send."""
        self._key = key = self._keys.pop(0)
        self._tried.append(key.name)
        head = _ASK.pack(
            _MARK, VERSION, _Kind.ASK, key.key_id, self._entropy(_RANDOM_BYTES), self._ring.digest
        )
        self._hello = head + _tag(key.derive(b"mesh stream hello"), head)
        return self._hello

    def take(self, body: bytes) -> Opened | bytes:
        """Take the answer: the opened stream, or the next hello to send.

        Raises:
            SealError: the other end holds none of this ring's keys, or has no key.
            DecodeError: it is no answer, or its tag is wrong.
        """
        notice = read_notice(body)
        if notice is _Kind.OTHER_KEY and self._keys:
            return self.hello()
        if notice is not None:
            raise SealError(_words(notice, self._tried))
        assert self._key is not None
        kind = _kind(body)
        if kind is not _Kind.ANSWER or len(body) != _ANSWER.size + _TAG_BYTES:
            raise DecodeError(f"an answer to a hello is expected, found {len(body)} bytes")
        head, tag = body[: _ANSWER.size], body[_ANSWER.size :]
        root = self._key.derive(b"mesh stream", self._hello + head)
        if not hmac.compare_digest(tag, _tag(root, b"answer")):
            raise DecodeError(
                "the tag of the answer is wrong: it comes from somebody without the key"
            )
        *_, digest = _ANSWER.unpack(head)
        return Opened(Channel(root, is_asker=True), digest)


def answer_hello(
    ring: KeyRing, entropy: Callable[[int], bytes], body: bytes
) -> tuple[bytes, Opened | None]:
    """Return what to answer to a first frame, and the opened stream unless the hello was wrong.

    With no stream opened the caller sends the answer, a notice, and lets one more hello come, a few times.

    Raises:
        DecodeError: it is a hello whose tag is wrong, or bytes of no use: nothing is to be answered.
    """
    if _kind(body) is not _Kind.ASK:
        return KEY_NEEDED_NOTICE, None
    if len(body) != HELLO_BYTES:
        raise DecodeError(f"a hello has {HELLO_BYTES} bytes, found {len(body)}")
    head, tag = body[: _ASK.size], body[_ASK.size :]
    _, _, _, key_id, _, their_digest = _ASK.unpack(head)
    key = ring.find(key_id)
    if key is None:
        return _NOTICE.pack(_MARK, VERSION, _Kind.OTHER_KEY), None
    if not hmac.compare_digest(tag, _tag(key.derive(b"mesh stream hello"), head)):
        raise DecodeError("the tag of a hello is wrong: it comes from somebody without the key")
    answer = _ANSWER.pack(_MARK, VERSION, _Kind.ANSWER, entropy(_RANDOM_BYTES), ring.digest)
    root = key.derive(b"mesh stream", body + answer)
    opened = Opened(Channel(root, is_asker=False), their_digest)
    return answer + _tag(root, b"answer"), opened


def is_hello(body: bytes) -> bool:
    """Say whether an unsealed first frame is a hello: somebody with a key speaks."""
    return _kind(body) is _Kind.ASK


def read_notice(body: bytes) -> _Kind | None:
    """Return which notice a frame is; None if it is none. It is not authenticated: use it for words alone."""
    kind = _kind(body)
    return kind if kind is not None and kind >= _Kind.OTHER_KEY else None


def notice_text(body: bytes) -> str | None:
    """Return a notice in words, for a node without a key; None if it is none."""
    notice = read_notice(body)
    return None if notice is None else _words(notice, [])


def _kind(body: bytes) -> _Kind | None:
    if len(body) < _NOTICE.size or not body.startswith(_MARK):
        return None
    _, version, kind = _NOTICE.unpack_from(body)
    return _Kind(kind) if version == VERSION and kind <= max(_Kind) else None


def _tag(secret: bytes, text: bytes) -> bytes:
    return hmac.digest(secret, text, "sha256")[:_TAG_BYTES]


def _words(notice: _Kind, tried: list[str]) -> str:
    if notice is _Kind.OTHER_KEY:
        mine = " and ".join(tried)
        return (
            f"holds another key than this node (here: {mine}): the mesh has changed its key, or it is another mesh; "
            "join with the key file of a member (--key FILE)"
        )
    if notice is _Kind.NO_KEY:
        return "runs without a key, and this node with one: the same key is expected on both (--key FILE)"
    return "wants a key, and this node has none: join with the key file of a member (--key FILE)"
