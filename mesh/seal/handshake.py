"""Two ends of a stream prove the key to each other, and draw keys for this stream alone.

    asker                                  answerer
    hello: key id, 16 random bytes, tag ─►            the tag shows that it holds a key of the ring
                                        ◄─ hello: 16 random bytes, tag     so does this, for both random parts
    everything after is sealed with keys derived from the key and both random parts

A stream that was recorded and is played back meets other random bytes, and opens nothing. It proves a
member, not which one. An answerer that holds another key, or none, says so in a notice (see `notices`). Of a
stranger one short frame is read before its tag is checked; the door says how short.

Both hellos carry the digest of the sender's ring, so that whoever knows a later one passes it on.

Source: our own, after the pre-shared key handshakes of [RFC 8446 §2.2] without a Diffie-Hellman part:
whoever learns the key can read what was recorded (docs/security.md).
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mesh.errors import DecodeError, SealError
from mesh.seal.channel import Channel
from mesh.seal.key import Key
from mesh.seal.notices import MARK, VERSION, Kind, in_words, kind_of, notice, notice_of
from mesh.seal.ring import DIGEST_BYTES, KeyRing

_RANDOM_BYTES: Final = 16
_TAG_BYTES: Final = 16
_ASK: Final = struct.Struct(f">{len(MARK)}sBB4s{_RANDOM_BYTES}s{DIGEST_BYTES}s")
_ANSWER: Final = struct.Struct(f">{len(MARK)}sBB{_RANDOM_BYTES}s{DIGEST_BYTES}s")

HELLO_BYTES: Final = _ASK.size + _TAG_BYTES
"""The longest frame of a handshake."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A stream whose ends have proved the key: what seals it, and the other end's ring."""

    channel: Channel
    key_id: bytes
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
            MARK, VERSION, Kind.ASK, key.key_id, self._entropy(_RANDOM_BYTES), self._ring.digest
        )
        self._hello = head + _tag(key.derive(b"mesh stream hello"), head)
        return self._hello

    def take(self, body: bytes) -> Opened | bytes:
        """Take the answer: the opened stream, or the next hello to send.

        Raises:
            SealError: the other end holds none of this ring's keys, or has no key.
            DecodeError: it is no answer, or its tag is wrong.
        """
        found = notice_of(body)
        if found is Kind.OTHER_KEY and self._keys:
            return self.hello()
        if found is not None:
            raise SealError(in_words(found, self._tried))
        assert self._key is not None
        kind = kind_of(body)
        if kind is not Kind.ANSWER or len(body) != _ANSWER.size + _TAG_BYTES:
            raise DecodeError(f"an answer to a hello is expected, found {len(body)} bytes")
        head, tag = body[: _ANSWER.size], body[_ANSWER.size :]
        root = self._key.derive(b"mesh stream", self._hello + head)
        if not hmac.compare_digest(tag, _tag(root, b"answer")):
            raise DecodeError(
                "the tag of the answer is wrong: it comes from somebody without the key"
            )
        *_, digest = _ANSWER.unpack(head)
        return Opened(Channel(root, is_asker=True), self._key.key_id, digest)


def answer_hello(
    ring: KeyRing, entropy: Callable[[int], bytes], body: bytes
) -> tuple[bytes, Opened | None]:
    """Return what to answer to a first frame, and the opened stream unless the hello was wrong.

    With no stream opened the caller sends the answer, a notice, and lets one more hello come, a few times.

    Raises:
        DecodeError: it is a hello whose tag is wrong, or bytes of no use: nothing is to be answered.
    """
    if kind_of(body) is not Kind.ASK:
        return notice(Kind.KEY_NEEDED), None
    if len(body) != HELLO_BYTES:
        raise DecodeError(f"a hello has {HELLO_BYTES} bytes, found {len(body)}")
    head, tag = body[: _ASK.size], body[_ASK.size :]
    _, _, _, key_id, _, their_digest = _ASK.unpack(head)
    key = ring.find(key_id)
    if key is None:
        return notice(Kind.OTHER_KEY), None
    if not hmac.compare_digest(tag, _tag(key.derive(b"mesh stream hello"), head)):
        raise DecodeError("the tag of a hello is wrong: it comes from somebody without the key")
    answer = _ANSWER.pack(MARK, VERSION, Kind.ANSWER, entropy(_RANDOM_BYTES), ring.digest)
    root = key.derive(b"mesh stream", body + answer)
    opened = Opened(Channel(root, is_asker=False), key_id, their_digest)
    return answer + _tag(root, b"answer"), opened


def _tag(secret: bytes, text: bytes) -> bytes:
    return hmac.digest(secret, text, "sha256")[:_TAG_BYTES]
