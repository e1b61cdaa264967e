"""The messages of membership: probes, rumours, join and sync.

Sender and mesh stand in the packet's header, once for all messages in it.
Rumours name the *boot* and the *incarnation* they are about, so that a stale one is recognised.

Source: message set [SWIM §4.1, §4.2]; boot numbers are ours (docs/design.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import TypeAlias

from mesh.core.address import Address
from mesh.core.ids import NodeId
from mesh.wire import records as r
from mesh.wire import schema as s
from mesh.wire.records import Cause, Standing, Vitals


@dataclass(frozen=True, slots=True)
class Ping:
    """'Are you there, `target`?' Sent by UDP, and by TCP as the fallback probe.

    `target` is the low 32 bits of the id: nobody is looked up by it, it only shows whether the ping
    reached whom it was meant for. `view` is 16 bits of the hash of all living members that the
    sender knows (0: not to be compared), so that two members notice at once that they know
    different things. Every byte here is sent by every member every second, for ever.
    """

    seq: int
    target: int
    view: int


@dataclass(frozen=True, slots=True)
class PingReq:
    """'Ping `target` for me, and pass me its ack under my `seq`.'"""

    seq: int
    target: NodeId
    address: Address


@dataclass(frozen=True, slots=True)
class Ack:
    """'I am here, in this boot, this busy.' A relay passes it on under the asker's `seq`, with the subject's id.

    `subject` 0: the sender itself. `boot` is its low 32 bits, to which session the vitals belong.
    """

    seq: int
    subject: NodeId
    boot: int
    vitals: Vitals

    @property
    def free_slots(self) -> int:
        """Of the vitals, which lie flat in the message: a list of their own would cost a byte."""
        return self.vitals.free_slots

    @property
    def load_average_pct(self) -> int:
        """Of the vitals."""
        return self.vitals.load_average_pct

    @property
    def busy_pct(self) -> int:
        """Of the vitals."""
        return self.vitals.busy_pct


@dataclass(frozen=True, slots=True)
class Glance:
    """'How busy are you?' Answered by an ack; unlike a ping it says nothing of its sender."""

    seq: int


@dataclass(frozen=True, slots=True)
class Nack:
    """A relay's 'no answer here either': it has heard the request, so the requester's own ears work."""

    seq: int


@dataclass(frozen=True, slots=True)
class Alive:
    """A rumour: the member's own card, encoded."""

    card: bytes


class Seen(IntFlag):
    """What an observer of a member knows of its host, beside silence."""

    CLOSED = 1
    """The member's lifeline ended: its process has, or something on the way cut it."""

    REFUSED = 2
    """Its host says that nobody listens there: no process, or a firewall that says so."""

    REJECTED = 4
    """Its host says so of its port for datagrams: as above, and easier to forge."""

    @property
    def is_refused(self) -> bool:
        """Say whether the host refuses, in either way."""
        return bool(self & (Seen.REFUSED | Seen.REJECTED))


@dataclass(frozen=True, slots=True)
class Suspect:
    """A rumour: `accuser` had no answer from this member. `seen`: what it knows beside that, as bits of `Seen`."""

    node_id: NodeId
    boot: int
    incarnation: int
    accuser: NodeId
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Dead:
    """A rumour: `accuser` declares this boot of the member dead."""

    node_id: NodeId
    boot: int
    incarnation: int
    cause: Cause
    accuser: NodeId


@dataclass(frozen=True, slots=True)
class Left:
    """A rumour, started by the member itself: this boot has left and runs nothing any more."""

    node_id: NodeId
    boot: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class Forget:
    """A rumour: this session of a member that is gone is to be forgotten, as asked at the member `by`, `age_s` ago."""

    node_id: NodeId
    boot: int
    incarnation: int
    by: NodeId
    age_s: int


Verdict: TypeAlias = Suspect | Dead | Left | Forget
"""What is said of one session of a member."""


