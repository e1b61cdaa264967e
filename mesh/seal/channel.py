"""Seals and opens the frames of one stream: AES-256-GCM, a key for each direction, a number for each frame.

The number is not sent: frames of a stream arrive in order, each once, or the stream is broken.
"""

from __future__ import annotations

import hmac
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mesh.errors import DecodeError

TAG_BYTES: Final = 16


class Channel:
    """One end of a stream whose ends have proved the key to each other."""

    __slots__ = ("_opened", "_opener", "_sealed", "_sealer")

    def __init__(self, root: bytes, *, is_asker: bool) -> None:
        ask = AESGCM(hmac.digest(root, b"asker seals", "sha256"))
        answer = AESGCM(hmac.digest(root, b"answerer seals", "sha256"))
        self._sealer, self._opener = (ask, answer) if is_asker else (answer, ask)
        self._sealed = 0
        self._opened = 0

    def seal(self, body: bytes) -> bytes:
        """Return the next frame's body, sealed."""
        nonce = self._sealed.to_bytes(12, "big")
        self._sealed += 1
        return self._sealer.encrypt(nonce, body, None)

    def open(self, body: bytes) -> bytes:
        """Return the next frame's body.

        Raises:
            DecodeError: it was not sealed by the other end, or not as its next frame.
        """
        try:
            opened = self._opener.decrypt(self._opened.to_bytes(12, "big"), body, None)
        except InvalidTag as error:
            raise DecodeError(
                "the next frame of the stream is expected, found bytes that its key does not open"
            ) from error
        self._opened += 1
        return opened
