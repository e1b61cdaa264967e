"""Durations as people write them. Instants are floats that come in as `now`.

A core's `now` is seconds on one monotonic clock of its own node, with an arbitrary start; it is
never compared with another node's. Only durations travel.
"""

from __future__ import annotations

import re
from typing import Final

from mesh.errors import ConfigError

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ms|s|m|h|d)", re.ASCII)


def parse_duration(text: str) -> float:
    """Return the seconds of ``300ms``, ``5s``, ``10m``, ``2h`` or ``7d``; fractions are allowed.

    Raises:
        ConfigError: the text is no number followed by one of those units.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"a duration like 300ms, 5s, 10m, 2h or 7d is expected, found {text!r}")
    return float(found[1]) * _UNITS[found[2]]


def format_duration(seconds: float) -> str:
    """Return a duration in at most six characters for people: ``12ms``, ``4.2s``, ``3m12s``, ``2h05m``, ``7d03h``."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"
