"""What a task is: what was asked, where it stands, its attempts and what came of them.

                 ┌────────────── retry, release ───────────────┐
                 ▼                                             │
    submitted ─► ready, or scheduled for a time ──claim──► leased ──verdict──► done │ failed │ cancelled
                                                     ▲       │
                                                     └─lapse─┘

How often a task may fail is not how often it may be started: only a failure spends a retry. An owner that let
go, died or was not heard of spends none.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.placement.live_view import Wants
from mesh.wire.register_messages import KEY_BYTES_MAX, Owner
from mesh.wire.task_messages import AttemptCause, Placement, TaskState
from mesh.wire.work_messages import Spec

ATTEMPTS_MAX: Final = 32
"""Attempts on record for one task: the first one and the latest."""

TAIL_BYTES_MAX: Final = 16_384
"""The end of each stream that a result holds."""

ERROR_CHARS_MAX: Final = 1_000
RETRIES_MAX: Final = 65_535
DURATION_S_MAX: Final = 1e8
"""Three years."""

TIME_MAX: Final = 5e9
"""The last time of day (Unix) that is believed: in the year 2128."""

SPEC_BYTES_MAX: Final = 524_288
"""A command line with its environment. All else in a task is bounded by far less."""

_PREFIX: Final = b"task/"
_LONG_PREFIX: Final = b"taskx/"


class End(IntEnum):
    """How an attempt ended."""

    OPEN = 0  # it has not, as far as is known
    VERDICT = 1  # its owner said how
    LOST = 2  # without a word: its lease lapsed, or its owner's session is over
    RELEASED = 3  # its owner let it go: that spends nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a task is dealt with. Times in seconds."""

    retries: int = 0
    """How often it is started again after a failure."""

    retry_delay_s: float = 1.0
    """Before the first retry; twice as long before each further one."""

    retry_delay_s_max: float = 3_600.0
    """But no longer than this. Jitter comes on top of both."""

    retain_s: float = 86_400.0
    """So long its record is kept after its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt, by one session of one node. `exit_code` is the shell's (128 + signal)."""

    number: int
    node_id: NodeId
    boot: int
    name: str  # of the node, as people know it
    cause: AttemptCause
    token: Ballot | None = None  # None: nobody who knew it has written it down
    placement: Placement | None = (
        None  # None: an earlier version wrote it, or who asked did not say
    )
    claimed: float  # Unix: when its owner asked for it
    started: float | None = None  # Unix: when its process was started, as its owner says at the end
    ended: float | None = None  # Unix
    end: End = End.OPEN
    exit_code: int | None = None
    error: str = ""

    @property
    def owner(self) -> Owner:
        """The session that has, or had, it."""
        return Owner(self.node_id, self.boot)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a task. `error` is a sentence where the command did not start, or the mesh gave up."""

    exit_code: int | None = None
    error: str = ""
    output_bytes: int = 0
    output_dropped_bytes: int = 0
    stdout_tail: bytes = b""
    stderr_tail: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The part of a task that offers and lists need."""

    task_id: str
    state: TaskState
    created: float  # Unix
    not_before: float = 0.0  # Unix; above 0 exactly while it is scheduled
    ended: float | None = None  # Unix
    retain_s: float
    attempt: int = 0  # the number of the latest attempt; 0: none yet
    cause: AttemptCause = AttemptCause.FIRST  # of the attempt that runs, or of the next one
    is_cancel_requested: bool = False
    key: str = ""
    queue: str = "default"
    pool: str = ""
    node_class: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    needs: tuple[tuple[str, int], ...] = ()

    @property
    def wants(self) -> Wants:
        """What it asks of a member."""
        return Wants(
            key=self.key or self.task_id,
            queue=self.queue,
            pool=self.pool,
            node_class=self.node_class,
            labels=self.labels,
            needs=self.needs,
        )

    @property
    def expires(self) -> float | None:
        """From when (Unix) its record is kept no more; None: it has not ended."""
        return None if self.ended is None else self.ended + self.retain_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A task: what was asked, where it stands, and its attempts.

    Invariant (`fault`): only the last attempt can be open, and is exactly while it is leased;
    attempts' numbers rise; `attempt` is the last one's; `ended` and `result` are there exactly in a final state.
    """

    spec: Spec
    terms: Terms
    state: TaskState
    created: float  # Unix
    origin: str = ""  # the node that took it in, as people know it
    retry_of: str = ""  # the dead letter that this one repeats
    not_before: float = 0.0
    ended: float | None = None
    attempt: int = 0
    cause: AttemptCause = AttemptCause.FIRST
    is_cancel_requested: bool = False
    retries_left: int = 0
    attempts: tuple[Attempt, ...] = ()
    result: Result | None = None

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.spec.task_id

    @property
    def head(self) -> Head:
        """The part that offers and lists need."""
        spec = self.spec
        return Head(
            task_id=spec.task_id,
            state=self.state,
            created=self.created,
            not_before=self.not_before,
            ended=self.ended,
            retain_s=self.terms.retain_s,
            attempt=self.attempt,
            cause=self.cause,
            is_cancel_requested=self.is_cancel_requested,
            key=spec.key,
            queue=spec.queue,
            pool=spec.pool,
            node_class=spec.node_class,
            labels=spec.labels,
            needs=spec.needs,
        )

    @property
    def running(self) -> Attempt | None:
        """The attempt that has not ended, or None."""
        return self.attempts[-1] if self.state is TaskState.LEASED else None

    def fault(self) -> str:
        """Return how this task contradicts itself; "": it does not."""
        return _attempts_fault(self) or _state_fault(self)

    def check_invariants(self) -> None:
        """Raise AssertionError if it contradicts itself."""
        fault = self.fault()
        assert not fault, fault


def spec_bytes(spec: Spec) -> int:
    """Return what the command line and environment take up; see `SPEC_BYTES_MAX`."""
    texts = [*spec.argv, spec.cwd]
    for pair in spec.env:
        texts += pair
    return sum(len(text.encode("utf-8", "replace")) + 5 for text in texts)


def task_key(task_id: str) -> bytes:
    """Return the key of a task's register. An id that would not fit goes by its hash."""
    key = _PREFIX + task_id.encode("utf-8", "surrogatepass")
    if len(key) <= KEY_BYTES_MAX:
        return key
    return _LONG_PREFIX + hashlib.blake2b(key, digest_size=32).digest()


