"""The messages by which one epoch's voters follow another's: seal, fetch, and rosters, told and asked for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.wire import schema as s
from mesh.wire.register_messages import Value, ballot_form, epoch_form, key_form, value_form

PAGE_MAX: Final = 256
"""Entries of one page."""

VOTERS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Roster:
    """Who votes in an epoch. `voters` are sorted and each is named once."""

    epoch: int
    voters: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class Seal:
    """'Vote no more in this epoch: it has a successor.' Only a voter that has installed the epoch seals it."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Fetch:
    """'Tell me what you held when you sealed.' In the order of keys, after this one; b"" from the first."""

    epoch: int
    after: bytes


@dataclass(frozen=True, slots=True)
class Sealed:
    """'I have sealed this epoch, on my disk, and hold so many records.'"""

    epoch: int
    count: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One register of a voter that has sealed. `is_live`: a lease on it lives there."""

    key: bytes
    promised: Ballot
    ballot: Ballot
    seq: int
    value: Value | None
    is_live: bool


@dataclass(frozen=True, slots=True)
class Page:
    """The answer to `Fetch`: the next entries, in the order of keys."""

    epoch: int
    after: bytes
    entries: tuple[Entry, ...]
    is_last: bool


@dataclass(frozen=True, slots=True)
class AskRoster:
    """'This is the epoch whose roster I know' (0: none); 'tell me of a later one.' Who knows of none is silent."""

    epoch: int


SealRequest: TypeAlias = Seal | Fetch
SealAnswer: TypeAlias = Sealed | Page

_voter = s.nonzero(64)
_entry = s.struct(
    Entry,
    ("key", key_form),
    ("promised", ballot_form),
    ("ballot", ballot_form),
    ("seq", s.uint(32)),
    ("value", s.optional(value_form)),
    ("is_live", s.flag),
)


def _build_roster(epoch: int, voters: tuple[NodeId, ...]) -> Roster:
    if not epoch or not voters or any(one >= other for one, other in pairwise(voters)):
        s.refuse("an epoch from 1 and voters that are sorted, each once", list(voters))
    return Roster(epoch, voters)


SCHEMAS: dict[int, tuple[type, s.Field]] = {
    75: (Seal, s.struct(Seal, ("epoch", epoch_form))),
    76: (Fetch, s.struct(Fetch, ("epoch", epoch_form), ("after", key_form))),
    77: (Sealed, s.struct(Sealed, ("epoch", epoch_form), ("count", s.uint(32)))),
    78: (
        Page,
        s.struct(
            Page,
            ("epoch", epoch_form),
            ("after", key_form),
            ("entries", s.many(_entry, PAGE_MAX)),
            ("is_last", s.flag),
        ),
    ),
    79: (
        Roster,
        s.struct(_build_roster, ("epoch", epoch_form), ("voters", s.many(_voter, VOTERS_MAX))),
    ),
    96: (AskRoster, s.struct(AskRoster, ("epoch", epoch_form))),
}
