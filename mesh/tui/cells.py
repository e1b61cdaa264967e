r"""Text as a terminal counts it: cells, not characters, and nothing in it that a terminal obeys.

Names, labels and commands come from other hosts. A name that holds an escape sequence must show as
the letters ``\x1b``, never move the cursor; a name of wide characters must not push its line out of
shape. Every string is cleaned once, when it enters the board.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style

Line: TypeAlias = list[Segment]
"""One row of the screen: styled pieces of text without line ends."""

TEXT_CHARS_MAX: Final = 256


def clean(text: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    """Return `text`, cut to `chars_max` characters, with everything unprintable written as an escape.

    Unprintable are control characters, lone surrogates, invisible and direction-changing characters,
    and every kind of space but the plain one.
    """
    if len(text) > chars_max:
        text = text[: chars_max - 1] + "…"
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def fit(text: str, width: int, align: str = "left") -> str:
    """Return `text` in exactly `width` cells: padded, or cut at its end with an ellipsis."""
    missing = width - cell_len(text)
    if missing >= 0:
        return " " * missing + text if align == "right" else text + " " * missing
    if width <= 0:
        return ""
    return set_cell_size(text, width - 1) + "…"


def fit_middle(text: str, width: int) -> str:
    """Return `text` in exactly `width` cells, cut in its middle: names and addresses differ at the end."""
    if cell_len(text) <= width or width < 5:
        return fit(text, width)
    tail_cells = (width - 1) // 2
    tail = ""
    for char in reversed(text):
        if cell_len(char + tail) > tail_cells:
            break
        tail = char + tail
    return set_cell_size(text, width - 1 - cell_len(tail)) + "…" + tail


def folded(text: str, width: int) -> list[str]:
    """Return `text` in pieces of at most `width` cells, broken between words where there are any."""
    lines: list[str] = []
    rest = ""
    for word in text.split(" "):
        joined = f"{rest} {word}" if rest else word
        if cell_len(joined) <= width:
            rest = joined
            continue
        if rest:
            lines.append(rest)
        *full, rest = chop_cells(word, max(width, 2)) or [""]
        lines += full
    return [*lines, rest]


def line_width(line: Line) -> int:
    """Return how many cells `line` takes."""
    return sum(cell_len(segment.text) for segment in line)


def fit_line(line: Line, width: int) -> Line:
    """Return `line` in exactly `width` cells: padded with blanks, or cut with an ellipsis."""
    room = width
    fitted: Line = []
    for text, style, _ in line:
        cells = cell_len(text)
        if cells > room:
            fitted.append(Segment(fit(text, room), style))
            return fitted
        fitted.append(Segment(text, style))
        room -= cells
    if room:
        fitted.append(Segment(" " * room))
    return fitted


def spread(left: Line, right: Line, width: int) -> Line:
    """Return a line of `width` cells with `left` at its left end and `right` at its right end.

    `right` gives way: it is left out when both do not fit.
    """
    gap = width - line_width(left) - line_width(right)
    if gap < 1:
        return fit_line(left, width)
    return [*left, Segment(" " * gap), *right]


def repaint(line: Line, style: Style) -> Line:
    """Return `line` with every piece in `style`."""
    return [Segment(segment.text, style) for segment in line]


def milliseconds(value_ms: float | None) -> str:
    """Return a round-trip time in at most 6 characters, or a dash when there is none."""
    if value_ms is None:
        return "-"
    if value_ms < 0.995:
        return f"{max(value_ms, 0.0):.2f}ms"
    if value_ms < 9.95:
        return f"{value_ms:.1f}ms"
    if value_ms < 999.5:
        return f"{value_ms:.0f}ms"
    return f"{min(value_ms / 1_000, 999.9):.1f}s"
