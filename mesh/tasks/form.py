"""A task's bytes, and the value that its register holds.

    version │ length of the head │ head                         │ rest
            │                    │ id, state, times, and what   │ the command, terms, attempts,
            │                    │ a member must have           │ the result

A head is read without the rest (`peek`): a voter sees to a hundred thousand tasks, and starts none of them.
Reading is total: whatever bytes a register holds, the outcome is a task that is consistent in itself, or a
DecodeError, and nothing is built before it was checked.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgpack

from mesh.core.ids import NAME_CHARS_MAX, TASK_ID_CHARS_MAX
from mesh.errors import DecodeError
from mesh.tasks.body import (
    ATTEMPTS_MAX,
    DURATION_S_MAX,
    ERROR_CHARS_MAX,
    SPEC_BYTES_MAX,
    TAIL_BYTES_MAX,
    TIME_MAX,
    Attempt,
    Body,
    End,
    Head,
    Result,
    Terms,
    spec_bytes,
)
from mesh.wire import records as r
from mesh.wire import schema as s
from mesh.wire import task_messages as t
from mesh.wire.register_messages import Standing, Value, ballot_form
from mesh.wire.task_messages import AttemptCause, TaskState
from mesh.wire.work_messages import ARGUMENT_CHARS_MAX, ARGUMENTS_MAX, Spec

BODY_BYTES_MAX: Final = 1_048_576
"""A task with all its attempts and its result."""

HEADS_IN_MIND_MAX: Final = 256
"""Heads that were read lately, each of some hundred bytes."""

_VERSION: Final = 2
"""2 says why an attempt is where it is, and tells when it was claimed from when its process was started. 1 was written
with one time for both, and with two."""

_FRONT: Final = struct.Struct(">BI")
_ITEMS_MAX: Final = ARGUMENTS_MAX
"""The longest list in a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rest:
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    cwd: str
    terms: Terms
    origin: str
    retry_of: str
    retries_left: int
    attempts: tuple[Attempt, ...]
    result: Result | None


def encode(body: Body) -> bytes:
    """Return a task's bytes; equal tasks have equal bytes."""
    spec = body.spec
    rest = _Rest(
        argv=spec.argv,
        env=spec.env,
        cwd=spec.cwd,
        terms=body.terms,
        origin=body.origin,
        retry_of=body.retry_of,
        retries_left=body.retries_left,
        attempts=body.attempts,
        result=body.result,
    )
    head = bytes(msgpack.packb(_head.pack(body.head)))
    return _FRONT.pack(_VERSION, len(head)) + head + bytes(msgpack.packb(_rest.pack(rest)))


def decode(data: bytes) -> Body:
    """Return the task of its bytes.

    Raises:
        DecodeError: these are no task's, or one's that contradicts itself. Nothing else is ever raised.
    """
    if len(data) > BODY_BYTES_MAX:
        raise DecodeError(
            f"a task of at most {BODY_BYTES_MAX} bytes is expected, found {len(data)}"
        )
    head, end = _read_head(data)
    rest: _Rest = _RESTS[data[0]].unpack(_unpack(data[end:]))
    body = Body(
        spec=Spec(
            task_id=head.task_id,
            argv=rest.argv,
            env=rest.env,
            cwd=rest.cwd,
            key=head.key,
            queue=head.queue,
            pool=head.pool,
            node_class=head.node_class,
            labels=head.labels,
            needs=head.needs,
        ),
        terms=rest.terms,
        state=head.state,
        created=head.created,
        origin=rest.origin,
        retry_of=rest.retry_of,
        not_before=head.not_before,
        ended=head.ended,
        attempt=head.attempt,
        cause=head.cause,
        is_cancel_requested=head.is_cancel_requested,
        retries_left=rest.retries_left,
        attempts=rest.attempts,
        result=rest.result,
    )
    fault = body.fault() or ("" if body.head == head else "its head and its terms differ")
    if len(data) > SPEC_BYTES_MAX and spec_bytes(body.spec) > SPEC_BYTES_MAX:
        fault = f"its command takes {spec_bytes(body.spec)} bytes of {SPEC_BYTES_MAX}"
    if fault:
        raise DecodeError(f"expected a task that is consistent in itself: {fault}")
    return body


def peek(data: bytes) -> Head:
    """Return a task's head, without looking at the rest.

    Raises:
        DecodeError: these bytes do not begin as a task's do. Nothing else is ever raised.
    """
    return _read_head(data)[0]


def to_value(body: Body) -> Value:
    """Return what a task's register holds: open to everybody, its owner's, or final, by the state."""
    data = encode(body)
    running = body.running
    if running is not None:
        return Value(Standing.LEASED, data, running.owner)
    return Value(Standing.FINAL if body.state.is_terminal else Standing.OPEN, data)


def of_value(value: Value) -> Body:
    """Return the task that a register holds.

    Raises:
        DecodeError: it holds no task, or one that is not what the voters take it for.
    """
    body = decode(value.body)
    owner = None if body.running is None else body.running.owner
    is_final = value.standing is Standing.FINAL
    if value.owner != owner or is_final != body.state.is_terminal:
        raise DecodeError(
            f"expected a register that stands as its task does ({body.state.word}), found {value.standing.name}"
        )
    return body


