"""What becomes of tasks, as events: each voter tells what it sees, once it is durable there.

Told is that a task runs, was lost with its node, is ready again, or is over. That it was taken in is not: who submits knows, and
the list of tasks shows it. A mesh that takes in thousands a second says nothing of them until they run.
"""

from __future__ import annotations

from dataclasses import replace

from mesh.core.effects import Emit
from mesh.core.events import Event, EventKind
from mesh.errors import DecodeError
from mesh.registers.record import Record
from mesh.tasks.body import Attempt, Body, is_task_key
from mesh.tasks.form import of_value
from mesh.wire.register_messages import Standing
from mesh.wire.task_messages import AttemptCause, TaskState


def told(key: bytes, before: TaskState | None, record: Record) -> list[Emit]:
    """Return the event of a record that is durable now; `before`: where the task was, as this voter knew it."""
    value = record.value
    if value is None or not is_task_key(key) or record.promised != record.ballot:
        return []  # somebody was promised it, and what it holds was told before
    is_told = before is not None or record.is_named
    if value.standing is Standing.LEASED and (record.seq or not is_told):
        return []  # its owner wrote under the token that it has; or this voter was told of it by others
    if value.standing is Standing.FINAL and before is not None and before.is_terminal:
        return []
    if value.standing is Standing.OPEN and before in {None, TaskState.READY, TaskState.SCHEDULED}:
        return []
    try:
        body = of_value(value)
    except DecodeError:
        return []  # of a later version: counted where it is listed
    return [Emit(_event(body))]


def lost(record: Record) -> list[Emit]:
    """Return the event of a task whose owner is proved to run it no more."""
    if record.value is None:
        return []
    try:
        body = of_value(record.value)
    except DecodeError:
        return []
    event = _event(body)
    return [
        Emit(replace(event, state=TaskState.READY.word, cause=AttemptCause.CRASH.word, detail=""))
    ]


def _event(body: Body) -> Event:
    last = body.attempts[-1] if body.attempts else None
    return Event(
        kind=EventKind.TASK,
        member_id=None if last is None else last.node_id,
        member="" if last is None else last.name,
        state=body.state.word,
        cause=body.cause.word,
        detail=_detail(body, last),
        task_id=body.task_id,
    )


def _detail(body: Body, last: Attempt | None) -> str:
    if body.state is TaskState.LEASED:
        return f"attempt {body.attempt}"
    result = body.result
    error = (result.error if result is not None else "") or (last.error if last is not None else "")
    code = result.exit_code if result is not None else None if last is None else last.exit_code
    said = "" if code is None else f"exit {code}"
    return ", ".join(part for part in (said, error) if part)
