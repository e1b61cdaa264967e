"""Tasks as people and programs see them: JSON-ready dictionaries with stable keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId, format_id
from mesh.tasks.body import Attempt, Body, End, Result
from mesh.wire.task_messages import AttemptCause, Decline, Placement, TaskState

TAIL_CHARS: Final = 4_096
SHORT_TAIL_CHARS: Final = 160
SHORT_ARGV_MAX: Final = 32
SHORT_ARGUMENT_CHARS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a node sees of a task that its record does not say."""

    waits_for: str = ""
    """Why it is not running, in words, if it is ready, or lost."""

    lost: tuple[AttemptCause, float] | None = None
    """Why whoever has it runs it no more, though nobody has written that yet, and since when (Unix) that is seen."""

    is_frozen: bool = False
    """This node holds its run frozen."""

    since: float | None = None
    """When (Unix) its process was started, if this node runs it."""


NOTHING_SEEN: Final = Seen()


def task_json(
    body: Body,
    seen: Seen = NOTHING_SEEN,
    name_of: Callable[[NodeId], str] = format_id,
    *,
    home: str | None = None,
    strategy: str | None = None,
    token: Ballot | None = None,
    is_short: bool = False,
) -> dict[str, Any]:
    """Return a task's JSON; a short form, for lists, cuts long arguments and output.

    Args:
        body: the task.
        seen: what this node sees of it besides.
        name_of: returns a member's name.
        home: the name of its first candidate now; None: it has none, or its queue's strategy asks nobody first.
        strategy: of its queue, as it is known here; None: it is not, or was not looked for.
        token: of the attempt that runs, where it is known.
        is_short: whether it is for a list.
    """
    last = body.attempts[-1] if body.attempts else None
    lost = seen.lost
    is_waiting = body.state is TaskState.READY or lost is not None
    has_owner = last is not None and (body.state is TaskState.LEASED or body.state.is_terminal)
    return {
        "id": body.task_id,
        "state": body.state.word,
        "queue": body.spec.queue,
        "strategy": strategy,
        "kind": "command",
        "argv": _argv(body, is_short=is_short),
        "key": body.spec.key,
        "pool": body.spec.pool,
        "class": body.spec.node_class,
        "labels": dict(body.spec.labels),
        "needs": dict(body.spec.needs),
        "keeper": body.origin,
        "home": home,
        "owner": last.name if last is not None and has_owner else None,
        "attempt": body.attempt,
        "created": body.created,
        "not_before": body.not_before or None,
        "started": None if last is None else _started(last, seen.since),
        "ended": body.ended,
        "cause": body.cause.word,
        "cancel_requested": body.is_cancel_requested,
        "retries_left": body.retries_left,
        "retry_of": body.retry_of or None,
        "waits_for": seen.waits_for if is_waiting else "",
        "lost": lost is not None,
        "lost_cause": None if lost is None else lost[0].word,
        "lost_since": None if lost is None else lost[1],
        "frozen": seen.is_frozen,
        "attempts": [_attempt_json(one, name_of, token, seen.since) for one in body.attempts],
        "result": _result_json(body.result, SHORT_TAIL_CHARS if is_short else TAIL_CHARS),
    }


def _argv(body: Body, *, is_short: bool) -> list[str]:
    argv = list(body.spec.argv)
    if not is_short:
        return argv
    return [argument[:SHORT_ARGUMENT_CHARS] for argument in argv[:SHORT_ARGV_MAX]]


def _started(attempt: Attempt, since: float | None) -> float | None:
    """Return when an attempt's process was started, or was claimed, where nobody has said more; None: it never was.

    Its owner says so at the end. Until then the node that runs it knows; of an attempt that was lost, nobody.
    """
    if attempt.started is not None or attempt.end in {End.VERDICT, End.RELEASED}:
        return attempt.started
    return attempt.claimed if since is None else since


def _attempt_json(
    attempt: Attempt,
    name_of: Callable[[NodeId], str],
    token: Ballot | None,
    since: float | None,
) -> dict[str, Any]:
    """Return an attempt's JSON; `token` and `since` are of the one that runs, as far as they are known."""
    if attempt.ended is not None:
        token = since = None
    token = attempt.token or token
    return {
        "number": attempt.number,
        "node": attempt.name,
        "node_id": format_id(attempt.node_id),
        # In text, as MESH_TOKEN is: few programs read so long a number from JSON exactly.
        "token": None if token is None else str(token.token),
        "cause": attempt.cause.word,
        "claimed": attempt.claimed,
        "started": _started(attempt, since),
        "ended": attempt.ended,
        "end": attempt.end.name.lower(),
        "exit_code": attempt.exit_code,
        "error": attempt.error,
        "placed": _placed_json(attempt.placement, name_of),
    }


def _placed_json(
    placement: Placement | None, name_of: Callable[[NodeId], str]
) -> dict[str, Any] | None:
    if placement is None:
        return None
    is_passed = placement.passed is not Decline.NONE
    return {
        "by": placement.by.word,
        "home": None if placement.home is None else name_of(placement.home),
        "passed": placement.passed.name.lower() if is_passed else None,
    }


def _result_json(result: Result | None, tail_chars: int) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "exit_code": result.exit_code,
        "error": result.error,
        "output_bytes": result.output_bytes,
        "output_dropped_bytes": result.output_dropped_bytes,
        "stdout_tail": result.stdout_tail.decode("utf-8", "replace")[-tail_chars:],
        "stderr_tail": result.stderr_tail.decode("utf-8", "replace")[-tail_chars:],
    }
