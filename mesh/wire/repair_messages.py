"""The messages by which voters find what one of them lacks, ship it, and purge what is over for good.

What is compared is small where it is equal: one sum of all that two voters both keep, every few seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from mesh.core.ballot import Ballot
from mesh.wire import records as r
from mesh.wire import schema as s
from mesh.wire.register_messages import Value, ballot_form, epoch_form, key_form, value_form

BUCKETS: Final = 257
"""The cells of all keys, and one bucket of the registers that every voter keeps."""

SUM_BYTES: Final = 4
"""Of a bucket's sum, as it travels: all of them fit into a datagram."""

DIGEST_BYTES: Final = 8
HELD_BYTES_MAX: Final = 65_536 * DIGEST_BYTES
SHIP_MAX: Final = 64
"""Records that are shipped at once."""

PURGE_MAX: Final = 256
"""Registers that are purged at once."""


@dataclass(frozen=True, slots=True)
class Compare:
    """'This is the sum of all that you and I both keep.' Who finds the same is silent."""

    epoch: int
    sum: int


@dataclass(frozen=True, slots=True)
class Sums:
    """'I find another; these are mine, by bucket.' Whoever gets them not as an answer, and differs, answers with its own.

    `sums`: SUM_BYTES for each bucket; of one that the two do not share, zeros.
    """

    epoch: int
    sums: bytes
    is_answer: bool


@dataclass(frozen=True, slots=True)
class Lack:
    """'In this bucket I hold just these. Ship me what else you hold, in the order of keys, after this one.'

    `held`: DIGEST_BYTES for each record, in any order. `tag` is the asker's own, answered as it is.
    """

    epoch: int
    tag: int
    bucket: int
    after: bytes
    held: bytes


class Shipped(NamedTuple):
    """What a voter has accepted of one register."""

    key: bytes
    ballot: Ballot
    seq: int
    value: Value


@dataclass(frozen=True, slots=True)
class Ship:
    """The answer to `Lack`: the next records, in the order of keys."""

    epoch: int
    tag: int
    entries: tuple[Shipped, ...]
    is_last: bool


class Stage(IntEnum):
    """How far a purge has come."""

    ASK = 0
    """'May these go?' Nothing is changed."""

    DROP = 1
    """'All voters held these, and they are final: drop them.'"""

    AGAIN = 2
    """The same once more, when nobody can ship what was dropped any more: to be sure that nobody got it back."""


class Item(NamedTuple):
    """One register's final value, by number."""

    key: bytes
    ballot: Ballot
    seq: int


@dataclass(frozen=True, slots=True)
class Purge:
    """Said by the first voter of these registers to their others. `n`: no promise of them is above this; 0 in ASK."""

    epoch: int
    tag: int
    stage: Stage
    n: int
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Purged:
    """The answer, in the order of the items: 1 where it may go, or is gone; else 0.

    `n`: the highest number that was promised for one that may go.
    """

    epoch: int
    tag: int
    stage: Stage
    flags: bytes
    n: int


RepairMessage: TypeAlias = Compare | Sums | Lack | Ship | Purge | Purged

_tag = s.uint(64)
_n = s.uint(48)
_stage = r.enum_of(Stage)


def _bucket(raw: object) -> int:
    if type(raw) is not int or not 0 <= raw < BUCKETS:
        s.refuse(f"a bucket from 0 to {BUCKETS - 1}", raw)
    return raw


def _build_sums(epoch: int, sums: bytes, is_answer: bool) -> Sums:
    if len(sums) != BUCKETS * SUM_BYTES:
        s.refuse(f"{BUCKETS * SUM_BYTES} bytes of sums", sums)
    return Sums(epoch, sums, is_answer)


def _build_lack(epoch: int, tag: int, bucket: int, after: bytes, held: bytes) -> Lack:
    if len(held) % DIGEST_BYTES:
        s.refuse(f"digests of {DIGEST_BYTES} bytes each", held)
    return Lack(epoch, tag, bucket, after, held)


_shipped = s.struct(
    Shipped,
    ("key", key_form),
    ("ballot", ballot_form),
    ("seq", s.uint(32)),
    ("value", value_form),
)
_item = s.struct(Item, ("key", key_form), ("ballot", ballot_form), ("seq", s.uint(32)))

SCHEMAS: Final[dict[int, tuple[type, s.Field]]] = {
    98: (Compare, s.struct(Compare, ("epoch", epoch_form), ("sum", s.uint(64)))),
    99: (
        Sums,
        s.struct(
            _build_sums,
            ("epoch", epoch_form),
            ("sums", s.blob(BUCKETS * SUM_BYTES)),
            ("is_answer", s.flag),
        ),
    ),
    100: (
        Lack,
        s.struct(
            _build_lack,
            ("epoch", epoch_form),
            ("tag", _tag),
            ("bucket", s.Field(int, _bucket)),
            ("after", key_form),
            ("held", s.blob(HELD_BYTES_MAX)),
        ),
    ),
    101: (
        Ship,
        s.struct(
            Ship,
            ("epoch", epoch_form),
            ("tag", _tag),
            ("entries", s.many(_shipped, SHIP_MAX)),
            ("is_last", s.flag),
        ),
    ),
    102: (
        Purge,
        s.struct(
            Purge,
            ("epoch", epoch_form),
            ("tag", _tag),
            ("stage", _stage),
            ("n", _n),
            ("items", s.many(_item, PURGE_MAX)),
        ),
    ),
    103: (
        Purged,
        s.struct(
            Purged,
            ("epoch", epoch_form),
            ("tag", _tag),
            ("stage", _stage),
            ("flags", s.blob(PURGE_MAX)),
            ("n", _n),
        ),
    ),
}
