"""How a task's record changes: each change a value, that looks at what was found and says what to write instead.

    Claim     ready, due or lapsed ──► leased          or dead letter: it took too many owners with it
    Finish    leased ──► done │ failed │ scheduled     a failure waits, and is tried again, while retries are left
    Release   leased ──► ready                         nothing is spent
    MarkCancelled   leased ──► leased, and never again
    Cancel    ready, scheduled or lapsed ──► cancelled

A change is asked for under a ballot (`Asker.propose`), perhaps several times, and then finds whatever a majority
holds; or it is applied by the owner to what it wrote last, and written under its token. It is a pure function of
what it finds: the time of day and the jitter are parts of it. Nothing leaves a final state. `refusal` says why
nothing would be written.

Whoever asks with a ballot sees a leased value only where that lease has lapsed, or is the claimant's own:
voters tell others nothing of it. So what a claim finds leased is lost, unless it was written by this very claim, whose grant was not
heard of: that one has never run, and is taken up as it is.

Source: our own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from mesh.core.ballot import Ballot
from mesh.errors import DecodeError, LocalProtocolError
from mesh.tasks.body import (
    ATTEMPTS_MAX,
    ERROR_CHARS_MAX,
    TAIL_BYTES_MAX,
    TIME_MAX,
    Attempt,
    Body,
    End,
    Result,
    Terms,
)
from mesh.tasks.form import of_value, to_value
from mesh.wire.register_messages import Owner, Value
from mesh.wire.task_messages import AttemptCause, Placement, TaskState
from mesh.wire.work_messages import Spec

POISON_MAX: Final = 3
"""So many attempts in a row that were lost without a verdict make a dead letter,"""

POISON_WINDOW_S: Final = 72 * 3_600.0
"""if they were lost within this time."""

JITTER: Final = 0.5
"""On top of the pause before a retry: up to this share of it, so that what failed together does not return together."""


ATTEMPT_MAX: Final = (1 << 32) - 1
"""The last attempt's number that a record can hold."""


class Refusal(Enum):
    """Why a change writes nothing."""

    MISSING = "there is no such task"
    UNREADABLE = "its record is not one that this version can read"
    NOT_DUE = "its time has not come"
    OVER = "it has ended, for good"
    NOT_LEASED = "it is not leased: its owner let it go, or never had it"
    ANOTHERS = "it is leased to another session, or for another attempt"
    MARKED = "it is to be cancelled already"


@dataclass(frozen=True, slots=True)
class Change:
    """What all changes have in common. Kinds say in `_apply` what becomes of a task."""

    at: float
    """The time of day (Unix) of whoever asks."""

    def __post_init__(self) -> None:
        """Refuse what no record can hold.

        Raises:
            LocalProtocolError: `at` is no time of day.
        """
        if not 0 <= self.at <= TIME_MAX:
            raise LocalProtocolError(
                f"a time of day from 0 to {TIME_MAX:g} is expected, found {self.at}"
            )

    def __call__(self, found: Value | None) -> Value | None:
        """Return what to write in place of what was found; None: nothing, for the reason that `refusal` gives."""
        body = self.outcome(found)
        return to_value(body) if isinstance(body, Body) else None

    def refusal(self, found: Value | None) -> Refusal | None:
        """Return why nothing would be written over what was found; None: something would."""
        body = self.outcome(found)
        return body if isinstance(body, Refusal) else None

    def outcome(self, found: Value | None) -> Body | Refusal:
        """Return what becomes of the task that was found, or why nothing does."""
        if found is None:
            return Refusal.MISSING
        try:
            body = of_value(found)
        except DecodeError:
            return Refusal.UNREADABLE
        return Refusal.OVER if body.state.is_terminal else self._apply(body)

    def _apply(self, body: Body) -> Body | Refusal:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Claim(Change):
    """Lease the task to a session, for the next attempt. What comes of it may be final: see `standing`.

    `at` tells one claim of a session from another: no two of them, for one task, have the same. One whose answer
    did not come may be asked again with the same `at`, and finds its own lease then.
    """

    owner: Owner
    name: str
    """Of the owner's node, as people know it."""

    lost: AttemptCause = AttemptCause.LAPSE
    """Why a lease that is found is over, as far as the asker knows."""

    lost_attempt: int = 0
    """The attempt that `lost` is about: of any other that is found, nothing is known; 0: it is about any."""

    placement: Placement | None = None
    """Why this owner was asked; None: nobody said."""

    def _apply(self, body: Body) -> Body | Refusal:
        if body.not_before > self.at:
            return Refusal.NOT_DUE
        running = body.running
        if running is not None:
            if running.owner == self.owner and running.claimed == self.at:
                return body
            is_it = self.lost_attempt in {0, running.number}
            lost = self.lost if is_it else AttemptCause.LAPSE
            body = _lose(body, running, lost, self.at)
            if body.state.is_terminal:
                return body
        if body.attempt >= ATTEMPT_MAX:
            error = f"it was started {body.attempt} times, and is not started again"
            return _end(body, TaskState.FAILED, Result(error=error), self.at)
        attempt = Attempt(
            number=body.attempt + 1,
            node_id=self.owner.node_id,
            boot=self.owner.boot,
            name=self.name,
            cause=body.cause,
            claimed=self.at,
            placement=self.placement,
        )
        return replace(
            body,
            state=TaskState.LEASED,
            not_before=0.0,
            attempt=attempt.number,
            attempts=_with(body.attempts, attempt),
        )


