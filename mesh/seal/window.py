"""Which numbers of one sender have been seen: a sliding window, so that each counts once.

A number above the highest seen moves the window; one within it counts if it was not seen; one below it
is too old to tell, and does not count.

Source: the anti-replay window of [RFC 6479], with one integer as the bitmap.
"""

from __future__ import annotations

from typing import Final

WIDTH: Final = 256
"""How far a packet may be overtaken by later ones and still count."""

_MASK: Final = (1 << WIDTH) - 1


class ReplayWindow:
    """Accepts each number from `floor` on once."""

    __slots__ = ("_highest", "_seen")

    def __init__(self, floor: int = 0) -> None:
        self._highest = floor - 1
        # Bit i: the number `highest - i`. What is below the floor counts as seen.
        self._seen = _MASK

    def accept(self, number: int) -> bool:
        """Say whether this number counts, and note that it was seen."""
        ahead = number - self._highest
        if ahead > 0:
            self._seen = ((self._seen << ahead) | 1) & _MASK if ahead < WIDTH else 1
            self._highest = number
            return True
        if ahead <= -WIDTH:
            return False
        bit = 1 << -ahead
        if self._seen & bit:
            return False
        self._seen |= bit
        return True
