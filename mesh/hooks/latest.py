"""The latest run of a hook in the whole mesh: its bytes, and the register that holds them.

    hook/NAME ──► Value(OPEN) ──► version │ begun by when, by whom, mark

Written before the run, by whoever is about to begin it: so what it says is that nobody else may for a cool-down, not
that the run was begun, nor how it ended. The register is open for ever: nobody's, never final, never purged. Reading is
total: whatever bytes it holds, the outcome is a run, or a DecodeError.

Source: our own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from mesh.core.ids import NAME_CHARS_MAX
from mesh.errors import DecodeError
from mesh.registers.kinds import HOOKS, LONG_HOOKS
from mesh.wire import schema as s
from mesh.wire.register_messages import KEY_BYTES_MAX, Standing, Value

LATEST_BYTES_MAX: Final = 512
"""A run, whose parts are bounded by less."""

TIME_MAX: Final = 1e10
"""The last time of day (Unix) that is believed."""

_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestRun:
    """One run of a hook."""

    begun_by: float
    """Unix, by the clock of its node: begun by then, or never."""

    by: str
    """Its node, as people know it."""

    mark: int
    """64 bits that no other run has."""


def shortage_of(pool: str) -> str:
    """Return the name of the hook that is run when a pool is short of slots: each pool has one of its own."""
    return f"shortage/{pool}"


def hook_key(hook: str) -> bytes:
    """Return the key of a hook's register. A name that would not fit goes by its hash."""
    key = HOOKS + hook.encode("utf-8", "surrogatepass")
    if len(key) <= KEY_BYTES_MAX:
        return key
    return LONG_HOOKS + hashlib.blake2b(key, digest_size=32).digest()


def to_value(run: LatestRun) -> Value:
    """Return what a hook's register holds."""
    return Value(Standing.OPEN, bytes((_VERSION,)) + bytes(msgpack.packb(_form.pack(run))))


def of_value(value: Value) -> LatestRun:
    """Return the run that a hook's register holds.

    Raises:
        DecodeError: it holds none, or one of a later version. Nothing else is ever raised.
    """
    if value.standing is not Standing.OPEN:
        raise DecodeError(f"an open register is expected, found one that is {value.standing.name}")
    data = value.body
    if len(data) > LATEST_BYTES_MAX:
        raise DecodeError(
            f"a hook's run of at most {LATEST_BYTES_MAX} bytes is expected, found {len(data)}"
        )
    if data[:1] != bytes((_VERSION,)):
        found = f"version {data[0]}" if data else "0 bytes"
        raise DecodeError(f"a hook's run of version {_VERSION} is expected, found {found}")
    try:
        raw = msgpack.unpackb(data[1:], max_array_len=8, max_map_len=0, max_ext_len=0)
    except Exception as error:
        raise DecodeError(
            f"a hook's run is expected, found bytes that are no msgpack: {error}"
        ) from error
    run: LatestRun = _form.unpack(raw)
    return run


def is_later_version(data: bytes) -> bool:
    """Say whether these bytes name a later version of runs than this one knows."""
    return data[:1] > bytes((_VERSION,))


def _unpack_time(raw: Any) -> float:  # noqa: ANN401 - comes from msgpack
    if type(raw) is not float or not 0 <= raw <= TIME_MAX:
        s.refuse(f"seconds from 0 to {TIME_MAX:g}", raw)
    return raw


_form: Final = s.keyword_struct(
    LatestRun,
    ("begun_by", s.Field(float, _unpack_time)),
    ("by", s.printable(NAME_CHARS_MAX)),
    ("mark", s.uint(64)),
)
