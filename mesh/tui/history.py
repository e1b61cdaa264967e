"""What was, in cells of four seconds: the past of a rate or of a level, to be drawn as a sparkline.

A cell covers a fixed stretch of the clock, so that a cell once drawn stays as it is and only moves to
the left; the cell under way is not shown. A stretch without a view is a gap, not a zero.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

CELL_S: Final = 4.0
CELLS_MAX: Final = 512

_LEVELS: Final = " ▁▂▃▄▅▆▇█"


class Levels:
    """The past of a value that goes up and down: the mean of each cell. Bounded."""

    def __init__(self) -> None:
        self._cells: deque[float | None] = deque(maxlen=CELLS_MAX)
        self._cell: int | None = None
        self._sum = 0.0
        self._count = 0

    def note(self, at: float, value: float) -> None:
        """Take the value at unix time `at`. A clock that went back starts anew."""
        cell = int(at // CELL_S)
        if self._cell is None or cell < self._cell:
            self._cells.clear()
        elif cell > self._cell:
            self._cells.append(self._sum / self._count)
            self._cells.extend([None] * min(cell - self._cell - 1, CELLS_MAX))
        if cell != self._cell:
            self._cell, self._sum, self._count = cell, 0.0, 0
        self._sum += value
        self._count += 1

    def last(self, count: int) -> list[float | None]:
        """Return the last `count` cells, oldest first; None where nothing is known."""
        known = list(self._cells)[-count:] if count > 0 else []
        return [None] * (count - len(known)) + known


class Rates:
    """The past of a total that grows: its growth in a second. Bounded."""

    def __init__(self) -> None:
        self._levels = Levels()
        self._last: tuple[float, float] | None = None

    def note(self, at: float, total: float) -> None:
        """Take the total at unix time `at`; one that shrank counts as no growth."""
        if self._last is not None and at > self._last[0]:
            grown = max(0.0, total - self._last[1])
            self._levels.note(at, grown / (at - self._last[0]))
        self._last = (at, total)

    def last(self, count: int) -> list[float | None]:
        """Return the last `count` cells, oldest first; None where nothing is known."""
        return self._levels.last(count)


def spark(values: list[float | None], rows: int, top: float) -> list[str]:
    """Return `values` as a graph of `rows` lines, the highest line first, in which `top` fills all.

    What is known shows, a 0 too; a value above `top` is cut; a gap is blank.
    """
    steps = rows * 8
    heights = []
    for value in values:
        height = 0 if value is None else max(1, int(min(value / top, 1.0) * steps + 0.5))
        heights.append(height)
    return [
        "".join(_LEVELS[min(max(height - floor * 8, 0), 8)] for height in heights)
        for floor in range(rows - 1, -1, -1)
    ]


def full(values: list[float | None], least: float) -> float:
    """Return what should fill a graph of `values`: a round number that none exceeds, not below `least`.

    It is 1, 2 or 5 times a power of ten, so that nobody takes it for something measured.
    """
    most = max([least, *(value for value in values if value is not None)])
    power = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= most * (1 - 1e-9))


def span_s(values: list[float | None]) -> float:
    """Return how far back `values`, cells of which the last is the latest, know anything."""
    first = next((at for at, value in enumerate(values) if value is not None), len(values))
    return (len(values) - first) * CELL_S


def mean(values: list[float | None]) -> float | None:
    """Return the mean of what is known of `values`, None when that is nothing."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
