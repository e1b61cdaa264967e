"""A node that knows others, or seeds, and hears none of them is alone: it keeps trying, and says so.

It says so after a moment, then ever more rarely, and once more when it is over. Who tries, and how often,
is decided elsewhere; whoever has nobody to look for is not alone.
"""

from __future__ import annotations

from typing import Final

AGAIN_S: Final = 30.0
AGAIN_S_MAX: Final = 600.0
"""It is said again after so long, then after twice as long, up to this."""


class Alone:
    """Knows since when this node is alone. `delay_s` is how long that must last before it is said."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._since: float | None = None
        self._said = 0
        self._due: float | None = None

    def look(self, now: float, *, is_alone: bool) -> str:
        """Take whether the node is alone just now; return what to say of the end of it, "" for nothing."""
        if is_alone and self._since is None:
            self._since, self._due = now, now + self._delay_s
        elif not is_alone and self._since is not None:
            lasted_s, was_said = now - self._since, self._said > 0
            self.stop()
            return f"no longer alone, after {lasted_s:.0f} s" if was_said else ""
        return ""

    def stop(self) -> None:
        """Be alone no more, and say nothing."""
        self._since, self._due, self._said = None, None, 0

    def next_deadline(self) -> float | None:
        """Return when it is said next; None while the node is not alone."""
        return self._due

    def handle_timeout(self, now: float) -> str:
        """Return how to say that the node is alone, if it is due; "" for nothing."""
        if self._due is None or self._since is None or now < self._due:
            return ""
        self._due = now + min(AGAIN_S * 2**self._said, AGAIN_S_MAX)
        self._said = min(self._said + 1, 16)
        return f"alone for {now - self._since:.0f} s: no other member is heard"
