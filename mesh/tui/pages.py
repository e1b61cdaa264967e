"""What pages of details are put together from: headed parts, pairs of names and values, folded text.

A page is a list of lines of any length, of which the screen shows as many as fit from where it is
scrolled to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import Final

from rich.segment import Segment
from rich.style import Style

from mesh.tui.cells import Line, fit, fit_line, folded
from mesh.tui.events_pane import event_line
from mesh.tui.palette import COLUMN, DIM, PLAIN
from mesh.tui.rows import EventRow

_NAME_CELLS: Final = 12
_TWO_COLUMNS: Final = 70
_EVENTS_MAX: Final = 100

Pair = tuple[str, Line]


def heading(text: str) -> list[Line]:
    """Return a blank line and a title."""
    return [[], [Segment(text.upper(), COLUMN)]]


def paragraph(text: str, width: int, style: Style = PLAIN, indent: str = "") -> list[Line]:
    """Return `text` folded to `width`; lines after the first are indented by as much as `indent`."""
    lines = folded(text, max(width - len(indent), 8))
    blank = " " * len(indent)
    return [
        [Segment(blank if number else indent, DIM), Segment(line, style)]
        for number, line in enumerate(lines)
    ]


def facts(pairs: Sequence[Pair], width: int) -> list[Line]:
    """Return names and values, in two columns where there is room, read down the first one first."""
    cells = [[Segment(fit(name, _NAME_CELLS), DIM), *value] for name, value in pairs]
    if width < _TWO_COLUMNS:
        return [fit_line(cell, width) for cell in cells]
    half = (len(cells) + 1) // 2
    left_cells = min(width // 2, 60)
    lines = []
    for row in range(half):
        left = fit_line(cells[row], left_cells - 2)
        right = cells[row + half] if row + half < len(cells) else []
        lines.append(fit_line([*left, Segment("  "), *right], width))
    return lines


def plain(value: object) -> Line:
    """Return a value as a cell; a dash for none."""
    return [Segment("-" if value is None or value == "" else str(value))]


def happenings(events: Iterable[EventRow], width: int, zone: tzinfo | None) -> list[Line]:
    """Return events, each with all of its evidence."""
    lines: list[Line] = []
    for number, event in enumerate(events):
        if number == _EVENTS_MAX:
            lines.append([Segment("…", DIM)])
            break
        lines.append(event_line(event, zone, is_full=not event.evidence))
        for piece in event.evidence:
            lines += paragraph(piece, width, DIM, indent="           · ")
    return lines or [[Segment("none that this node remembers", DIM)]]
