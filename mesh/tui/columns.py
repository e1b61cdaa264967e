"""Columns that give way: which of them fit a width, and how wide each one is.

A column has a least width, and may grow to what its texts want. Columns that a narrow screen can do
without have a rank: the lowest ranks are shown first. Room that is left goes to the columns in order, to
those that grow first before the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from rich.cells import cell_len
from rich.segment import Segment

from mesh.tui.cells import Line, fit, fit_line
from mesh.tui.palette import COLUMN

Row = TypeVar("Row")

_GAP_MAX: Final = 2


@dataclass(frozen=True, kw_only=True)
class Column(Generic[Row]):
    """One column: its title, its widths in cells, and how a row's cell is made."""

    title: str
    cell: Callable[[Row, int], Line]
    """Makes a row's cell for a width; it is fitted to that width afterwards."""

    width_min: int
    width_max: int = 0
    """0: as `width_min`."""

    text: Callable[[Row], str] | None = None
    """The text that decides how far a column grows; without it, it grows to `width_max`."""

    rank: int = 0
    is_extra: bool = False
    """Whether it is shown only where no other column need be cut for it."""

    grows_first: bool = False
    align: str = "left"

    def wanted(self, rows: Iterable[Row]) -> int:
        """Return the width at which nothing of `rows` need be cut, within the column's bounds."""
        most = max(self.width_max, self.width_min)
        if self.text is None or most == self.width_min:
            return most
        longest = max((cell_len(self.text(row)) for row in rows), default=0)
        return min(most, max(self.width_min, longest))


@dataclass(frozen=True)
class Layout(Generic[Row]):
    """Columns with their widths: draws titles and rows of one width."""

    columns: tuple[tuple[Column[Row], int], ...]
    gap: int
    width: int

    def titles(self, sorted_by: str = "", arrow: str = "") -> Line:
        """Return the line of titles; the one of the column that rows are sorted by carries an arrow."""
        titles: list[Line] = []
        for column, cells in self.columns:
            text = column.title + arrow if column.title == sorted_by else column.title
            titles.append([Segment(fit(text, cells, column.align))])
        return self._join(titles, is_title=True)

    def row(self, row: Row) -> Line:
        """Return the line of `row`."""
        return self._join(
            [fit_line(column.cell(row, cells), cells) for column, cells in self.columns]
        )

    def room_after(self, last: str) -> int:
        """Return how many cells are left behind the column with the title `last`; 0 if it is not shown."""
        used = 0
        for column, width in self.columns:
            used += width + self.gap
            if column.title == last:
                return max(0, self.width - used)
        return 0

    def row_until(self, row: Row, last: str, rest: Line) -> Line:
        """Return the line of `row` up to the column with the title `last`, and `rest` in what is left."""
        cells: list[Line] = []
        for column, width in self.columns:
            cells.append(fit_line(column.cell(row, width), width))
            if column.title == last:
                break
        gap = Segment(" " * self.gap)
        line = [piece for cell in cells for piece in (*cell, gap)]
        return fit_line([*line, *rest], self.width)

    def _join(self, cells: list[Line], *, is_title: bool = False) -> Line:
        line: Line = []
        for index, cell in enumerate(cells):
            if index:
                line.append(Segment(" " * self.gap))
            line += [Segment(piece.text, COLUMN) for piece in cell] if is_title else cell
        return fit_line(line, self.width)


def lay_out(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> Layout[Row]:
    """Choose the columns that fit `width` cells, and their widths.

    Columns of rank 0 are always shown. O(rows) for each column that grows with its texts.
    """
    shown = [column for column in columns if column.rank == 0]
    used = sum(column.width_min + 1 for column in shown) - 1
    for column in sorted((c for c in columns if c.rank > 0), key=lambda c: c.rank):
        missing = 0
        if column.is_extra:
            missing = sum(c.wanted(rows) - c.width_min for c in shown if not c.is_extra)
        if used + missing + column.width_min + 1 > width:
            break
        used += column.width_min + 1
        shown.append(column)
    ordered = [column for column in columns if column in shown]
    room = width - used
    gap = 1
    widths = [column.width_min for column in ordered]
    for place in sorted(range(len(ordered)), key=lambda place: not ordered[place].grows_first):
        more = min(max(room, 0), ordered[place].wanted(rows) - widths[place])
        widths[place] += more
        room -= more
    while gap < _GAP_MAX and room >= len(ordered) - 1:
        gap += 1
        room -= len(ordered) - 1
    return Layout(tuple(zip(ordered, widths, strict=True)), gap, width)
