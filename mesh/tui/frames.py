"""The frames round panes: titled edges that touch, so that neighbours share a line.

╭─[members]─ 3 ────╮        ╭─[members]─ 3 ──────────────────────╮
├─ tasks ──────────┤   or   ├─ tasks ─────────────┬─ events ─────┤
├─ events ─────────┤        │                     │              │
╰──────────────────╯        ├─ contests ──────────┴──────────────┤
                            ╰────────────────────────────────────╯
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.segment import Segment

from mesh.tui.cells import Line, fit_line, line_width
from mesh.tui.palette import DIM, FRAME, TITLE


@dataclass(frozen=True, slots=True)
class Edge:
    """How a pane's frame begins."""

    width: int
    is_focused: bool = False
    is_first: bool = True
    joint: int = 0
    """The width of the left one of two panes above, 0: there is one above, or none."""

    aside: str = ""
    """A few words at the right end, where there is room."""


def framed(title: str, note: str, lines: list[Line], edge: Edge) -> list[Line]:
    """Return `lines` with a titled edge above and sides; the bottom belongs to whoever comes below."""
    left, right = ("╭", "╮") if edge.is_first else ("├", "┤")
    name = f"[{title}]" if edge.is_focused else f" {title} "
    head = [Segment(f"{left}─", FRAME), Segment(name, TITLE if edge.is_focused else FRAME)]
    if note:
        head += [Segment("─", FRAME), Segment(f" {note} ", DIM)]
    room = edge.width - line_width(head) - 1
    head = [*head, *_rest(edge, room)] if room >= 0 else fit_line(head, edge.width - 1)
    side = Segment("│", FRAME)
    sides = [[side, Segment(" "), *line, Segment(" "), side] for line in lines]
    return [[*head, Segment(right, FRAME)], *sides]


def _rest(edge: Edge, room: int) -> Line:
    """Return the `room` cells between a title and the corner."""
    aside = f" {edge.aside} ─" if edge.aside and len(edge.aside) + 4 <= room else ""
    rule = "─" * (room - len(aside))
    joint = edge.joint - edge.width + room  # counted from the title's end
    if edge.joint and 0 <= joint < len(rule):
        rule = f"{rule[:joint]}┴{rule[joint + 1 :]}"
    return [Segment(rule + aside, FRAME)]


def bottom(width: int, split: int = 0) -> Line:
    """Return the last line of the frame; `split` is the width of the left one of two panes."""
    if not split:
        return [Segment("╰" + "─" * (width - 2) + "╯", FRAME)]
    return [Segment("╰" + "─" * (split - 2) + "┴" + "─" * (width - split - 1) + "╯", FRAME)]


def side_by_side(left: list[Line], right: list[Line]) -> list[Line]:
    """Join two framed panes; the right one's left side is the edge between them."""
    joined = [[*a[:-1], *b] for a, b in zip(left, right, strict=True)]
    first = right[0][0]
    corner = Segment("┬" + first.text[1:], first.style)
    joined[0] = [*left[0][:-1], corner, *right[0][1:]]
    return joined