def is_task_key(key: bytes) -> bool:
    """Say whether a register is a task's."""
    return key.startswith((_PREFIX, _LONG_PREFIX))


def _attempts_fault(body: Body) -> str:
    attempts = body.attempts
    numbers = [one.number for one in attempts]
    unended = [one.number for one in attempts if one.end is End.OPEN]
    if unended != (numbers[-1:] if body.state is TaskState.LEASED else []):
        return f"in state {body.state.word}, these attempts have not ended: {unended}"
    if body.state is TaskState.LEASED and not numbers:
        return "it is leased, and has no attempt"
    if any((one.ended is None) != (one.end is End.OPEN) for one in attempts):
        return "an attempt has an end and no time of it, or a time and no end"
    if numbers != sorted(set(numbers)) or (numbers and numbers[0] < 1):
        return f"its attempts' numbers do not rise from 1: {numbers}"
    if body.attempt != (numbers[-1] if numbers else 0):
        return f"attempt {body.attempt} is not the last of {numbers}"
    if body.running is not None and body.running.cause is not body.cause:
        return f"attempt {body.attempt} has another cause than the task"
    return ""


def _state_fault(body: Body) -> str:
    if (body.not_before > 0) != (body.state is TaskState.SCHEDULED):
        return f"it is {body.state.word}, and not to start before {body.not_before}"
    if (body.ended is not None) != body.state.is_terminal:
        return f"it is {body.state.word}, and ended at {body.ended}"
    if (body.result is not None) != body.state.is_terminal:
        return f"it is {body.state.word}, with {'a' if body.result else 'no'} result"
    if body.is_cancel_requested and body.state in {TaskState.READY, TaskState.SCHEDULED}:
        return f"it is {body.state.word}, and to be cancelled"
    if body.retries_left > body.terms.retries:
        return f"{body.retries_left} retries are left of {body.terms.retries}"
    return ""
