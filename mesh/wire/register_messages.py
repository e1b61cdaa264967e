"""The messages of registers: prepare, accept, renew, read, and what a voter answers.

Messages to one peer travel together in a packet, and what they change is committed together.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

from mesh.core.ballot import BALLOT_BYTES, Ballot
from mesh.core.ids import NodeId
from mesh.wire import records as r
from mesh.wire import schema as s

KEY_BYTES_MAX: Final = 160
BODY_BYTES_MAX: Final = 4 * 1024 * 1024
LEASES_MAX: Final = 10_000
"""Leases in one renewal."""


class Standing(IntEnum):
    """What a value is to a voter, which understands nothing else of it."""

    OPEN = 0
    """Anybody may change it."""

    LEASED = 1
    """Its owner holds it, under the ballot that wrote it first, while it renews."""

    FINAL = 2
    """Nobody changes it any more."""


class Owner(NamedTuple):
    """One session of one node."""

    node_id: NodeId
    boot: int


@dataclass(frozen=True, slots=True)
class Value:
    """A register's value. `body` is opaque here. `owner` is named exactly while it is leased."""

    standing: Standing
    body: bytes
    owner: Owner | None = None

    def __post_init__(self) -> None:
        """Hold the invariant."""
        assert (self.owner is not None) == (self.standing is Standing.LEASED), self


# What a voter is asked. Each names the epoch whose voters are asked; only there does the answer count.


@dataclass(frozen=True, slots=True)
class Prepare:
    """'Promise me this register, and tell me what you accepted.' The ballot is of the epoch asked.

    `boot` names the asker's session: its own lease is not in its way.
    """

    key: bytes
    ballot: Ballot
    boot: int


@dataclass(frozen=True, slots=True)
class Accept:
    """'Accept this value.' `seq` 0 is a ballot's first write, and counts in its own epoch alone."""

    key: bytes
    epoch: int
    ballot: Ballot
    seq: int
    value: Value


@dataclass(frozen=True, slots=True)
class Renew:
    """'I still hold these.' `round` is the asker's own number of this round, answered as it is.

    No two rounds of a node have one number, whatever their session: the answer names neither the session nor
    the leases, and one that comes late, from before a restart, would renew what it was not about.
    """

    epoch: int
    round: int
    leases: tuple[tuple[bytes, Ballot], ...]


@dataclass(frozen=True, slots=True)
class Read:
    """'What have you accepted?'"""

    key: bytes
    epoch: int
    tag: int
    """The asker's own, answered as it is; like a round's number, no other read of this node has it."""


# What a voter answers.


@dataclass(frozen=True, slots=True)
class Promised:
    """'Nothing below this ballot any more; this is what I have accepted.' No value: nothing."""

    key: bytes
    ballot: Ballot
    accepted: Ballot
    seq: int
    value: Value | None


@dataclass(frozen=True, slots=True)
class Accepted:
    """'It is on my disk.' `epoch` is the one in which this counts."""

    key: bytes
    epoch: int
    ballot: Ballot
    seq: int


@dataclass(frozen=True, slots=True)
class Leased:
    """'Another's lease lives; I promised nothing.' It lasts `remaining_s` more by my clock, unless renewed."""

    key: bytes
    ballot: Ballot
    remaining_s: float


@dataclass(frozen=True, slots=True)
class Outbid:
    """'I have promised, or accepted, more than this ballot.'"""

    key: bytes
    ballot: Ballot
    promised: Ballot


@dataclass(frozen=True, slots=True)
class WrongEpoch:
    """'I vote in this epoch' (0: in none), 'not in the one you asked.' Nothing was done."""

    key: bytes
    ballot: Ballot
    epoch: int


@dataclass(frozen=True, slots=True)
class Renewed:
    """The answer to `Renew`: which leases were, by position; which are another's; the rest were not renewed.

    `lost` pairs a position with the higher ballot that was accepted.
    """

    epoch: int
    round: int
    renewed: tuple[int, ...]
    lost: tuple[tuple[int, Ballot], ...]


@dataclass(frozen=True, slots=True)
class Held:
    """The answer to `Read`. No value: nothing was accepted."""

    key: bytes
    epoch: int
    tag: int
    ballot: Ballot
    seq: int
    value: Value | None


Request: TypeAlias = Prepare | Accept | Renew | Read
Answer: TypeAlias = Promised | Accepted | Leased | Outbid | WrongEpoch | Renewed | Held