@dataclass(frozen=True, slots=True)
class Join:
    """'Take me in.' Mesh id 0 in the header: this node belongs to no mesh yet.

    `expect` and `met` are for founding: how many must meet, and which cards the asker knows of.
    `replaces` is the session of its own id that the asker found silent at another address (0: none).
    """

    card: bytes
    expect: int
    replaces: int
    met: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Welcome:
    """'You are in.' The mesh id stands in the header.

    `known_boot` is the highest boot known of the joiner's id (0: none).
    """

    known_boot: int
    members: tuple[Standing, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """'I belong to no mesh either.' The cards met so far, the answerer's own among them."""

    met: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """'No', with a code for programs and a sentence for people.

    Codes: `foreign_mesh`, `version`, `name_taken` and `same_id` (`about`: the holder's card), `self`.
    """

    code: str
    text: str
    about: bytes | None = None


@dataclass(frozen=True, slots=True)
class SyncRoot:
    """Anti-entropy, first step: one hash over everything the sender knows."""

    root: int


@dataclass(frozen=True, slots=True)
class SyncSame:
    """'I know exactly the same.'"""


@dataclass(frozen=True, slots=True)
class SyncBuckets:
    """'We differ': one 8-byte hash per bucket of node ids, concatenated."""

    hashes: bytes


@dataclass(frozen=True, slots=True)
class SyncOffer:
    """Everything the sender knows in the buckets that differ."""

    buckets: tuple[int, ...]
    members: tuple[Standing, ...]


@dataclass(frozen=True, slots=True)
class SyncDelta:
    """What the answerer knows better, in the buckets offered."""

    members: tuple[Standing, ...]


@dataclass(frozen=True, slots=True)
class Reached:
    """'You let me in under this boot: can you reach me?'"""

    boot: int


@dataclass(frozen=True, slots=True)
class Lifeline:
    """'Keep this stream as long as I live': from a member, in this boot, to one of its observers."""

    boot: int


@dataclass(frozen=True, slots=True)
class LifelineKept:
    """'I do.'"""


@dataclass(frozen=True, slots=True)
class ReachedAnswer:
    """Why the joiner could not be reached by UDP, and by TCP; empty: it could, or it is not known yet."""

    udp: str
    tcp: str


def _build_ack(seq: int, subject: NodeId, boot: int, *vitals: int) -> Ack:
    return Ack(seq, subject, boot, Vitals(*vitals))


_id = s.nonzero(64)
_boot = s.uint(48)
_incarnation = s.uint(32)
_card = r.card
_seq = s.uint(32)
MEMBERS_MAX = 20_000
MET_MAX = 256
SYNC_BUCKETS = 64

SCHEMAS: dict[int, tuple[type, s.Field]] = {
    1: (Ping, s.struct(Ping, ("seq", _seq), ("target", s.uint(32)), ("view", s.uint(16)))),
    2: (PingReq, s.struct(PingReq, ("seq", _seq), ("target", _id), ("address", s.address))),
    3: (
        Ack,
        s.struct(
            _build_ack,
            ("seq", _seq),
            ("subject", s.uint(64)),
            ("boot", s.uint(32)),
            ("free_slots", s.uint(16)),
            ("load_average_pct", s.uint(8)),
            ("busy_pct", s.uint(8)),
        ),
    ),
    4: (Alive, s.struct(Alive, ("card", _card))),
    5: (
        Suspect,
        s.struct(
            Suspect,
            ("node_id", _id),
            ("boot", _boot),
            ("incarnation", _incarnation),
            ("accuser", _id),
            ("seen", s.uint(3)),
        ),
    ),
    6: (
        Dead,
        s.struct(
            Dead,
            ("node_id", _id),
            ("boot", _boot),
            ("incarnation", _incarnation),
            ("cause", r.enum_of(Cause)),
            ("accuser", _id),
        ),
    ),
    7: (
        Left,
        s.struct(Left, ("node_id", _id), ("boot", _boot), ("incarnation", _incarnation)),
    ),
    8: (Nack, s.struct(Nack, ("seq", _seq))),
    9: (
        Join,
        s.struct(
            Join,
            ("card", _card),
            ("expect", s.uint(16)),
            ("replaces", _boot),
            ("met", s.many(_card, MET_MAX)),
        ),
    ),
    10: (
        Welcome,
        s.struct(Welcome, ("known_boot", _boot), ("members", s.many(r.standing, MEMBERS_MAX))),
    ),
    11: (Waiting, s.struct(Waiting, ("met", s.many(_card, MET_MAX)))),
    12: (
        Refused,
        s.struct(
            Refused, ("code", s.text(32)), ("text", s.text(500)), ("about", s.optional(_card))
        ),
    ),
    13: (SyncRoot, s.struct(SyncRoot, ("root", s.uint(64)))),
    14: (SyncSame, s.struct(SyncSame)),
    15: (SyncBuckets, s.struct(SyncBuckets, ("hashes", s.blob(8 * SYNC_BUCKETS)))),
    16: (
        SyncOffer,
        s.struct(
            SyncOffer,
            ("buckets", s.many(s.uint(8), SYNC_BUCKETS)),
            ("members", s.many(r.standing, MEMBERS_MAX)),
        ),
    ),
    17: (SyncDelta, s.struct(SyncDelta, ("members", s.many(r.standing, MEMBERS_MAX)))),
    18: (
        Forget,
        s.struct(
            Forget,
            ("node_id", _id),
            ("boot", _boot),
            ("incarnation", _incarnation),
            ("by", s.uint(64)),
            ("age_s", s.uint(32)),
        ),
    ),
    19: (Reached, s.struct(Reached, ("boot", _boot))),
    20: (ReachedAnswer, s.struct(ReachedAnswer, ("udp", s.text(200)), ("tcp", s.text(200)))),
    21: (Lifeline, s.struct(Lifeline, ("boot", _boot))),
    22: (LifelineKept, s.struct(LifelineKept)),
    23: (Glance, s.struct(Glance, ("seq", _seq))),
}
