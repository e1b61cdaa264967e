"""The keys that a node knows: any of them opens, one of them seals.

    add K ──► every member opens K        nobody seals with it yet
    use K ──► every member seals with K   whoever still seals with the old one is understood
    remove ─► the old one opens nothing

Each key is a register (held or removed), and so is the choice of the sealing key; the later stamp wins.
Rings merge in any order to the same ring, so a change made at one node spreads from each member to the
next, and a node that slept through it learns of it from the first member that it meets. Only a merge that
would leave no key at all does not happen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgpack

from mesh.errors import ConfigError, DecodeError
from mesh.seal.key import KEY_BYTES, KEY_ID_BYTES, Key, read_key

KEYS_MAX: Final = 8
"""Keys held at once. A rotation needs two."""

REGISTERS_MAX: Final = 64
"""Keys held or removed; of the removed the earliest are forgotten."""

RING_BYTES_MAX: Final = 8_192
DIGEST_BYTES: Final = 8
STAMP_MAX: Final = (1 << 53) - 1

_HEADING: Final = "# Mesh key ring. Whoever can read it can run commands on every member: keep it secret (mode 0600).\n"
_Register: TypeAlias = tuple[int, bool, "Key | None"]  # stamp, is removed, the key unless removed


class KeyRing:
    """Registers by key id. `digest` tells two rings apart; equal rings have equal digests."""

    def __init__(
        self, registers: dict[bytes, _Register] | None = None, use: tuple[int, bytes] = (0, b"")
    ) -> None:
        self._registers = registers or {}
        self._use = use
        self._keys: tuple[Key, ...] = ()
        self.digest = b""
        self._settle()

    def __len__(self) -> int:
        """Return how many keys are held."""
        return len(self._keys)

    def __iter__(self) -> Iterator[Key]:
        """Iterate over the held keys, the sealing one first."""
        return iter(self._keys)

    @property
    def primary(self) -> Key:
        """The key that seals. The ring must not be empty."""
        return self._keys[0]

    def find(self, key_id: bytes) -> Key | None:
        """Return a held key by its id."""
        register = self._registers.get(key_id)
        return None if register is None else register[2]

    def named(self, text: str) -> Key:
        """Return the held key whose id begins with these hex digits.

        Raises:
            ConfigError: none does, or more than one.
        """
        found = [key for key in self._keys if text and key.name.startswith(text.lower())]
        if len(found) != 1:
            held = ", ".join(key.name for key in self._keys)
            # Longer than an id, it may be a key: that is not repeated.
            what = repr(text) if len(text) <= 2 * KEY_ID_BYTES + 1 else f"{len(text)} characters"
            raise ConfigError(f"the id of one key of the ring ({held}) is expected, found {what}")
        return found[0]

    def add(self, key: Key) -> bool:
        """Hold one more key; say whether that is new. The first key of a ring seals.

        Raises:
            ConfigError: the ring is full.
        """
        if self.find(key.key_id) is not None:
            return False
        if len(self._keys) >= KEYS_MAX:
            raise ConfigError(
                f"at most {KEYS_MAX} keys are held at once: remove one that is used no more"
            )
        if not self._keys:
            self._use = (self._use[0], key.key_id)
        self._put(key.key_id, self._next_stamp(), key)
        self._settle()
        return True

    def use(self, key_id: bytes) -> None:
        """Seal with a held key from now on."""
        if self.find(key_id) is None:
            raise ConfigError(f"a key of the ring is expected, found {key_id.hex()}")
        if self.primary.key_id != key_id or self._use[1] != key_id:
            self._use = (self._next_stamp(), key_id)
            self._settle()

    def remove(self, key_id: bytes) -> None:
        """Hold a key no more. The sealing key cannot be removed."""
        if self.find(key_id) is None:
            raise ConfigError(f"a key of the ring is expected, found {key_id.hex()}")
        if self.primary.key_id == key_id:
            raise ConfigError(
                f"key {key_id.hex()} is the one that seals: use another before it is removed"
            )
        self._put(key_id, self._next_stamp(), None)
        self._settle()

    def merge(self, other: KeyRing) -> bool:
        """Take over what `other` knows later; say whether anything changed.

        Nothing is taken over that would leave no key, as where two sides of a partition each removed the
        other's: a node without a key seals nothing.
        """
        before, merged = self.digest, dict(self._registers)
        for key_id, register in other._registers.items():
            mine = merged.get(key_id)
            if mine is None or register[:2] > mine[:2]:
                merged[key_id] = register
        if all(is_removed for _, is_removed, _ in merged.values()):
            return False
        self._registers = merged
        self._use = max(self._use, other._use)
        self._settle()
        return self.digest != before

    def become(self, other: KeyRing) -> None:
        """Hold what another ring holds, and forget the rest."""
        self._registers, self._use = dict(other._registers), other._use
        self._settle()

    def knows(self, key_id: bytes) -> bool:
        """Say whether a key is held, or was removed."""
        return key_id in self._registers

    def to_bytes(self) -> bytes:
        """Return the ring for another member, secrets included: to be sealed."""
        rows = [
            [i, r[0], r[2].secret if r[2] else None] for i, r in sorted(self._registers.items())
        ]
        return bytes(msgpack.packb([rows, list(self._use)]))

    def to_text(self) -> str:
        """Return the ring for a file."""
        lines = [_HEADING]
        for key_id, (stamp, _, key) in sorted(self._registers.items()):
            what = f"gone {stamp} {key_id.hex()}" if key is None else f"key {stamp} {key.to_text()}"
            lines.append(f"{what}\n")
        if self._use[1]:
            lines.append(f"use {self._use[0]} {self._use[1].hex()}\n")
        return "".join(lines)

    def _put(self, key_id: bytes, stamp: int, key: Key | None) -> None:
        self._registers[key_id] = (stamp, key is None, key)

    def _next_stamp(self) -> int:
        stamps = [register[0] for register in self._registers.values()]
        stamp = max([*stamps, self._use[0]], default=0) + 1
        if stamp > STAMP_MAX:
            raise ConfigError(
                f"stamps up to {STAMP_MAX} are expected, and this ring has used the last: it cannot be changed any "
                "more; give all members a new key file"
            )
        return stamp

    def _settle(self) -> None:
        """Derive what is held, what seals, and the digest."""
        gone = sorted((r[0], i) for i, r in self._registers.items() if r[1])
        for _, key_id in gone[: max(0, len(self._registers) - REGISTERS_MAX)]:
            del self._registers[key_id]
        held = [
            (self._use[1] == i, stamp, i, key)
            for i, (stamp, _, key) in self._registers.items()
            if key is not None
        ]
        self._keys = tuple(entry[3] for entry in sorted(held, key=lambda e: e[:3], reverse=True))
        self.digest = hashlib.sha256(self.to_bytes()).digest()[:DIGEST_BYTES]


def ring_of(keys: Iterable[Key]) -> KeyRing:
    """Return a ring of these keys; the first seals."""
    lines = _Lines()
    for key in keys:
        lines.read([key.to_text()])
    return KeyRing(lines.registers, lines.use)


class _Lines:
    """What the lines of a key file say."""

    def __init__(self) -> None:
        self.registers: dict[bytes, _Register] = {}
        self.use: tuple[int, bytes] = (0, b"")

    def read(self, words: list[str]) -> None:
        """Take the words of one line. Raises ConfigError or ValueError."""
        if len(words) == 1:
            key = read_key(words[0])
            self.registers[key.key_id] = (0, False, key)
            self.use = self.use if self.use[1] else (0, key.key_id)
            return
        verb, number, value = words
        stamp = _stamp(int(number))
        if verb == "key":
            key = read_key(value)
            self.registers[key.key_id] = (stamp, False, key)
        elif verb == "gone":
            self.registers[_key_id(bytes.fromhex(value))] = (stamp, True, None)
        elif verb == "use":
            self.use = (stamp, _key_id(bytes.fromhex(value)))
        else:
            raise ValueError(verb)


def read_ring(text: str) -> KeyRing:
    """Return the ring in a file's text: lines as `to_text` writes them, or keys alone, the first of which seals.

    Raises:
        ConfigError: a line is none of these, or there is no key. No secret is repeated in the message.
    """
    lines = _Lines()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            lines.read(words)
        except (ConfigError, ValueError) as error:
            raise ConfigError(
                f"line {number} of the key file: a key as `mesh keygen` writes it is expected, found something else"
            ) from error
    return _checked(KeyRing(lines.registers, lines.use))


def decode_ring(data: bytes) -> KeyRing:
    """Return the ring that another member sent.

    Raises:
        DecodeError: the bytes are no ring.
    """
    if len(data) > RING_BYTES_MAX:
        raise DecodeError(
            f"a ring of at most {RING_BYTES_MAX} bytes is expected, found {len(data)}"
        )
    try:
        rows, use = msgpack.unpackb(
            data, max_array_len=REGISTERS_MAX, max_map_len=0, max_ext_len=0, strict_map_key=True
        )
        registers = dict(_register(*row) for row in rows)
        return _checked(KeyRing(registers, (_stamp(use[0]), _key_id(use[1]))))
    except Exception as error:
        raise DecodeError(f"a key ring is expected, found {type(error).__name__}") from error


def _register(key_id: object, stamp: object, secret: object) -> tuple[bytes, _Register]:
    key = None if secret is None else Key(_secret(secret))
    if key is not None and key.key_id != key_id:
        raise DecodeError("a key under its own id is expected, found another's")
    return _key_id(key_id), (_stamp(stamp), key is None, key)


def _checked(ring: KeyRing) -> KeyRing:
    if not len(ring):
        raise ConfigError("at least one key is expected in a ring, found none")
    return ring


def _key_id(value: object) -> bytes:
    if type(value) is not bytes or len(value) != KEY_ID_BYTES:
        raise ValueError("no key id")
    return value


def _secret(value: object) -> bytes:
    if type(value) is not bytes or len(value) != KEY_BYTES:
        raise ValueError("no key")
    return value


def _stamp(value: object) -> int:
    if type(value) is not int or not 0 <= value <= STAMP_MAX:
        raise ValueError("no stamp")
    return value