def _pack_ballot(value: Ballot) -> bytes:
    return value.pack()


def _unpack_ballot(raw: Any) -> Ballot:  # noqa: ANN401 - comes from msgpack
    if type(raw) is not bytes or len(raw) != BALLOT_BYTES:
        s.refuse(f"a ballot of {BALLOT_BYTES} bytes", raw)
    return Ballot.unpack(raw)


def _build_value(standing: Standing, body: bytes, owner: Owner | None) -> Value:
    if (owner is not None) != (standing is Standing.LEASED):
        s.refuse("an owner exactly with a lease", None if owner is None else list(owner))
    return Value(standing, body, owner)


def _unpack_seconds(raw: Any) -> float:  # noqa: ANN401 - comes from msgpack
    if type(raw) is not float or not 0 <= raw < 1e9:
        s.refuse("seconds from 0", raw)
    return raw


key_form = s.blob(KEY_BYTES_MAX)
epoch_form = s.uint(32)
_seq = s.uint(32)
_tag = s.uint(64)
ballot_form = s.Field(_pack_ballot, _unpack_ballot)
_owner = s.struct(Owner, ("node_id", s.nonzero(64)), ("boot", s.uint(48)))
value_form = s.struct(
    _build_value,
    ("standing", r.enum_of(Standing)),
    ("body", s.blob(BODY_BYTES_MAX)),
    ("owner", s.optional(_owner)),
)


def _pair(first: s.Field, second: s.Field) -> s.Field:
    def pack(pair: Any) -> Any:  # noqa: ANN401 - goes to msgpack
        return [first.pack(pair[0]), second.pack(pair[1])]

    def unpack(raw: Any) -> Any:  # noqa: ANN401 - comes from msgpack
        if type(raw) is not list or len(raw) != 2:
            s.refuse("a pair", raw)
        return first.unpack(raw[0]), second.unpack(raw[1])

    return s.Field(pack, unpack)


SCHEMAS: dict[int, tuple[type, s.Field]] = {
    64: (
        Prepare,
        s.struct(Prepare, ("key", key_form), ("ballot", ballot_form), ("boot", s.uint(48))),
    ),
    65: (
        Accept,
        s.struct(
            Accept,
            ("key", key_form),
            ("epoch", epoch_form),
            ("ballot", ballot_form),
            ("seq", _seq),
            ("value", value_form),
        ),
    ),
    66: (
        Renew,
        s.struct(
            Renew,
            ("epoch", epoch_form),
            ("round", _tag),
            ("leases", s.many(_pair(key_form, ballot_form), LEASES_MAX)),
        ),
    ),
    67: (Read, s.struct(Read, ("key", key_form), ("epoch", epoch_form), ("tag", _tag))),
    68: (
        Promised,
        s.struct(
            Promised,
            ("key", key_form),
            ("ballot", ballot_form),
            ("accepted", ballot_form),
            ("seq", _seq),
            ("value", s.optional(value_form)),
        ),
    ),
    69: (
        Accepted,
        s.struct(
            Accepted,
            ("key", key_form),
            ("epoch", epoch_form),
            ("ballot", ballot_form),
            ("seq", _seq),
        ),
    ),
    70: (
        Leased,
        s.struct(
            Leased,
            ("key", key_form),
            ("ballot", ballot_form),
            ("remaining_s", s.Field(float, _unpack_seconds)),
        ),
    ),
    71: (
        Outbid,
        s.struct(Outbid, ("key", key_form), ("ballot", ballot_form), ("promised", ballot_form)),
    ),
    72: (
        WrongEpoch,
        s.struct(WrongEpoch, ("key", key_form), ("ballot", ballot_form), ("epoch", epoch_form)),
    ),
    73: (
        Renewed,
        s.struct(
            Renewed,
            ("epoch", epoch_form),
            ("round", _tag),
            ("renewed", s.many(s.uint(16), LEASES_MAX)),
            ("lost", s.many(_pair(s.uint(16), ballot_form), LEASES_MAX)),
        ),
    ),
    74: (
        Held,
        s.struct(
            Held,
            ("key", key_form),
            ("epoch", epoch_form),
            ("tag", _tag),
            ("ballot", ballot_form),
            ("seq", _seq),
            ("value", s.optional(value_form)),
        ),
    ),
}
