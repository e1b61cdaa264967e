"""How busy the processors are that this process may use, smoothed over some seconds.

The load average counts who would like to run, on the whole host, over a minute. Whoever is to take a task wants to know
how much of its own processors is left now: on a host that is shared out (`taskset`, cpusets) those are not all. A share of time
that is set by a quota (`cpu.max`) is not seen.

Source: /proc/stat of Linux, as proc(5) has it. Elsewhere nothing is known.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Final

PROCESSORS: Final = os.cpu_count() or 1  # asked once: the answer is read from a file each time
SMOOTHED_S: Final = 3.0
"""After so many seconds of another load, two thirds of the change are seen."""

_STAT: Final = Path("/proc/stat")
_IDLE: Final = (3, 4)  # idle, and idle while something is read or written
_COUNTED: Final = 8  # user to steal; what guests use is counted as their host's user time already


class Processors:
    """Call `busy_pct` now and then; it tells of the time since the call before."""

    def __init__(self, stat: Path = _STAT) -> None:
        self._stat = stat
        self._before: tuple[float, int, int] | None = None  # when, busy and all ticks
        self._mine: frozenset[bytes] = frozenset()  # the processors that these are of
        self._busy: float | None = None

    def busy_pct(self, now: float) -> int | None:
        """Return how busy they are, 0 to 100; None: it is not known (yet). `now` in seconds."""
        found = self._read()
        if found is None:
            return None
        busy, total = found
        if self._before is not None and total > self._before[2]:
            at, busy_before, total_before = self._before
            share = min(max((busy - busy_before) / (total - total_before), 0.0), 1.0)
            weight = 1 - math.exp(-max(now - at, 0.0) / SMOOTHED_S)
            self._busy = share if self._busy is None else self._busy + weight * (share - self._busy)
        if self._before is None or total > self._before[2]:
            self._before = now, busy, total
        return None if self._busy is None else round(100 * self._busy)

    def _read(self) -> tuple[int, int] | None:
        """Return the ticks of work, and of all, that the processors of this process have seen."""
        try:
            lines = self._stat.read_bytes().splitlines()
            mine = {b"cpu%d" % number for number in os.sched_getaffinity(0)}
            rows = [line.split() for line in lines if line.startswith(b"cpu")]
            ticks = {
                row[0]: [int(word) for word in row[1 : 1 + _COUNTED]]
                for row in rows
                if row[0] in mine
            }
            idle = sum(row[place] for row in ticks.values() for place in _IDLE)
        except (OSError, ValueError, IndexError, AttributeError):
            return None  # another system, or one that hides this
        if ticks.keys() != self._mine:  # what others have counted says nothing of these
            self._mine, self._before = frozenset(ticks), None
        total = sum(map(sum, ticks.values()))
        return (total - idle, total) if total else None


def load_average_pct() -> int:
    """Return the host's load average of the last minute, as hundredths of all its processors, 0 to 255."""
    return min(255, round(os.getloadavg()[0] / PROCESSORS * 100))
