"""Packets a second, from the totals that views carry: the mean of the last ten seconds.

An idle member sends two packets a second: counted from one view to the next that would flicker
between 0 and 4.
"""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOW_S: Final = 10.0
_POINTS_MAX: Final = 100


class Traffic:
    """Remembers the totals of the last `WINDOW_S`; bounded."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, float, float]] = deque(maxlen=_POINTS_MAX)

    def note(self, at: float, sent: float, received: float) -> None:
        """Take the totals at unix time `at`. A clock or a total that went back starts anew."""
        if self._points:
            last_at, last_sent, last_received = self._points[-1]
            if at == last_at:
                return
            if at < last_at or sent < last_sent or received < last_received:
                self._points.clear()
        self._points.append((at, sent, received))
        while self._points[0][0] < at - WINDOW_S:
            self._points.popleft()

    def rates(self) -> tuple[float, float] | None:
        """Return (sent, received) a second; None while there is nothing to compare."""
        if len(self._points) < 2:
            return None
        first, last = self._points[0], self._points[-1]
        elapsed_s = last[0] - first[0]
        return (last[1] - first[1]) / elapsed_s, (last[2] - first[2]) / elapsed_s
