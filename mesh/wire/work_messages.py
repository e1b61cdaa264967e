"""The messages of work in its first form: offer, output, report, and questions about tasks.

All of them but `SlotsFree` travel as exchanges: one request, one reply, on a stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from mesh.core.ids import TASK_ID_CHARS_MAX
from mesh.errors import DecodeError
from mesh.wire import records as r
from mesh.wire import schema as s

ARGUMENT_CHARS_MAX: Final = 131_072  # Linux's own limit for one argument
ARGUMENTS_MAX: Final = 4_096
OUTPUT_CHUNK_BYTES_MAX: Final = 65_536
QUERY_TASKS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a task is: the command and what it needs. Never changes after submission."""

    task_id: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = ""  # "": the executing node's own working directory
    key: str = ""  # tasks with one key share a home; "": the task id is the key
    queue: str = "default"
    pool: str = ""  # "": any pool
    node_class: str = ""  # "": any class
    labels: tuple[tuple[str, str], ...] = ()
    needs: tuple[tuple[str, int], ...] = ()


class Decline(IntEnum):
    """Why an offer was declined."""

    NONE = 0
    BUSY = 1  # no free slot, or too little of an amount is free now: will say SlotsFree
    UNFIT = 2  # needs more than is declared
    DRAINING = 3


@dataclass(frozen=True, slots=True)
class Offer:
    """'Run this now?' `attempt` counts from 1; `keeper_boot` names the asker's session.

    `has_more`: more tasks wait at the asker, so it wants to hear of the next free slot too.
    """

    spec: Spec
    attempt: int
    keeper_boot: int
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class OfferAnswer:
    """'Running' (decline is NONE), or why not. `boot` is the session that runs it.

    `free_slots` counts what the asker may try for: 0 also when others have waited longer. Who was
    declined as busy, or was told 0 when it had more, is told `SlotsFree` in its turn.
    """

    decline: Decline
    boot: int
    free_slots: int


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """One piece of a running attempt's output. `seq` counts the attempt's pieces from 0, both streams together."""

    task_id: str
    attempt: int
    seq: int
    stream: int  # 1 stdout, 2 stderr
    data: bytes


@dataclass(frozen=True, slots=True)
class Report:
    """An attempt has ended. `exit_code` is the shell's (128 + signal); `error` when it did not start."""

    task_id: str
    attempt: int
    exit_code: int
    error: str
    free_slots: int


class Verdict(IntEnum):
    """The keeper's answer to output and reports."""

    TAKEN = 0
    WAIT = 1  # not taken: a watcher is slow, send it again in a moment
    STALE = 2  # this attempt counts no more: stop it


