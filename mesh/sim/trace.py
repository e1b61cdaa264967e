"""What happened in a run: one running hash over all of it, and the last of it for people.

Every input that a node was given and every effect that it asked for is a record. Two runs of one
seed give one hash; where they do not, the records written to two files show the first difference.

Source: 'run twice and point at the first difference' follows madsim.
"""

from __future__ import annotations

import hashlib
import struct
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TextIO

_HEAD: Final = struct.Struct("<dHBI")
_RING_RECORDS: Final = 4000
_CONTEXT_LINES: Final = 5


class Kind(IntEnum):
    """What a record is about. Inputs are below 32, effects from there on, the world's own from 64 on."""

    START = 1
    DATAGRAM = 2
    REQUEST = 3
    EXCHANGE = 4
    RESOLVED = 5
    PROCESS = 6
    COMMAND = 7
    TIMEOUT = 8
    LINE = 9
    COMMITTED = 10
    SEND = 32
    REPLY = 33
    ASK = 34
    RESOLVE = 35
    PERSIST = 36
    EMIT = 37
    ANSWER = 38
    RUN = 39
    STOP = 40
    KEEP = 41
    COMMIT = 42
    FAULT = 64


class Record(NamedTuple):
    """One input or effect. `data` is the very bytes, or the text of a value."""

    at_s: float
    host: int
    kind: int
    data: bytes

    def __str__(self) -> str:
        """Return the record as one line; records that differ give lines that differ."""
        kind = Kind(self.kind)
        is_text = kind in _TEXT_KINDS
        shown = self.data[:160].decode("utf-8", "replace") if is_text else self.data[:48].hex()
        digest = hashlib.blake2b(self.data, digest_size=6).hexdigest()
        name = kind.name.lower()
        return f"{self.at_s!r} host={self.host} {name} {len(self.data)} {digest} {shown}"


_TEXT_KINDS: Final = frozenset(Kind) - {
    Kind.DATAGRAM,
    Kind.REQUEST,
    Kind.EXCHANGE,
    Kind.SEND,
    Kind.REPLY,
    Kind.ASK,
}


class Trace:
    """Takes every record of a run. `sink` gets one line for each."""

    __slots__ = ("_hash", "_ring", "_sink", "_update", "count")

    def __init__(self, sink: TextIO | None = None) -> None:
        self.count = 0
        self._hash = hashlib.blake2b(digest_size=16)
        self._update = self._hash.update
        self._ring: deque[tuple[float, int, int, bytes]] = deque(maxlen=_RING_RECORDS)
        self._sink = sink

    def record(self, at_s: float, host: int, kind: int, data: bytes) -> None:
        """Take one record. Costs about a microsecond."""
        self.count += 1
        self._update(_HEAD.pack(at_s, host, kind, len(data)))
        self._update(data)
        self._ring.append((at_s, host, kind, data))
        if self._sink is not None:
            self._sink.write(f"{Record(at_s, host, kind, data)}\n")

    def record_value(self, at_s: float, host: int, kind: int, value: object) -> None:
        """Take a record of a value that is no bytes; its text must be the same in every process."""
        self.record(at_s, host, kind, repr(value).encode())

    @property
    def hash_hex(self) -> str:
        """The hash over all records so far: 32 digits."""
        return self._hash.hexdigest()

    def recent(self, kinds: frozenset[int] | None = None) -> Iterator[Record]:
        """Yield the last records (at most 4,000) in order, of these kinds or of all."""
        for entry in self._ring:
            if kinds is None or entry[2] in kinds:
                yield Record(*entry)


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two runs part. A line is "" where that run has ended."""

    line_number: int  # from 1
    first: str
    second: str
    before: tuple[str, ...]  # the lines before it, the same in both

    def __str__(self) -> str:
        """Return the difference for people."""
        context = "".join(f"    {line}\n" for line in self.before)
        return (
            f"the runs part at record {self.line_number}:\n{context}"
            f"  A {self.first or '(ended)'}\n  B {self.second or '(ended)'}"
        )


def first_difference(first: Iterable[str], second: Iterable[str]) -> Difference | None:
    """Return where two traces' lines part, or None if they are equal. Reads both once, in step."""
    before: deque[str] = deque(maxlen=_CONTEXT_LINES)
    one, other = iter(first), iter(second)
    number = 0
    while True:
        number += 1
        mine = next(one, None)
        theirs = next(other, None)
        if mine is None and theirs is None:
            return None
        if mine != theirs:
            return Difference(
                number, (mine or "").rstrip("\n"), (theirs or "").rstrip("\n"), tuple(before)
            )
        before.append((mine or "").rstrip("\n"))