@dataclass(frozen=True, slots=True)
class _OwnersChange(Change):
    """A change by the session that has the lease, about the attempt that it runs."""

    owner: Owner
    attempt: int
    token: Ballot
    started: float | None = field(default=None, kw_only=True)
    """When (Unix) its process was started; None: it was not, or that is on record."""

    def _apply(self, body: Body) -> Body | Refusal:
        running = body.running
        if running is None:
            return Refusal.NOT_LEASED
        if (running.owner, running.number) != (self.owner, self.attempt):
            return Refusal.ANOTHERS
        if self.started is not None:
            running = replace(running, started=self.started)
        return self._change(body, running)

    def _change(self, body: Body, running: Attempt) -> Body | Refusal:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Finish(_OwnersChange):
    """Write the verdict on an attempt: it counts by its token, even if the lease has lapsed since.

    `jitter` is drawn from [0, 1) by whoever asks.
    """

    result: Result
    jitter: float
    is_cancelled: bool = False
    """The run was stopped because the task is to be cancelled."""

    def _change(self, body: Body, running: Attempt) -> Body:
        result = _fitting(self.result)
        code, error = result.exit_code, result.error
        ended = replace(
            running, token=self.token, ended=self.at, end=End.VERDICT, exit_code=code, error=error
        )
        body = replace(body, attempts=(*body.attempts[:-1], ended))
        if self.is_cancelled or body.is_cancel_requested:
            return _end(body, TaskState.CANCELLED, result, self.at)
        if code == 0 and not error:
            return _end(body, TaskState.DONE, result, self.at)
        if not body.retries_left:
            return _end(body, TaskState.FAILED, result, self.at)
        used = body.terms.retries - body.retries_left
        return replace(
            body,
            state=TaskState.SCHEDULED,
            not_before=self.at + retry_pause_s(body.terms, used, self.jitter),
            cause=AttemptCause.RETRY,
            retries_left=body.retries_left - 1,
        )


@dataclass(frozen=True, slots=True)
class Release(_OwnersChange):
    """Let the task go, for another to run: no retry is spent. `reason` completes 'it was released: …'."""

    reason: str

    def _change(self, body: Body, running: Attempt) -> Body:
        error = _clean(f"it was released: {self.reason}")
        ended = replace(running, token=self.token, ended=self.at, end=End.RELEASED, error=error)
        body = replace(body, attempts=(*body.attempts[:-1], ended))
        if body.is_cancel_requested:
            return _end(body, TaskState.CANCELLED, Result(error=error), self.at)
        return replace(body, state=TaskState.READY, cause=AttemptCause.RELEASED)


@dataclass(frozen=True, slots=True)
class MarkCancelled(_OwnersChange):
    """Write down that the task is to be cancelled, before its run is stopped: nobody starts it again after that."""

    def _change(self, body: Body, running: Attempt) -> Body | Refusal:
        if body.is_cancel_requested:
            return Refusal.MARKED
        running = replace(running, token=self.token)
        return replace(body, is_cancel_requested=True, attempts=(*body.attempts[:-1], running))


