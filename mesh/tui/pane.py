"""What a pane is: a small value that draws itself into a rectangle, and a window on a long list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rich.segment import Segment

from mesh.tui.cells import Line, fit_line
from mesh.tui.palette import DIM

Row = TypeVar("Row")


class Pane(Protocol):
    """A part of the screen. `render` returns exactly `height` lines of exactly `width` cells."""

    @property
    def title(self) -> str:
        """The pane's name, as its frame shows it."""
        ...

    @property
    def total(self) -> int:
        """How many rows the list has that this pane scrolls through."""
        ...

    def note(self, height: int) -> str:
        """Return a few words for the frame, after the title."""
        ...

    def page(self, height: int) -> int:
        """Return how many rows of the list a pane of this height shows at most."""
        ...

    def render(self, width: int, height: int) -> list[Line]:
        """Draw."""
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a list that is shown: rows `first` to `last` (exclusive), and how many follow."""

    first: int
    last: int
    more: int


def offset_max(total: int, page: int) -> int:
    """Return the offset at which the last row stands at the bottom."""
    return max(0, total - page)


def window(total: int, page: int, offset: int) -> Window:
    """Return what of `total` rows is shown in `page` lines from row `offset` on.

    While rows follow, the last line is kept for saying how many.
    """
    first = min(max(offset, 0), offset_max(total, page))
    last = min(total, first + max(page, 0))
    if last < total:
        last = max(first, last - 1)
    return Window(first, last, total - last)


def position(total: int, page: int, offset: int) -> str:
    """Return where a window stands, as `5-9 of 16`; "" when everything is shown."""
    shown = window(total, page, offset)
    if shown.first == 0 and shown.more == 0:
        return ""
    return f"{shown.first + 1}-{shown.last} of {total}"


def list_lines(
    rows: Sequence[Row], draw: Callable[[Row], Line], size: tuple[int, int], offset: int
) -> list[Line]:
    """Return a window on `rows` as lines that fill `size` (width, height), its end marked if more follow."""
    width, height = size
    if height <= 0:
        return []
    shown = window(len(rows), height, offset)
    lines = [draw(row) for row in rows[shown.first : shown.last]]
    if shown.more:
        lines.append(fit_line([Segment(f"… {shown.more} more", DIM)], width))
    return fill(lines, width, height)


def fill(lines: list[Line], width: int, height: int) -> list[Line]:
    """Return exactly `height` of `lines`, blank ones added below, each fitted to `width`."""
    blank: Line = []
    return [fit_line(line, width) for line in [*lines, *[blank] * height][: max(height, 0)]]
