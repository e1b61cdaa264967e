"""How tasks of one kind fared on one member: the share that succeeded, by the latest ends the most.

    ends      ✓ ✓ ✓ ✓ ✗ ✗ ✗ now        each fades with time, and with every one that follows it
    weights   ▁ ▂ ▃ ▄ ▅ ▆ ▇             ends of a busy member are soon outdone, those of an idle one wear off

So the memory is two numbers and a time, whatever happens. Each member begins with two successes that it never had:
nothing has failed there. Success alone lifts nobody above who had no task yet, else the first to be given tasks would
be given all that follow, and who comes new to a mesh none. One failure makes it two thirds, a second one half.

Source: our own; imagined ends that come before the real ones are Laplace's, who imagined one of each.
Deviation: both are successes here, for the reason above.
"""

from __future__ import annotations

import math
from typing import Final

from mesh.contest.bounds import within

HALF_LIFE_S: Final = 600.0
"""After so many seconds an end of a task counts half: what made it fail may be mended, and is tried again."""

ENDS_MAX: Final = 32
"""No more ends than this count, the latest the most: a host on which all begins to fail is known for it after some 20."""


class History:
    """The share of one member's tasks of one kind that succeeded. All of it O(1).

    `now` in seconds, on one clock, and finite, else LocalProtocolError; an end that is noted late does not turn it back.
    """

    __slots__ = ("_at", "_failed", "_succeeded")

    def __init__(self) -> None:
        self._at = -math.inf
        self._succeeded = self._failed = 0.0

    def note(self, now: float, ok: bool) -> None:
        """Take in that a task of this kind ended, well or not."""
        faded = self._faded(now) * (1 - 1 / ENDS_MAX)
        self._succeeded = self._succeeded * faded + ok
        self._failed = self._failed * faded + (not ok)
        self._at = max(self._at, now)

    def share(self, now: float) -> float:
        """Return (successes + 2) / (ends + 2), both faded: 1 where nothing is known to have failed, and never 0."""
        faded = self._faded(now)
        return (self._succeeded * faded + 2) / ((self._succeeded + self._failed) * faded + 2)

    def _faded(self, now: float) -> float:
        return math.exp2(-max(0.0, within("now", now, -math.inf) - self._at) / HALF_LIFE_S)