def _read_head(data: bytes) -> tuple[Head, int]:
    """Return a task's head, and where it ends."""
    if len(data) < _FRONT.size or data[0] not in _RESTS:
        found = f"version {data[0]}" if len(data) >= _FRONT.size else f"{len(data)} bytes"
        raise DecodeError(f"a task of version 1 to {_VERSION} is expected, found {found}")
    end = _FRONT.size + _FRONT.unpack_from(data)[1]
    if end > len(data):
        raise DecodeError(
            f"a head of {end - _FRONT.size} bytes is expected, found {len(data)} in all"
        )
    return _unpack_head(data[_FRONT.size : end]), end


@lru_cache(maxsize=HEADS_IN_MIND_MAX)
def _unpack_head(data: bytes) -> Head:
    """Return the head of its bytes. Whoever hears that a task has changed reads it, one after the other."""
    head: Head = _head.unpack(_unpack(data))
    return head


def _unpack(data: bytes) -> Any:  # noqa: ANN401 - comes from msgpack
    try:
        return msgpack.unpackb(data, max_array_len=_ITEMS_MAX, max_map_len=0, max_ext_len=0)
    except Exception as error:
        raise DecodeError(
            f"a task is expected, found bytes that are no msgpack: {error}"
        ) from error


def _seconds_form(seconds_max: float) -> s.Field:
    def unpack(raw: Any) -> float:  # noqa: ANN401 - comes from msgpack
        if type(raw) is not float or not 0 <= raw <= seconds_max:
            s.refuse(f"seconds from 0 to {seconds_max:g}", raw)
        return raw

    return s.Field(float, unpack)


_time = _seconds_form(2 * TIME_MAX)  # beyond the latest, by what is to come after it
_duration = _seconds_form(DURATION_S_MAX)
_error = s.text(ERROR_CHARS_MAX)
_name = s.printable(NAME_CHARS_MAX)
_head = s.keyword_struct(
    Head,
    ("task_id", t.task_id_form),
    ("state", r.enum_of(TaskState)),
    ("created", _time),
    ("not_before", _time),
    ("ended", s.optional(_time)),
    ("retain_s", _duration),
    ("attempt", t.attempt_form),
    ("cause", r.enum_of(AttemptCause)),
    ("is_cancel_requested", s.flag),
    ("key", t.tag_form),
    ("queue", t.tag_form),
    ("pool", t.tag_form),
    ("node_class", t.tag_form),
    ("labels", t.labels_form),
    ("needs", t.needs_form),
)
_WHOSE: Final = (
    ("number", t.attempt_form),
    ("node_id", s.nonzero(64)),
    ("boot", s.uint(48)),
    ("name", _name),
    ("cause", r.enum_of(AttemptCause)),
    ("token", s.optional(ballot_form)),
    ("claimed", _time),
)
_ITS_END: Final = (
    ("ended", s.optional(_time)),
    ("end", r.enum_of(End)),
    ("exit_code", s.optional(s.uint(8))),
    ("error", _error),
)
_STARTED: Final = ("started", s.optional(_time))
_PLACED: Final = ("placement", s.optional(t.placement_form))
_attempt = s.keyword_struct(Attempt, *_WHOSE, _PLACED, _STARTED, *_ITS_END)


def _attempt_of_1(*, claimed: float, ended: float | None, **parts: Any) -> Attempt:  # noqa: ANN401 - each was checked
    return Attempt(
        claimed=claimed, started=None if ended is None else claimed, ended=ended, **parts
    )


_result = s.keyword_struct(
    Result,
    ("exit_code", s.optional(s.uint(8))),
    ("error", _error),
    ("output_bytes", s.uint(48)),
    ("output_dropped_bytes", s.uint(48)),
    ("stdout_tail", s.blob(TAIL_BYTES_MAX)),
    ("stderr_tail", s.blob(TAIL_BYTES_MAX)),
)

_terms = s.keyword_struct(
    Terms,
    ("retries", s.uint(16)),
    ("retry_delay_s", _duration),
    ("retry_delay_s_max", _duration),
    ("retain_s", _duration),
)


def _rest_with(attempt: s.Field) -> s.Field:
    return s.keyword_struct(
        _Rest,
        ("argv", s.many(s.text(ARGUMENT_CHARS_MAX), ARGUMENTS_MAX)),
        ("env", s.pairs(s.text(1024, empty=False), s.text(ARGUMENT_CHARS_MAX), 1024)),
        ("cwd", s.text(4096)),
        ("terms", _terms),
        ("origin", _name),
        ("retry_of", s.text(TASK_ID_CHARS_MAX)),
        ("retries_left", s.uint(16)),
        ("attempts", s.many(attempt, ATTEMPTS_MAX)),
        ("result", s.optional(_result)),
    )


_rest = _rest_with(_attempt)
_two_times = s.keyword_struct(Attempt, *_WHOSE, _STARTED, *_ITS_END)
_one_time = s.keyword_struct(_attempt_of_1, *_WHOSE, *_ITS_END)
_RESTS: Final = {
    1: _rest_with(s.either(_one_time, _two_times, len(_WHOSE) + len(_ITS_END))),
    _VERSION: _rest,
}
