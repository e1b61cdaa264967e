"""One task that is not over, as a voter that sees to it keeps it in mind.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.errors import DecodeError
from mesh.registers.record import Record
from mesh.tasks.body import Head, is_task_key
from mesh.tasks.form import peek
from mesh.tasks.lane import Lane, Queued
from mesh.wire.register_messages import Owner
from mesh.wire.task_messages import AttemptCause, Offer


class Phase(Enum):
    """How far a task has come, as this voter sees it."""

    WAITS = "waits"
    """For its time, for the voters before this one, or for a while."""

    QUEUED = "queued"
    ASKED = "asked"
    LEASED = "leased"


class Loss(NamedTuple):
    """That a session runs an attempt no more, without a verdict, as a voter sees it."""

    owner: Owner
    attempt: int
    cause: AttemptCause
    at: float
    """When that was seen, by the session's clock."""


@dataclass(slots=True, eq=False)
class Entry(Queued):
    """One task that is not over. Invariant: it has a timer, unless it is queued; it is asked exactly if `asked` says whom."""

    lane: Lane
    ballot: Ballot
    seq: int
    owner: Owner | None
    attempt: int
    """That the next claim makes."""

    phase: Phase = Phase.WAITS
    asked: NodeId | None = None
    had_more: bool = False
    """Who is asked was told that more tasks wait."""

    is_claimed: bool = False
    """Somebody that is asked about it has said that it claims, and counts its slot itself since."""

    is_contested: bool = False
    """It has no home any more that would have it: that declined, is gone, or lost it."""

    was_let_pass: bool = False
    """Nobody took it in its latest contest: one member is asked alone now, which no word of another's can hold up."""

    lost_at: float | None = None
    """When its owner was seen to run it no more; its lease may have been renewed since."""

    pauses: int = 0
    """How often it was said to be somebody's, against what is kept here."""

    def offer(self, head: Head, cause: AttemptCause) -> Offer:
        """Return the offer of its next attempt; `head` is what its record says."""
        return Offer(
            task_id=head.task_id,
            ballot=self.ballot,
            seq=self.seq,
            attempt=self.attempt,
            cause=cause,
            queue=head.queue,
            pool=head.pool,
            node_class=head.node_class,
            labels=head.labels,
            needs=head.needs,
            has_more=self.had_more,
            placement=self.placement,
        )


def head_of(record: Record) -> Head | None:
    """Return what a record says of a task; None: nothing that can be understood."""
    if record.value is None:
        return None
    try:
        return peek(record.value.body)
    except DecodeError:
        return None


KeptTask: TypeAlias = tuple[bytes, Record, Head]
"""A task of which something is kept: its key, what is kept, and what that says of it."""


def in_order_of_making(records: Iterable[tuple[bytes, Record]]) -> list[KeptTask]:
    """Return the tasks among these registers, the oldest first. Each is read once, which is what takes the time."""
    found = [
        (key, record, head)
        for key, record in records
        if is_task_key(key) and (head := head_of(record)) is not None
    ]
    return sorted(found, key=lambda one: (one[2].created, one[0]))
