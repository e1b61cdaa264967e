"""Times that people write: durations such as `300ms` and `2h`, and moments such as `03:00`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

from mesh.errors import ConfigError

_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_DURATION: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)(ms|s|m|h|d)")
_TIME_OF_DAY: Final = re.compile(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?")
_UNIX_TIME: Final = re.compile(r"@?[0-9]{9,10}(\.[0-9]{1,9})?")
_DURATIONS: Final = "a duration such as 300ms, 5s, 10m, 2h or 7d"
_MOMENTS: Final = "a time such as 03:00, 2027-01-31T03:00, 2027-01-31T03:00:00Z or Unix seconds"


def duration(flag: str, low_s: float, high_s: float) -> Callable[[str], float]:
    """Return the reader of a duration, in seconds from `low_s` to `high_s`, both inclusive."""

    def read(text: str) -> float:
        found = _DURATION.fullmatch(text)
        if found is None:
            raise ConfigError(f"{flag} expects {_DURATIONS}, found {text!r}")
        seconds = float(found[1]) * _UNITS_S[found[2]]
        if not low_s <= seconds <= high_s:
            raise ConfigError(f"{flag} expects {low_s:g} to {high_s:g} seconds, found {text!r}")
        return seconds

    return read


def moment(flag: str) -> Callable[[str], float]:
    """Return the reader of a moment, as Unix time; a time of day is the next one, where nothing is said of a zone this host's."""

    def read(text: str) -> float:
        try:
            return _moment(text)
        except (ValueError, OverflowError, OSError) as error:
            raise ConfigError(f"{flag} expects {_MOMENTS}, found {text!r}") from error

    return read


def _moment(text: str) -> float:
    from datetime import datetime, timedelta

    if _UNIX_TIME.fullmatch(text):
        return float(text.removeprefix("@"))
    if not _TIME_OF_DAY.fullmatch(text):
        return datetime.fromisoformat(text).timestamp()
    hour, minute, second = (int(part) for part in f"{text}:00".split(":")[:3])
    now = datetime.fromtimestamp(time.time()).astimezone()
    found = now.replace(hour=hour, minute=minute, second=second, microsecond=0, tzinfo=None)
    if found.timestamp() <= now.timestamp():
        found += timedelta(days=1)
    return found.timestamp()