@dataclass(frozen=True, slots=True)
class Cancel(Change):
    """Cancel a task that nobody runs; a lease that is found has lapsed."""

    def _apply(self, body: Body) -> Body | Refusal:
        running = body.running
        if running is not None:
            marked = replace(body, is_cancel_requested=True)
            return _lose(marked, running, AttemptCause.LAPSE, self.at)
        result = Result(error="it was cancelled before it was started" if not body.attempt else "")
        marked = replace(body, is_cancel_requested=True, not_before=0.0)
        return _end(marked, TaskState.CANCELLED, result, self.at)


def created(
    spec: Spec,
    terms: Terms,
    at: float,
    *,
    not_before: float = 0.0,
    origin: str = "",
    retry_of: str = "",
) -> Body:
    """Return a new task: ready, or scheduled if its time is to come. `at` and `not_before` are Unix times."""
    is_scheduled = not_before > at
    return Body(
        spec=spec,
        terms=terms,
        state=TaskState.SCHEDULED if is_scheduled else TaskState.READY,
        created=at,
        origin=origin,
        retry_of=retry_of,
        not_before=not_before if is_scheduled else 0.0,
        retries_left=terms.retries,
    )


def retry_pause_s(terms: Terms, used: int, jitter: float) -> float:
    """Return how long a task waits before its next retry, when `used` were used before."""
    pause_s = terms.retry_delay_s * 2.0 ** min(used, 64)
    return min(pause_s, terms.retry_delay_s_max) * (1 + JITTER * jitter)


def lost_in_a_row(body: Body, at: float) -> list[Attempt]:
    """Return those of the latest attempts that were lost, one after another, in the time before `at` that counts."""
    lost: list[Attempt] = []
    for attempt in reversed(body.attempts):
        if attempt.end is End.RELEASED:
            continue
        is_recent = attempt.ended is None or at - attempt.ended <= POISON_WINDOW_S
        if attempt.end is not End.LOST or not is_recent:
            break
        lost.insert(0, attempt)
    return lost


def _lose(body: Body, running: Attempt, cause: AttemptCause, at: float) -> Body:
    """End an attempt that its owner said nothing more of, and the task with it if that was enough."""
    cause = cause if cause in _LOSSES else AttemptCause.LAPSE
    ended = replace(running, ended=at, end=End.LOST, error=_LOSSES[cause].format(name=running.name))
    body = replace(body, state=TaskState.READY, cause=cause, attempts=(*body.attempts[:-1], ended))
    if body.is_cancel_requested:
        return _end(body, TaskState.CANCELLED, Result(error=ended.error), at)
    lost = lost_in_a_row(body, at)
    if len(lost) < POISON_MAX:
        return body
    names = ", ".join(one.name for one in lost)
    error = (
        f"{len(lost)} attempts in a row were lost without a verdict within {POISON_WINDOW_S / 3600:g} hours "
        f"(at {names}): see what it does to a node, then retry it"
    )
    return _end(body, TaskState.FAILED, Result(error=_clean(error)), at)


def _fitting(result: Result) -> Result:
    """Return a result within what a record can hold: the ends of the streams, a shell's exit code."""
    return replace(
        result,
        exit_code=None if result.exit_code is None else result.exit_code & 0xFF,
        error=_clean(result.error),
        stdout_tail=result.stdout_tail[-TAIL_BYTES_MAX:],
        stderr_tail=result.stderr_tail[-TAIL_BYTES_MAX:],
    )


def _clean(text: str) -> str:
    """Return a text that fits and can be written: what is no UTF-8 is replaced."""
    return text.encode("utf-8", "replace").decode()[:ERROR_CHARS_MAX]


_LOSSES: Final = {
    AttemptCause.LAPSE: "{name} was not heard of any more, and its lease ran out (lapse)",
    AttemptCause.CRASH: "{name} was killed or crashed: that its session is over is proven (crash)",
    AttemptCause.FORCED: "it was taken away from {name}",
    AttemptCause.RECOVERED: "records were lost while {name} had it",
}


def _end(body: Body, state: TaskState, result: Result, at: float) -> Body:
    return replace(body, state=state, result=result, ended=at, not_before=0.0)


def _with(attempts: tuple[Attempt, ...], latest: Attempt) -> tuple[Attempt, ...]:
    """Return the attempts with one more: the first one tells when it began, the latest ones how it goes."""
    if len(attempts) < ATTEMPTS_MAX:
        return (*attempts, latest)
    return (attempts[0], *attempts[2:], latest)
