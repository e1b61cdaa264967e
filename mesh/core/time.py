"""Durations as people read them, in one form everywhere. Instants are floats that come in as `now`.

A core's `now` is seconds on one monotonic clock of its own node, with an arbitrary start; it is
never compared with another node's. Only durations travel.
"""

from __future__ import annotations

_DAY_S = 86_400


def format_duration(seconds: float) -> str:
    """Return a duration in at most six characters for people: `12ms`, `4.2s`, `3m12s`, `2h05m`, `7d03h`, `412d`.

    What lies in the future by another host's clock has lasted for no time at all.
    """
    if seconds < 0.9995:
        return f"{max(seconds, 0) * 1000:.0f}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < _DAY_S:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    if whole < 100 * _DAY_S:
        return f"{whole // _DAY_S}d{whole % _DAY_S // 3600:02}h"
    return f"{min(whole // _DAY_S, 99_999)}d"
