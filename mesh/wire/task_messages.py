"""The messages of tasks that registers keep: offer, cancel, follow the output, watch for the end.

    voter ──Offer──► home ──OfferAnswer──► voter                 who may claim; what decides is the register
    anybody ──CancelRun──► the owner's node ──CancelAnswer──►    a leased task is its owner's to write
    anybody ──Follow──► the owner's node ──Piece…, FollowEnd──►  each Follow says what has arrived
    anybody ──Watch──► a task's voters ──Notice──►               what is durable there: a hint when to read

Each may be lost, doubled or late, and whoever needs an answer asks again. What a task *is* only its register says.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from mesh.core.ballot import Ballot
from mesh.core.ids import TASK_ID_CHARS_MAX, NodeId
from mesh.wire import records as r
from mesh.wire import schema as s
from mesh.wire.register_messages import Owner, Value, ballot_form, value_form
from mesh.wire.work_messages import OUTPUT_CHUNK_BYTES_MAX

PIECES_MAX: Final = 255
"""Pieces of output that may be on their way to one follower."""

WATCH_S_MAX: Final = 600
"""So long a voter remembers who watches a task, at most; whoever goes on watching asks again."""


class TaskState(IntEnum):
    """Where a task is."""

    READY = 0
    SCHEDULED = 1  # ready once its time has come
    LEASED = 2
    DONE = 3
    FAILED = 4  # a dead letter
    CANCELLED = 5

    @property
    def word(self) -> str:
        """The state as people and JSON see it."""
        return self.name.lower()

    @property
    def is_terminal(self) -> bool:
        """Say whether it is final."""
        return self >= TaskState.DONE


class AttemptCause(IntEnum):
    """Why an attempt was started."""

    FIRST = 0
    RETRY = 1  # the one before failed
    LAPSE = 2  # the lease of the one before lapsed
    CRASH = 3  # the session of the owner before is proved to be over
    RELEASED = 4  # the owner before let it go
    FORCED = 5  # somebody had it taken away
    RECOVERED = 6  # records were lost, and the loss was accepted

    @property
    def word(self) -> str:
        """The cause as people and JSON see it."""
        return self.name.lower()


class Decline(IntEnum):
    """What a member makes of an offer."""

    NONE = 0  # it claims the task now
    BUSY = 1  # no free slot, or too little of an amount is free now: will say SlotsFree
    UNSUITED = 2  # it never can: pool, class, labels, or more is needed than it declared
    DRAINING = 3
    TAKEN = 4  # what it knows is later than the offer: leased, by itself or another, or not due
    OVER = 5  # what it knows is final
    UNSURE = 6  # it cannot renew at a majority of the task's voters


class PlacedBy(IntEnum):
    """How whoever has an attempt was found."""

    NAMED = 0  # by the write that created the task, at once
    RANK = 1  # by rendezvous: the first that was known to have a slot
    CONTEST = 2
    ALONE = 3  # to be contested, but nobody else was known to have a slot, or nobody called took it
    TURN = 4  # the members are asked in turn
    PULL = 5  # it had the most slots free
    ANYBODY = 6  # nobody was known to have a slot, and each is asked now and then

    @property
    def word(self) -> str:
        """This as JSON has it."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Placement:
    """Why an attempt is where it is, as the voter saw it that asked for it."""

    by: PlacedBy
    home: NodeId | None = None
    """Who came first by rendezvous then; None: that was not looked at."""

    passed: Decline = Decline.NONE
    """Why the home was passed over; NONE: it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """'Can you start this now?' The home decides by this alone, and asks for the register's word by claiming.

    `ballot` and `seq` are of the record that the voter saw, so that a home that knows a later one says so.
    `attempt` is the number that the claim would make, `cause` why it would start. `has_more`: more tasks wait
    at the voter, so it wants to hear of the next free slot too.
    """

    task_id: str
    ballot: Ballot
    seq: int
    attempt: int
    cause: AttemptCause
    queue: str = ""
    pool: str = ""
    node_class: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    needs: tuple[tuple[str, int], ...] = ()
    has_more: bool = False
    placement: Placement | None = None
    """Why it is asked of whom it is asked: for the record of its attempt."""


@dataclass(frozen=True, slots=True)
class Named:
    """'The write that creates this task names you its first owner.' From the task's first voter, which has it on disk.

    Nothing of it may be trusted before a majority renewed the lease.
    """

    ballot: Ballot
    value: Value


@dataclass(frozen=True, slots=True)
class OfferAnswer:
    """The answer to the `Offer` of this attempt, or to `Named`. `free_slots` counts what the asker may try for."""

    task_id: str
    attempt: int
    decline: Decline
    free_slots: int


class CancelVerdict(IntEnum):
    """What an owner's node says to `CancelRun`."""

    STOPPING = (
        0  # it is written down that the task is to be cancelled, and its run is being stopped
    )
    OVER = 1  # the attempt has ended: its verdict is written, or on its way
    UNKNOWN = 2  # no such attempt runs here


@dataclass(frozen=True, slots=True)
class CancelRun:
    """'Stop this attempt, and let there be no other.' Asked again until it is answered."""

    task_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class CancelAnswer:
    """The answer to `CancelRun`, once what it says is durable."""

    task_id: str
    attempt: int
    verdict: CancelVerdict


