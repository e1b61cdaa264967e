"""Where the cursor stands in a list, and which part of the list is seen around it.

A spot remembers its row by key, so that the cursor stays on the same member or task when rows move. A
spot without a key stands at the top and stays there, whatever comes. Where rows come in above the old
ones (events), the seen part moves along with its row, so that a scrolled list stands still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mesh.tui.windows import offset_max


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a list.

    Attributes:
        key: the row under the cursor; "" for the top, whichever row that is.
        index: where that row stood when the spot was taken.
        offset: the first row that was seen then.
    """

    key: str = ""
    index: int = 0
    offset: int = 0

    def settled(self, keys: Sequence[str], page: int, *, is_rolling: bool) -> Spot:
        """Return where the spot is now among the rows `keys`, of which `page` are seen. O(rows).

        A row that has gone leaves the cursor where it was, on whatever row stands there now.
        """
        if not self.key or not keys:
            return Spot()
        try:
            index = keys.index(self.key)
        except ValueError:
            index = min(self.index, len(keys) - 1)
        offset = self.offset + (index - self.index if is_rolling else 0)
        return _seen(Spot(keys[index], index, offset), len(keys), page)

    def moved(self, keys: Sequence[str], page: int, to: int, *, is_rolling: bool) -> Spot:
        """Return a settled spot moved to the row `to`, or as near as there are rows.

        The top of a list that rolls is no row: whoever goes there wants to see what comes.
        """
        if not keys or (is_rolling and to <= 0):
            return Spot()
        index = min(max(to, 0), len(keys) - 1)
        return _seen(Spot(keys[index], index, self.offset), len(keys), page)


def _seen(spot: Spot, total: int, page: int) -> Spot:
    """Return `spot` with the list moved as little as it takes to see the cursor."""
    page = max(page, 1)
    least = max(0, spot.index - page + 1)
    offset = min(max(spot.offset, least), spot.index, offset_max(total, page))
    return Spot(spot.key, spot.index, offset)
