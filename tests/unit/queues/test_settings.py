"""A queue's setting as bytes: the same again, or a DecodeError; and the key of its register."""

from __future__ import annotations

import contextlib
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.core.ids import NodeId
from mesh.errors import ConfigError, DecodeError
from mesh.queues.settings import (
    DEFAULT,
    MARKS_MAX,
    NAME_CHARS,
    SETTING_BYTES_MAX,
    QueueSettings,
    Strategy,
    check_name,
    decode,
    encode,
    has_version,
    is_queue_key,
    of_value,
    queue_key,
    read_strategy,
    to_value,
)
from mesh.registers.kinds import may_hold
from mesh.tasks.body import is_task_key, task_key
from mesh.wire.register_messages import KEY_BYTES_MAX, Owner, Standing, Value
from tests.unit.queues.made import NOON, setting
from tests.unit.wire.strategies import texts, uints, weighings, words

any_settings = st.builds(
    QueueSettings,
    queue=texts(NAME_CHARS, 1),
    strategy=st.sampled_from(Strategy),
    weights=weighings,
    count=st.integers(1, 2**48 - 1),
    set_at=st.floats(0, 1e10),
    set_by=words(),
    marks=st.lists(uints(64), max_size=MARKS_MAX).map(tuple),
)
PACKED = ["thumbs", "pull", [["cpu", 0.5]], 3, NOON, "anna", [7]]


@settings(max_examples=50)
@given(any_settings)
def test_a_setting_is_the_same_after_it_was_bytes(one: QueueSettings) -> None:
    assert decode(encode(one)) == one
    assert len(encode(one)) <= SETTING_BYTES_MAX
    assert of_value(one.queue, to_value(one)) == one
    assert may_hold(queue_key(one.queue), to_value(one))


@settings(max_examples=200)
@given(st.binary(max_size=300) | st.binary(max_size=300).map(lambda data: b"\x02" + data))
def test_any_bytes_are_a_setting_or_a_decode_error(data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        assert encode(decode(data))


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (0, "q" * (NAME_CHARS + 1)),
        (0, 7),
        (1, "leader"),
        (1, ["pull"]),
        (2, [["cpu", 0.0]]),
        (2, [["cpu", 1]]),
        (2, [["cpu", float("nan")]]),
        (2, [["cpu", 1e7]]),
        (2, [["zone", 1.0]]),
        (2, [["lag", 1.0], ["cpu", 1.0]]),
        (2, 7),
        (3, 0),
        (3, 2**48),
        (3, True),
        (4, -1.0),
        (4, 1e11),
        (4, float("nan")),
        (4, 5),
        (5, "a\nb"),
        (5, "n" * 65),
        (6, [1] * (MARKS_MAX + 1)),
        (6, [-1]),
        (6, 7),
    ],
)
def test_each_part_of_a_setting_is_checked(place: int, wrong: object) -> None:
    parts: list[Any] = list(PACKED)
    assert decode(b"\x02" + msgpack.packb(parts)).count == 3
    parts[place] = wrong
    with pytest.raises(DecodeError):
        decode(b"\x02" + msgpack.packb(parts))


@pytest.mark.parametrize("weights", [(), (("cpu", 0.5),)])
def test_what_version_1_has_set_is_read_with_and_without_weights(
    weights: tuple[tuple[str, float], ...],
) -> None:
    parts = list(PACKED) if weights else [*PACKED[:2], *PACKED[3:]]
    found = decode(b"\x01" + msgpack.packb(parts))
    assert found == setting(weights=weights)
    assert encode(found)[0] == 2, "written on, it is of this version"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" + msgpack.packb(PACKED),
        b"\x03" + msgpack.packb(PACKED),
        b"\x02" + msgpack.packb(PACKED[:-1]),
        b"\x02" + msgpack.packb([*PACKED, 1]),
        b"\x02" + msgpack.packb(PACKED) + b"\x00",
        b"\x02" + msgpack.packb({"queue": "thumbs"}),
        b"\x02" + b"\x91" * 1000,
        b"\x02" + b"\x00" * SETTING_BYTES_MAX,
    ],
)
def test_bytes_of_another_form_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(data)


def test_a_later_version_is_told_from_what_is_nothing() -> None:
    assert has_version(b"\x03 whatever it is")
    assert has_version(b"\x01 rot")
    assert has_version(encode(setting()))
    assert not has_version(b"\x00")
    assert not has_version(b"")


def test_a_register_holds_the_setting_of_its_own_queue_and_is_open() -> None:
    body = encode(setting())
    with pytest.raises(DecodeError, match="'other'"):
        of_value("other", Value(Standing.OPEN, body))
    for value in (
        Value(Standing.FINAL, body),
        Value(Standing.LEASED, body, Owner(NodeId(5), 1)),
    ):
        with pytest.raises(DecodeError, match="open"):
            of_value("thumbs", value)


@given(texts(NAME_CHARS))
@settings(max_examples=50)
def test_every_name_that_a_task_can_have_makes_a_key_of_its_own(queue: str) -> None:
    key = queue_key(queue)
    assert len(key) <= KEY_BYTES_MAX
    assert is_queue_key(key)
    assert not is_task_key(key)
    assert not is_queue_key(task_key(queue))
    assert key != queue_key(queue + "x")


def test_a_long_name_goes_by_its_hash() -> None:
    assert queue_key("thumbs") == b"queue/thumbs"
    assert queue_key("ü" * 77) == b"queue/" + "ü".encode() * 77
    assert queue_key("ü" * 78).startswith(b"queuex/")
    assert len(queue_key("ü" * 128)) == len(b"queuex/") + 32


@pytest.mark.parametrize("name", ["", "q" * (NAME_CHARS + 1), "half \udc80"])
def test_a_name_that_no_task_can_have_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="a queue's name"):
        check_name(name)


def test_names_are_any_text() -> None:
    for name in ("default", "q" * NAME_CHARS, "Überträge", "a/b c"):
        check_name(name)


def test_an_unknown_strategy_is_refused_with_those_that_there_are() -> None:
    assert [read_strategy(str(one)) for one in Strategy] == list(Strategy)
    assert DEFAULT is Strategy.RENDEZVOUS
    with pytest.raises(
        ConfigError, match="one of rendezvous, contest, round_robin, pull; found 'best'"
    ):
        read_strategy("best")
