"""A task comes back from its bytes as it went, and nothing else comes in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.core.ids import TASK_ID_CHARS_MAX, NodeId
from mesh.errors import DecodeError
from mesh.tasks.body import (
    ATTEMPTS_MAX,
    ERROR_CHARS_MAX,
    SPEC_BYTES_MAX,
    TAIL_BYTES_MAX,
    Attempt,
    Body,
    End,
    Result,
    Terms,
    is_task_key,
    spec_bytes,
    task_key,
)
from mesh.tasks.form import BODY_BYTES_MAX, decode, encode, of_value, peek, to_value
from mesh.wire.register_messages import KEY_BYTES_MAX, Owner, Standing, Value
from mesh.wire.task_messages import AttemptCause, TaskState
from mesh.wire.work_messages import Spec
from tests.property.test_wire_any_bytes import HOSTILE, json_like, total
from tests.unit.tasks.made import ANNA, NOON, bodies, claimed, every_state, new


@given(body=bodies())
def test_a_task_comes_back_as_it_went(body: Body) -> None:
    data = encode(body)
    body.check_invariants()
    assert decode(data) == body
    assert peek(data) == body.head
    assert of_value(to_value(body)) == body


@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_task_or_refused(data: bytes) -> None:
    total(decode, data)
    total(peek, data)


@given(
    body=bodies(),
    changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.none() | st.integers(0, 10**6),
)
def test_a_damaged_task_is_a_consistent_one_or_refused(
    body: Body, changes: list[tuple[int, int]], cut: int | None
) -> None:
    data = bytearray(encode(body))
    for place, value in changes:
        data[place % len(data)] = value
    damaged = bytes(data if cut is None else data[: cut % len(data)])
    total(peek, damaged)
    try:
        found = decode(damaged)
    except DecodeError:
        return
    found.check_invariants()
    assert decode(encode(found)) == found


@given(body=bodies())
def test_every_truncated_task_is_refused(body: Body) -> None:
    data = encode(body)
    for size in range(0, len(data), max(1, len(data) // 100)):
        with pytest.raises(DecodeError):
            decode(data[:size])


def framed(head: object, rest: object, version: int = 2) -> bytes:
    packed = bytes(msgpack.packb(head, unicode_errors="surrogatepass"))
    front = bytes((version,)) + len(packed).to_bytes(4, "big")
    return front + packed + bytes(msgpack.packb(rest, unicode_errors="surrogatepass"))


@given(head=json_like, rest=json_like)
def test_any_values_in_a_tasks_frame_are_refused(head: object, rest: object) -> None:
    with pytest.raises(DecodeError):
        decode(framed(head, rest))


def unframed(body: Body) -> tuple[Any, Any]:
    data = encode(body)
    size = int.from_bytes(data[1:5], "big")
    return msgpack.unpackb(data[5 : 5 + size]), msgpack.unpackb(data[5 + size :])


def test_version_1_is_read_with_one_time_for_claim_and_start_and_with_two() -> None:
    for value in every_state().values():
        body = of_value(value)
        head, rest = unframed(body)
        for attempt in rest[7]:
            del attempt[7]  # why it is where it is
        assert decode(framed(head, rest, version=1)) == body
        for attempt in rest[7]:
            del attempt[7]
        one_time = decode(framed(head, rest, version=1))
        assert replace(one_time, attempts=()) == replace(body, attempts=())
        for attempt, before in zip(one_time.attempts, body.attempts, strict=True):
            known = None if before.ended is None else before.claimed
            assert attempt == replace(before, started=known)
        assert encode(one_time)[0] == 2, "written on, it is of this version"
        with pytest.raises(DecodeError):
            decode(framed(head, rest)) if rest[7] else decode(framed(head, rest, version=3))


@given(place=st.integers(0, 30), found=json_like)
def test_any_value_in_any_place_of_a_task_is_valid_or_refused(place: int, found: object) -> None:
    head, rest = unframed(of_value(every_state()["failed"]))
    parts = [(head, i) for i in range(len(head))] + [(rest, i) for i in range(len(rest))]
    parts += [(rest[7][0], i) for i in range(len(rest[7][0]))]
    where, index = parts[place % len(parts)]
    where[index] = found
    for version in (1, 2):
        total(decode, framed(head, rest, version))


@pytest.mark.parametrize("bad", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_bytes_are_no_task(bad: bytes) -> None:
    size = len(bad).to_bytes(4, "big")
    for data in (bad, b"\x02" + size + bad, b"\x02\x00\x00\x00\x01\xc0" + bad):
        with pytest.raises(DecodeError):
            decode(data)


LEASED = of_value(every_state()["leased"])
DONE = of_value(every_state()["done"])
CONTRADICTIONS: dict[str, Callable[[], Body]] = {
    "leased without an attempt": lambda: replace(LEASED, attempts=(), attempt=0),
    "ready with an attempt that runs": lambda: replace(LEASED, state=TaskState.READY),
    "an attempt that is not the last": lambda: replace(LEASED, attempt=2),
    "attempts that do not rise": lambda: replace(DONE, attempts=DONE.attempts * 2),
    "an end without its time": lambda: replace(
        DONE, attempts=(replace(DONE.attempts[0], ended=None),)
    ),
    "attempt 0": lambda: replace(DONE, attempt=0, attempts=(replace(DONE.attempts[0], number=0),)),
    "another cause than the attempt": lambda: replace(LEASED, cause=AttemptCause.LAPSE),
    "done without a time": lambda: replace(DONE, ended=None),
    "done without a result": lambda: replace(DONE, result=None),
    "ready with a result": lambda: replace(of_value(new()), result=Result()),
    "ready, and not before": lambda: replace(of_value(new()), not_before=NOON),
    "scheduled for no time": lambda: replace(of_value(new()), state=TaskState.SCHEDULED),
    "ready, and to be cancelled": lambda: replace(of_value(new()), is_cancel_requested=True),
    "more retries than agreed": lambda: replace(of_value(new()), retries_left=1),
}


@pytest.mark.parametrize("make", CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_a_task_that_contradicts_itself_is_refused(make: Callable[[], Body]) -> None:
    with pytest.raises(DecodeError, match="consistent"):
        decode(encode(make()))


LIMITS: dict[str, dict[str, Any]] = {
    "too long an error": {"result": Result(error="x" * (ERROR_CHARS_MAX + 1))},
    "too long a tail": {"result": Result(stdout_tail=b"x" * (TAIL_BYTES_MAX + 1))},
    "an exit code of nine bits": {"result": Result(exit_code=256)},
    "a time that is no number": {"ended": float("nan")},
    "a time before 1970": {"created": -1.0},
    "a time far off": {"ended": 1e11},
    "too many retries": {"terms": Terms(retries=65_536)},
    "an endless retention": {"terms": Terms(retain_s=float("inf"))},
    "a name that steers a terminal": {"origin": "\x1b[2J"},
    "no id": {"spec": Spec(task_id="", argv=("true",))},
    "too long an id": {"spec": Spec(task_id="x" * 129, argv=("true",))},
    "too large a command": {"spec": Spec(task_id="x", argv=("y" * 100_000,) * 6)},
}


@pytest.mark.parametrize("parts", LIMITS.values(), ids=LIMITS.keys())
def test_a_task_beyond_a_limit_is_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        decode(encode(replace(DONE, **parts)))


def test_more_attempts_than_are_kept_are_refused() -> None:
    one = DONE.attempts[0]
    attempts = tuple(replace(one, number=n + 1) for n in range(ATTEMPTS_MAX + 1))
    most = replace(DONE, attempts=attempts[:-1], attempt=ATTEMPTS_MAX)
    assert decode(encode(most)) == most
    with pytest.raises(DecodeError):
        decode(encode(replace(DONE, attempts=attempts, attempt=ATTEMPTS_MAX + 1)))


def test_the_largest_task_that_is_taken_in_fits_with_all_that_may_become_of_it() -> None:
    wide = "\U0001f600"
    labels = tuple((f"{n:02}" + wide * 62, wide * 128) for n in range(32))
    needs = tuple((f"{n:02}" + wide * 62, 1 << 47) for n in range(32))
    argv = ("x" * 1_000,) * 521
    tag = wide * 128
    spec = Spec(
        task_id=tag,
        argv=argv,
        key=tag,
        queue=tag,
        pool=tag,
        node_class=tag,
        labels=labels,
        needs=needs,
    )
    assert SPEC_BYTES_MAX - 2_000 < spec_bytes(spec) <= SPEC_BYTES_MAX
    attempts = tuple(
        Attempt(
            number=2**32 - 40 + n,
            node_id=NodeId(2**64 - 1),
            boot=2**48 - 1,
            name=wide * 64,
            cause=AttemptCause.RECOVERED,
            claimed=NOON,
            started=NOON,
            ended=NOON,
            end=End.VERDICT,
            exit_code=255,
            error=wide * ERROR_CHARS_MAX,
        )
        for n in range(ATTEMPTS_MAX)
    )
    tail = b"x" * TAIL_BYTES_MAX
    result = Result(error=wide * ERROR_CHARS_MAX, stdout_tail=tail, stderr_tail=tail)
    body = replace(
        DONE,
        spec=spec,
        attempts=attempts,
        attempt=attempts[-1].number,
        result=result,
        retry_of=wide * 128,
    )
    assert len(encode(body)) <= BODY_BYTES_MAX
    assert decode(encode(body)) == body


def test_a_register_that_stands_otherwise_than_its_task_is_refused() -> None:
    leased, ready, done = claimed(new()), new(), every_state()["done"]
    for value in (
        Value(Standing.OPEN, leased.body),
        Value(Standing.FINAL, ready.body),
        Value(Standing.OPEN, done.body),
        Value(Standing.LEASED, ready.body, ANNA),
        Value(Standing.LEASED, leased.body, Owner(ANNA.node_id, ANNA.boot + 1)),
    ):
        with pytest.raises(DecodeError, match="stands as its task does"):
            of_value(value)


def test_a_head_is_read_without_the_rest() -> None:
    data = new().body
    size = 5 + int.from_bytes(data[1:5], "big")
    assert peek(data[:size]) == of_value(new()).head


def test_a_small_tasks_bytes_are_few() -> None:
    assert len(new().body) < 256


@given(task_id=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128))
def test_every_id_has_a_key_that_fits(task_id: str) -> None:
    key = task_key(task_id)
    assert len(key) <= KEY_BYTES_MAX
    assert is_task_key(key)


def test_long_ids_have_keys_of_their_own() -> None:
    wide = "ü" * (TASK_ID_CHARS_MAX - 1)
    found = {task_key(wide + last) for last in "abc"} | {task_key("a"), task_key("b")}
    assert len(found) == 5
    assert not is_task_key(b"\x00roster/1")


def test_a_final_task_expires_after_its_retention() -> None:
    assert new().standing is Standing.OPEN
    assert of_value(new()).head.expires is None
    assert DONE.ended is not None
    assert DONE.head.expires == DONE.ended + DONE.terms.retain_s
