"""What a pane is: a small value that draws a list into a rectangle, and a window on a long list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from mesh.tui.cells import Line, fit_line, repaint
from mesh.tui.palette import CURSOR
from mesh.tui.spots import Spot
from mesh.tui.windows import position, window

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorting:
    """The number of a pane's order, and whether it is turned round."""

    order: int = 0
    is_reversed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stance:
    """What the user has done to one pane."""

    spot: Spot = field(default_factory=Spot)
    sorting: Sorting = field(default_factory=Sorting)
    filter: str = ""
    has_cursor: bool = False


class Pane(Protocol):
    """A part of the screen. `render` returns exactly `height` lines of exactly `width` cells."""

    @property
    def title(self) -> str:
        """The pane's name, as its frame shows it."""
        ...

    @property
    def keys(self) -> Sequence[str]:
        """The keys of the rows, filtered and sorted, that this pane scrolls through."""
        ...

    @property
    def is_rolling(self) -> bool:
        """Whether new rows come in above the old ones."""
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


def count_note(held: int, shown: int, page: int, stance: Stance, spot: Spot) -> str:
    """Return how many of the `held` rows the filter leaves, and which of these are seen."""
    seen = position(shown, page, spot.offset)
    if not stance.filter:
        return seen or (str(held) if held else "")
    return f"/{stance.filter}  {seen or f'{shown} of {held}'}"


def list_lines(
    rows: Sequence[Row],
    draw: Callable[[Row], Line],
    size: tuple[int, int],
    spot: Spot,
    *,
    has_cursor: bool = False,
) -> list[Line]:
    """Return a window on `rows` as lines that fill `size` (width, height).

    Which rows of how many these are stands in the frame.
    """
    width, height = size
    if height <= 0:
        return []
    shown = window(len(rows), height, spot.offset)
    lines = [draw(row) for row in rows[shown.first : shown.last]]
    marked = spot.index - shown.first
    if has_cursor and 0 <= marked < len(lines):
        lines[marked] = repaint(fit_line(lines[marked], width), CURSOR)
    return fill(lines, width, height)


def fill(lines: list[Line], width: int, height: int) -> list[Line]:
    """Return exactly `height` of `lines`, blank ones added below, each fitted to `width`."""
    blank: Line = []
    return [fit_line(line, width) for line in [*lines, *[blank] * height][: max(height, 0)]]
