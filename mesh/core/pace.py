"""At most so many a second: a token bucket."""

from __future__ import annotations


class Pace:
    """Lets `burst` things happen at once and `rate_s` a second in the long run."""

    __slots__ = ("_burst", "_full_at", "_interval_s", "held")

    def __init__(self, *, rate_s: float, burst: int) -> None:
        self._interval_s = 1.0 / rate_s
        self._burst = burst
        self._full_at = float("-inf")  # when the bucket will be full again
        self.held = 0
        """How often something had to wait or was left out."""

    def allows(self, now: float) -> bool:
        """Say whether one more may happen now; if so, it counts."""
        base = max(self._full_at, now)
        if base + self._interval_s - now > self._burst * self._interval_s + 1e-9:
            self.held += 1
            return False
        self._full_at = base + self._interval_s
        return True

    def next_at(self, now: float) -> float:
        """Return when one more will be allowed, `now` at the earliest."""
        return max(now, self._full_at - (self._burst - 1) * self._interval_s)
