"""How late the node's loop met its latest deadlines: what keeps it from answering, as one figure.

A loop that is held up, by its own work or by others on the host, meets its next deadline late: counted from the
deadline, also where it fell due amid the work that set it. Deadlines come anyway, so that nothing has to wake an idle
node to be measured.

Source: our own.
"""

from __future__ import annotations

from collections import deque
from typing import Final

LATEST_MAX: Final = 1_000
"""Deadlines that are kept in mind."""

SMOOTHING: Final = 1 / 16
"""What one deadline counts in the smoothed figure: one that was met a second late is forgotten after some sixty."""


LATE_S_MAX: Final = 86_400.0
"""What is later was due ever since: it says nothing of the loop."""

SMOOTHED_S_MAX: Final = 10.0
"""More is told of nobody: a node that was stopped for an hour is as fit as others some seconds after it goes on."""


class Lateness:
    """The latest deadlines, and how late each was met, in seconds."""

    def __init__(self) -> None:
        """Begin with none."""
        self._late_s: deque[float] = deque(maxlen=LATEST_MAX)
        self._smoothed_s = 0.0

    def note(self, late_s: float) -> None:
        """Take that one was met so late; early, as timers may be, counts as in time."""
        late_s = min(max(0.0, late_s), LATE_S_MAX)
        self._late_s.append(late_s)
        self._smoothed_s += SMOOTHING * (min(late_s, SMOOTHED_S_MAX) - self._smoothed_s)

    @property
    def smoothed_ms(self) -> int:
        """How late the loop runs on the whole of late, in milliseconds; 0 before any deadline."""
        return round(self._smoothed_s * 1e3)

    def to_json(self) -> dict[str, float | int | None]:
        """Return the figures in ms, of how many deadlines; None: of none yet. O(n log n) in those."""
        found = sorted(self._late_s)
        return {
            "median_ms": _ms(found, 0.5),
            "p99_ms": _ms(found, 0.99),
            "worst_ms": _ms(found, 1.0),
            "deadlines": len(found),
        }


def _ms(found: list[float], share: float) -> float | None:
    """Return what this share of them does not exceed."""
    return round(found[min(len(found) - 1, int(share * len(found)))] * 1e3, 3) if found else None