@dataclass(frozen=True, slots=True)
class ReportAnswer:
    """The answer to `OutputPiece` and `Report`."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CancelRun:
    """'Stop this attempt.' Answered by `ReportAnswer`: TAKEN (stopping), STALE (not running here)."""

    task_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class RunQuery:
    """'Do you still run this attempt?' Answered by `ReportAnswer`: TAKEN (it runs, or its report is on its way), STALE (not known here)."""

    task_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Released:
    """'I do not run this attempt: give it to another.' Answered by `ReportAnswer`.

    `reason` completes 'it was released: …': the owner is leaving, or ran short of something.
    """

    task_id: str
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class SlotsFree:
    """A datagram, best effort: 'I declined you for want of a slot; now I have some.'"""

    free_slots: int


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """'Which tasks do you keep?' One id, or "" for all."""

    task_id: str


@dataclass(frozen=True, slots=True)
class TaskList:
    """The tasks kept by the answerer, as JSON text each (the shape of `mesh task --json`)."""

    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CancelTask:
    """'Cancel this task if you keep it.' Answered by `TaskList`: its record, or nothing."""

    task_id: str


_task_id = s.text(TASK_ID_CHARS_MAX, empty=False)
_attempt = s.uint(32)
_tag = s.text(128)
_labels = s.pairs(r.word, _tag, r.LABELS_MAX)
_needs = s.pairs(r.word, s.uint(48), r.LABELS_MAX)
_SPEC_PARTS: Final = (
    ("argv", s.many(s.text(ARGUMENT_CHARS_MAX), ARGUMENTS_MAX)),
    ("env", s.pairs(s.text(1024, empty=False), s.text(ARGUMENT_CHARS_MAX), 1024)),
    ("cwd", s.text(4096)),
    ("key", _tag),
    ("queue", _tag),
    ("pool", _tag),
    ("node_class", _tag),
    ("labels", _labels),
    ("needs", _needs),
)
_spec = s.keyword_struct(Spec, ("task_id", _task_id), *_SPEC_PARTS)
_new_spec = s.keyword_struct(Spec, ("task_id", s.text(TASK_ID_CHARS_MAX)), *_SPEC_PARTS)

SCHEMAS: dict[int, tuple[type, s.Field]] = {
    32: (
        Offer,
        s.struct(
            Offer,
            ("spec", _spec),
            ("attempt", _attempt),
            ("keeper_boot", s.uint(48)),
            ("has_more", s.flag),
        ),
    ),
    33: (
        OfferAnswer,
        s.struct(
            OfferAnswer,
            ("decline", r.enum_of(Decline)),
            ("boot", s.uint(48)),
            ("free_slots", s.uint(16)),
        ),
    ),
    34: (
        OutputPiece,
        s.struct(
            OutputPiece,
            ("task_id", _task_id),
            ("attempt", _attempt),
            ("seq", s.uint(32)),
            ("stream", s.uint(2)),
            ("data", s.blob(OUTPUT_CHUNK_BYTES_MAX)),
        ),
    ),
    35: (
        Report,
        s.struct(
            Report,
            ("task_id", _task_id),
            ("attempt", _attempt),
            ("exit_code", s.uint(8)),
            ("error", s.text(2000)),
            ("free_slots", s.uint(16)),
        ),
    ),
    36: (ReportAnswer, s.struct(ReportAnswer, ("verdict", r.enum_of(Verdict)))),
    37: (CancelRun, s.struct(CancelRun, ("task_id", _task_id), ("attempt", _attempt))),
    38: (SlotsFree, s.struct(SlotsFree, ("free_slots", s.uint(16)))),
    39: (TaskQuery, s.struct(TaskQuery, ("task_id", s.text(TASK_ID_CHARS_MAX)))),
    40: (TaskList, s.struct(TaskList, ("tasks", s.many(s.text(4_000_000), QUERY_TASKS_MAX)))),
    41: (CancelTask, s.struct(CancelTask, ("task_id", _task_id))),
    42: (RunQuery, s.struct(RunQuery, ("task_id", _task_id), ("attempt", _attempt))),
    43: (
        Released,
        s.struct(Released, ("task_id", _task_id), ("attempt", _attempt), ("reason", s.text(2000))),
    ),
}


def check_spec(spec: Spec) -> None:
    """Raise unless `spec` can travel: every part within its limit, and text that is text.

    The id may be empty: whoever keeps the task draws one.

    Raises:
        DecodeError: there is no command; or a part is too long, of the wrong type, repeated, not
            sorted, or holds bytes that are no UTF-8 (surrogates).
    """
    _new_spec.unpack(_new_spec.pack(spec))
    if not spec.argv or not spec.argv[0]:
        raise DecodeError("expected a command, found none")
    texts = [*spec.argv, spec.task_id, spec.cwd, spec.key, spec.queue, spec.pool, spec.node_class]
    for pairs in (spec.env, spec.labels, spec.needs):
        for pair in pairs:
            texts += (part for part in pair if isinstance(part, str))
    try:
        for text in texts:
            text.encode()
    except UnicodeEncodeError as error:
        raise DecodeError(f"expected text in UTF-8, found {error.object[:40]!r}") from error
