"""What is set for a queue: its bytes, and the register that holds them.

    queue/NAME ──► Value(OPEN) ──► version │ name, strategy, weights, count, when, by whom, marks

A queue is only a word on its tasks. It is there as soon as somebody writes it, and has no setting until somebody
sets one: until then its strategy is `DEFAULT`, and in contests for its tasks all parts weigh what they do by default. The register is open for ever: nobody's, never final, never purged.
Reading is total: whatever bytes it holds, the outcome is a setting, or a DecodeError.

Source: our own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgpack

from mesh.core.ids import NAME_CHARS_MAX
from mesh.errors import ConfigError, DecodeError
from mesh.registers.kinds import LONG_QUEUES, QUEUES
from mesh.wire import schema as s
from mesh.wire.contest_messages import Weighing, weighing_form
from mesh.wire.register_messages import KEY_BYTES_MAX, Standing, Value
from mesh.wire.task_messages import tag_form

NAME_CHARS: Final = 128
"""Of a queue's name at most, as a task's spec has it."""

SETTING_BYTES_MAX: Final = 2_048
"""A setting, whose parts are bounded by less."""

MARKS_MAX: Final = 8
"""Marks of the latest settings that are kept: who was overtaken by fewer finds its own."""

SET_AT_MAX: Final = 1e10
"""The last time of day (Unix) that is believed."""

COUNT_MAX: Final = (1 << 48) - 1

_VERSION: Final = 2
"""2 has the weights. 1 was written with and without them; without, the default ones are meant."""


class Strategy(StrEnum):
    """How it is decided which member is to ask for a task of a queue."""

    RENDEZVOUS = "rendezvous"
    """The task's home, by its key; others where that is busy."""

    CONTEST = "contest"
    """The fittest of those that are called."""

    ROUND_ROBIN = "round_robin"
    """One member after the other."""

    PULL = "pull"
    """Whoever is idle takes the oldest."""


DEFAULT: Final = Strategy.RENDEZVOUS
"""Of a queue for which nothing is set, or nothing that this version can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """What is set for one queue."""

    queue: str
    strategy: Strategy
    weights: Weighing = ()
    """What the parts of a fitness weigh in contests for its tasks; none: what they do by default."""

    count: int
    """How often it was changed, 1 the first time: of two settings the one with more is the later."""

    set_at: float
    """Unix, by the clock of the node at which it was set."""

    set_by: str
    """That node, as people know it."""

    marks: tuple[int, ...] = ()
    """Of the latest changes, the last first; each its maker's own (`change.py`)."""


def queue_key(queue: str) -> bytes:
    """Return the key of a queue's register. A name that would not fit goes by its hash."""
    key = QUEUES + queue.encode("utf-8", "surrogatepass")
    if len(key) <= KEY_BYTES_MAX:
        return key
    return LONG_QUEUES + hashlib.blake2b(key, digest_size=32).digest()


def name_in(key: bytes) -> str:
    """Return the queue that a queue's key names; "" if it holds but a hash, or no text."""
    if not key.startswith(QUEUES):
        return ""
    return key.removeprefix(QUEUES).decode("utf-8", "surrogateescape")


def is_queue_key(key: bytes) -> bool:
    """Say whether a register is a queue's."""
    return key.startswith((QUEUES, LONG_QUEUES))


def check_name(queue: str) -> None:
    """Raise unless a queue can have this name.

    Raises:
        ConfigError: it is empty, too long, or holds bytes that are no UTF-8.
    """
    if not 0 < len(queue) <= NAME_CHARS:
        raise ConfigError(
            f"a queue's name of 1 to {NAME_CHARS} characters is expected, found {len(queue)}"
        )
    try:
        queue.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"a queue's name is text in UTF-8, found {queue!r}: write it in other letters"
        ) from None


def read_strategy(text: str) -> Strategy:
    """Return the strategy that people call so.

    Raises:
        ConfigError: there is none; all are listed.
    """
    try:
        return Strategy(text)
    except ValueError:
        raise ConfigError(
            f"a strategy is one of {', '.join(Strategy)}; found {text[:40]!r}"
        ) from None


def encode(settings: QueueSettings) -> bytes:
    """Return a setting's bytes; equal settings have equal bytes."""
    return bytes((_VERSION,)) + bytes(msgpack.packb(_form.pack(settings)))


def decode(data: bytes) -> QueueSettings:
    """Return the setting of its bytes.

    Raises:
        DecodeError: these are no setting's, or those of a version that is not known. Nothing else is ever raised.
    """
    if len(data) > SETTING_BYTES_MAX:
        raise DecodeError(
            f"a queue's setting of at most {SETTING_BYTES_MAX} bytes is expected, found {len(data)}"
        )
    form = _FORMS.get(data[0]) if data else None
    if form is None:
        found = f"version {data[0]}" if data else "0 bytes"
        raise DecodeError(
            f"a queue's setting of version 1 to {_VERSION} is expected, found {found}"
        )
    try:
        raw = msgpack.unpackb(data[1:], max_array_len=MARKS_MAX, max_map_len=0, max_ext_len=0)
    except Exception as error:
        raise DecodeError(
            f"a queue's setting is expected, found bytes that are no msgpack: {error}"
        ) from error
    settings: QueueSettings = form.unpack(raw)
    return settings


def has_version(data: bytes) -> bool:
    """Say whether these bytes name a version of settings, this one's, an earlier or a later one; else they are nothing."""
    return data[:1] > b"\0"


def to_value(settings: QueueSettings) -> Value:
    """Return what a queue's register holds."""
    return Value(Standing.OPEN, encode(settings))


def of_value(queue: str, value: Value) -> QueueSettings:
    """Return what is set for a queue, as its register holds it.

    Raises:
        DecodeError: it holds no setting of this queue that this version can read.
    """
    settings = decode(value.body)
    if value.standing is not Standing.OPEN:
        raise DecodeError(f"an open register is expected, found one that is {value.standing.name}")
    if settings.queue != queue:
        raise DecodeError(
            f"the setting of queue {queue!r} is expected, found that of {settings.queue!r}"
        )
    return settings


def _unpack_strategy(raw: Any) -> Strategy:  # noqa: ANN401 - comes from msgpack
    if type(raw) is not str or raw not in _STRATEGIES:
        s.refuse(f"one of {', '.join(_STRATEGIES)}", raw)
    return _STRATEGIES[raw]


def _unpack_time(raw: Any) -> float:  # noqa: ANN401 - comes from msgpack
    if type(raw) is not float or not 0 <= raw <= SET_AT_MAX:
        s.refuse(f"seconds from 0 to {SET_AT_MAX:g}", raw)
    return raw


def _unpack_count(raw: Any) -> int:  # noqa: ANN401 - comes from msgpack
    count: int = s.uint(48).unpack(raw)
    return count or s.refuse("a count from 1", raw)


_STRATEGIES: Final = {str(one): one for one in Strategy}
_HEAD: Final = (("queue", tag_form), ("strategy", s.Field(str, _unpack_strategy)))
_TAIL: Final = (
    ("count", s.Field(int, _unpack_count)),
    ("set_at", s.Field(float, _unpack_time)),
    ("set_by", s.printable(NAME_CHARS_MAX)),
    ("marks", s.many(s.uint(64), MARKS_MAX)),
)
_form: Final = s.keyword_struct(QueueSettings, *_HEAD, ("weights", weighing_form), *_TAIL)
_form_of_1: Final = s.keyword_struct(QueueSettings, *_HEAD, *_TAIL)
_FORMS: Final = {1: s.either(_form_of_1, _form, len(_HEAD) + len(_TAIL)), _VERSION: _form}
