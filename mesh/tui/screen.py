"""The whole screen as one value: panes in frames, fitted to any size.

Pure: (board, look, size) gives the same lines every time. Up to 140 columns the panes stand above
each other; from there on tasks and events share the width. Where the height is not enough for three
panes, the focused one has it all.

    ╭─[members]─ 3 ────╮        ╭─[members]─ 3 ──────────────────────╮
    ├─ tasks ──────────┤   or   ├─ tasks ─────────────┬─ events ─────┤
    ├─ events ─────────┤        │                     │              │
    ╰──────────────────╯        ╰─────────────────────┴──────────────╯
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment

from mesh.tui.board import Board
from mesh.tui.cells import Line, fit_line, line_width, repaint, spread
from mesh.tui.events_pane import EventsPane, clock
from mesh.tui.header import HEADER_LINES, Header
from mesh.tui.help_pane import HelpPane
from mesh.tui.look import Look
from mesh.tui.members_pane import MembersPane
from mesh.tui.palette import DIM, FOCUS, FRAME, KEY, TITLE
from mesh.tui.pane import Pane, offset_max
from mesh.tui.tasks_pane import TasksPane

WIDTH_MIN: Final = 36
HEIGHT_MIN: Final = 8
_WIDE: Final = 140
_THREE_PANES_HEIGHT: Final = 18
_MEMBERS, _TASKS, _EVENTS = range(3)


@dataclass(frozen=True, slots=True)
class Screen:
    """What is on the terminal: `render` gives `height` lines of `width` cells; rich can print it, too."""

    board: Board
    width: int
    height: int
    look: Look = field(default_factory=Look)
    zone: tzinfo | None = None
    gone_s: float = 0.0

    def render(self) -> list[Line]:
        """Draw every line."""
        if self.width < WIDTH_MIN or self.height < HEIGHT_MIN:
            return self._too_small()
        body = self._body()
        if self.board.gone:
            body = [repaint(line, DIM) for line in body]
        return [*Header(self.board, self.gone_s).render(self.width), *body, self._footer()]

    def press(self, key: str) -> Look:
        """Return the look after `key`."""
        heights = self._heights()
        panes = self._panes()
        limits = [
            offset_max(pane.total, pane.page(height))
            for pane, height in zip(panes, heights, strict=True)
        ]
        focus = self.look.focus
        page = panes[focus].page(heights[focus])
        return self.look.clamped(limits).press(key, page, limits[focus])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give rich the lines, for pictures."""
        for line in self.render():
            yield from line
            yield Segment.line()

    def _panes(self) -> tuple[Pane, Pane, Pane]:
        offsets = self.look.offsets
        return (
            MembersPane(self.board, offsets[_MEMBERS]),
            TasksPane(self.board, offsets[_TASKS]),
            EventsPane(self.board, offsets[_EVENTS], self.zone),
        )

    @property
    def _inner(self) -> int:
        """The lines between the header and the footer, without the frame's bottom."""
        return self.height - HEADER_LINES - 2

    def _heights(self) -> tuple[int, int, int]:
        """Return the lines inside each pane's frame. A pane that is not shown has what it would have alone."""
        if self.height < _THREE_PANES_HEIGHT:
            alone = self._inner - 1
            return alone, alone, alone
        is_wide = self.width >= _WIDE
        room = self._inner - (2 if is_wide else 3)
        share = 0.6 if is_wide else 0.45
        members = min(max(len(self.board.members), 3) + 1, max(4, int(room * share)))
        rest = room - members
        if is_wide:
            return members, rest, rest
        tasks = rest * 3 // 5
        return members, tasks, rest - tasks

    def _body(self) -> list[Line]:
        width = self.width
        if self.look.is_help:
            help_lines = HelpPane().render(width - 4, self._inner - 1)
            return [*_framed("help", "", help_lines, _Edge(width, is_focused=True)), _bottom(width)]
        panes = self._panes()
        heights = self._heights()
        if self.height < _THREE_PANES_HEIGHT:
            return [*self._pane(panes, self.look.focus, heights, width), _bottom(width)]
        top = self._pane(panes, _MEMBERS, heights, width)
        if width < _WIDE:
            tasks = self._pane(panes, _TASKS, heights, width, is_first=False)
            events = self._pane(panes, _EVENTS, heights, width, is_first=False)
            return [*top, *tasks, *events, _bottom(width)]
        left = width * 11 // 20
        tasks = self._pane(panes, _TASKS, heights, left, is_first=False)
        events = self._pane(panes, _EVENTS, heights, width - left + 1, is_first=False)
        return [*top, *_side_by_side(tasks, events), _bottom(width, left)]

    def _pane(
        self,
        panes: Sequence[Pane],
        index: int,
        heights: Sequence[int],
        width: int,
        *,
        is_first: bool = True,
    ) -> list[Line]:
        pane, height = panes[index], heights[index]
        edge = _Edge(width, is_focused=index == self.look.focus, is_first=is_first)
        return _framed(pane.title, pane.note(height), pane.render(width - 4, height), edge)

    def _footer(self) -> Line:
        left: Line = [Segment(" ")]
        for keys, meaning in (("q", "quit"), ("tab", "pane"), ("↑↓", "scroll"), ("?", "help")):
            left += [Segment(keys, KEY), Segment(f" {meaning}   ", DIM)]
        at = clock(self.board.at, self.zone) if self.board.node else ""
        return spread(left, [Segment(f"{at} ", DIM)], self.width)

    def _too_small(self) -> list[Line]:
        texts = ["mesh top", f"needs {WIDTH_MIN}x{HEIGHT_MIN}, is {self.width}x{self.height}"]
        lines = [fit_line([Segment(text)], self.width) for text in texts]
        blank = fit_line([], self.width)
        return [*lines, *[blank] * self.height][: self.height]


@dataclass(frozen=True, slots=True)
class _Edge:
    """How a pane's frame begins."""

    width: int
    is_focused: bool = False
    is_first: bool = True


def _framed(title: str, note: str, lines: list[Line], edge: _Edge) -> list[Line]:
    """Return `lines` with a titled edge above and sides; the bottom belongs to whoever comes below."""
    left, right = ("╭", "╮") if edge.is_first else ("├", "┤")
    style = FOCUS if edge.is_focused else FRAME
    name = f"[{title}]" if edge.is_focused else f" {title} "
    head = [Segment(f"{left}─", FRAME), Segment(name, TITLE if edge.is_focused else style)]
    if note:
        head += [Segment("─", FRAME), Segment(f" {note} ", DIM)]
    room = edge.width - line_width(head) - 1
    head = [*head, Segment("─" * room, FRAME)] if room >= 0 else fit_line(head, edge.width - 1)
    side = Segment("│", FRAME)
    framed = [[side, Segment(" "), *line, Segment(" "), side] for line in lines]
    return [[*head, Segment(right, FRAME)], *framed]


def _bottom(width: int, split: int = 0) -> Line:
    if not split:
        return [Segment("╰" + "─" * (width - 2) + "╯", FRAME)]
    return [Segment("╰" + "─" * (split - 2) + "┴" + "─" * (width - split - 1) + "╯", FRAME)]


def _side_by_side(left: list[Line], right: list[Line]) -> list[Line]:
    """Join two framed panes; the right one's left side is the edge between them."""
    joined = [[*a[:-1], *b] for a, b in zip(left, right, strict=True)]
    first = right[0][0]
    corner = Segment("┬" + first.text[1:], first.style)
    joined[0] = [*left[0][:-1], corner, *right[0][1:]]
    return joined