@dataclass(frozen=True, slots=True)
class Follow:
    """'Send me this attempt's output from piece `from_seq` on, `pieces_max` of them at most.'

    All before `from_seq` has arrived. The same again is harmless: it is asked again when nothing comes, with a
    higher `from_seq` as pieces arrive, and at the latest after `FOLLOW_SILENCE_S`. `pieces_max` 0 ends it.
    """

    task_id: str
    attempt: int
    from_seq: int
    pieces_max: int


FOLLOW_SILENCE_S: Final = 30.0
"""A follower that said nothing for so long holds nobody up any more, and is forgotten."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of output. `seq` counts the attempt's pieces from 0, both streams together.

    One with a higher `seq` than the one expected, with nothing lost on the way: those between are held no more.
    `first_seq` is the first that is.
    """

    task_id: str
    attempt: int
    first_seq: int
    seq: int
    stream: int  # 1 stdout, 2 stderr
    data: bytes


class FollowReason(IntEnum):
    """Why no more output comes."""

    ENDED = 0  # the attempt is over, and everything was sent
    UNKNOWN = 1  # this attempt is not known here
    CROWDED = 2  # too many follow here already
    SLOW = 3  # nothing was taken for too long


@dataclass(frozen=True, slots=True)
class FollowEnd:
    """'No more comes.' `next_seq` is one more than the attempt's last piece; whoever has fewer asks again."""

    task_id: str
    attempt: int
    next_seq: int
    reason: FollowReason


@dataclass(frozen=True, slots=True)
class Watch:
    """'Tell me when this task changes, for `seconds` from now.' 0: no more."""

    task_id: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Notice:
    """'This is durable here': where a watched task stands at one voter. Not yet what a majority holds.

    Sent when a `Watch` comes in and the voter holds the task, and at each change of state or attempt.
    """

    task_id: str
    ballot: Ballot
    seq: int
    state: TaskState
    attempt: int
    owner: Owner | None


task_id_form: Final = s.text(TASK_ID_CHARS_MAX, empty=False)
tag_form: Final = s.text(128)
labels_form: Final = s.pairs(r.word, tag_form, r.LABELS_MAX)
needs_form: Final = s.pairs(r.word, s.uint(48), r.LABELS_MAX)
seq_form: Final = s.uint(32)
attempt_form: Final = s.uint(32)
owner_form: Final = s.struct(Owner, ("node_id", s.nonzero(64)), ("boot", s.uint(48)))


def _unpack_watch_seconds(raw: Any) -> int:  # noqa: ANN401 - comes from msgpack
    if type(raw) is not int or not 0 <= raw <= WATCH_S_MAX:
        s.refuse(f"seconds from 0 to {WATCH_S_MAX}", raw)
    return raw


_watch_seconds: Final = s.Field(int, _unpack_watch_seconds)

placement_form: Final = s.struct(
    Placement,
    ("by", r.enum_of(PlacedBy)),
    ("home", s.optional(s.nonzero(64))),
    ("passed", r.enum_of(Decline)),
)
offer_form: Final = s.keyword_struct(
    Offer,
    ("task_id", task_id_form),
    ("ballot", ballot_form),
    ("seq", seq_form),
    ("attempt", attempt_form),
    ("cause", r.enum_of(AttemptCause)),
    ("queue", tag_form),
    ("pool", tag_form),
    ("node_class", tag_form),
    ("labels", labels_form),
    ("needs", needs_form),
    ("has_more", s.flag),
    ("placement", s.optional(placement_form)),
)

SCHEMAS: dict[int, tuple[type, s.Field]] = {
    80: (Offer, offer_form),
    81: (
        OfferAnswer,
        s.struct(
            OfferAnswer,
            ("task_id", task_id_form),
            ("attempt", attempt_form),
            ("decline", r.enum_of(Decline)),
            ("free_slots", s.uint(16)),
        ),
    ),
    82: (CancelRun, s.struct(CancelRun, ("task_id", task_id_form), ("attempt", attempt_form))),
    83: (
        CancelAnswer,
        s.struct(
            CancelAnswer,
            ("task_id", task_id_form),
            ("attempt", attempt_form),
            ("verdict", r.enum_of(CancelVerdict)),
        ),
    ),
    84: (
        Follow,
        s.struct(
            Follow,
            ("task_id", task_id_form),
            ("attempt", attempt_form),
            ("from_seq", seq_form),
            ("pieces_max", s.uint(8)),
        ),
    ),
    85: (
        Piece,
        s.struct(
            Piece,
            ("task_id", task_id_form),
            ("attempt", attempt_form),
            ("first_seq", seq_form),
            ("seq", seq_form),
            ("stream", s.uint(2)),
            ("data", s.blob(OUTPUT_CHUNK_BYTES_MAX)),
        ),
    ),
    86: (
        FollowEnd,
        s.struct(
            FollowEnd,
            ("task_id", task_id_form),
            ("attempt", attempt_form),
            ("next_seq", seq_form),
            ("reason", r.enum_of(FollowReason)),
        ),
    ),
    87: (Watch, s.struct(Watch, ("task_id", task_id_form), ("seconds", _watch_seconds))),
    88: (
        Notice,
        s.struct(
            Notice,
            ("task_id", task_id_form),
            ("ballot", ballot_form),
            ("seq", seq_form),
            ("state", r.enum_of(TaskState)),
            ("attempt", attempt_form),
            ("owner", s.optional(owner_form)),
        ),
    ),
    89: (Named, s.struct(Named, ("ballot", ballot_form), ("value", value_form))),
}
