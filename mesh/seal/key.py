"""One secret key, its public id, and the keys derived from it.

The secret itself seals nothing. Each use derives a key of its own, so that what is said in one place
can never be taken for something said in another.

Source: derivation is HKDF-Expand with HMAC-SHA-256 for one block [RFC 5869 §2.3]; the extraction is
left out, as §3.3 allows for a secret that is uniformly random.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from dataclasses import dataclass, field
from typing import Final

from mesh.errors import ConfigError

KEY_BYTES: Final = 32
KEY_ID_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Key:
    """32 random bytes that all members share. Its id is public: it says which key, and nothing about it."""

    secret: bytes = field(repr=False)
    key_id: bytes = field(init=False)

    def __post_init__(self) -> None:
        """Check the length and derive the id."""
        if len(self.secret) != KEY_BYTES:
            raise ConfigError(f"a key has {KEY_BYTES} bytes, found {len(self.secret)}")
        object.__setattr__(self, "key_id", self.derive(b"mesh key id")[:KEY_ID_BYTES])

    def derive(self, purpose: bytes, context: bytes = b"") -> bytes:
        """Return 32 bytes for one purpose and context; a purpose holds no zero byte."""
        return hmac.digest(self.secret, purpose + b"\0" + context + b"\1", "sha256")

    @property
    def name(self) -> str:
        """The id for people: 8 hex digits."""
        return self.key_id.hex()

    def to_text(self) -> str:
        """Return the secret as text, for a key file."""
        return base64.b64encode(self.secret).decode("ascii")


def read_key(text: str) -> Key:
    """Return the key written as `to_text` writes it.

    Raises:
        ConfigError: it is no key. The message does not repeat what may be a secret.
    """
    try:
        secret = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise ConfigError(
            "a key is expected as 44 characters of base64 (as `mesh keygen` writes it), found something else"
        ) from error
    return Key(secret)
