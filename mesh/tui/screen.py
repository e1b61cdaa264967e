"""The whole screen as one value: panes in frames, fitted to any size.

Pure: (board, look, size) gives the same lines every time. Up to 140 columns the panes stand above
each other; from there on tasks and events share the width. A high screen has the contests below them; on
a lower one events and contests share a place, and the one that was looked at has it. Where the height is
not enough for three panes, or the user wants it so, the focused one has it all. A page of details lies
over the panes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import cached_property
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment

from mesh.tui.board import Board
from mesh.tui.cells import Line, fit_line, repaint
from mesh.tui.contests_pane import ContestsPane
from mesh.tui.details import Details
from mesh.tui.events_pane import EventsPane, clock
from mesh.tui.footer import Footer
from mesh.tui.frames import Edge, bottom, framed, side_by_side
from mesh.tui.header import Header, header_height
from mesh.tui.help_pane import HelpPane
from mesh.tui.look import CONTESTS, EVENTS, MEMBERS, PANES, TASKS, Ground, Look
from mesh.tui.members_pane import MembersPane
from mesh.tui.palette import DIM
from mesh.tui.pane import Pane, fill
from mesh.tui.tasks_pane import TasksPane
from mesh.tui.windows import position

WIDTH_MIN: Final = 36
HEIGHT_MIN: Final = 8
_WIDE: Final = 140
_THREE_PANES_HEIGHT: Final = 18
_FOUR_PANES_HEIGHT: Final = 44


@dataclass(frozen=True)
class Screen:
    """What is on the terminal: `render` gives `height` lines of `width` cells; rich can print it, too.

    Attributes:
        gone_s: how long the node has not answered.
        paused: what is said while the picture is frozen, "" while it is not.
        is_joined: whether Ctrl-C ends the node, too, whose own screen this is.
    """

    board: Board
    width: int
    height: int
    look: Look = field(default_factory=Look)
    zone: tzinfo | None = None
    gone_s: float = 0.0
    paused: str = ""
    is_joined: bool = False

    def render(self) -> list[Line]:
        """Draw every line."""
        if self.width < WIDTH_MIN or self.height < HEIGHT_MIN:
            return self._too_small()
        body = self._body()
        if self.board.gone:
            body = [repaint(line, DIM) for line in body]
        head = Header(self.board, self.gone_s, self.paused).render(self.width, self.height)
        at = clock(self.board.at, self.zone) if self.board.node else ""
        return [*head, *body, Footer(self.look, at, self.is_joined).render(self.width)]

    def press(self, key: str) -> Look:
        """Return the look after `key`."""
        focus = self.look.focus
        pane = self._panes[focus]
        page = self._details
        over = self._help if self.look.is_help else page.lines if page else []
        ground = Ground(
            keys=pane.keys,
            page=pane.page(self._heights[focus]),
            is_rolling=pane.is_rolling,
            scroll_page=self._alone,
            scroll_max=max(0, len(over) - self._alone),
        )
        return self.look.press(key, ground)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give rich the lines, for pictures."""
        for line in self.render():
            yield from line
            yield Segment.line()

    @cached_property
    def _panes(self) -> tuple[Pane, Pane, Pane, Pane]:
        look = self.look
        return (
            MembersPane(self.board, look.stance(MEMBERS)),
            TasksPane(self.board, look.stance(TASKS)),
            EventsPane(self.board, look.stance(EVENTS), self.zone),
            self._contests,
        )

    @cached_property
    def _contests(self) -> ContestsPane:
        beside = self._is_wide and not (self._is_alone or self._has_four)
        width = self._right if beside else self.width
        return ContestsPane(self.board, self.look.stance(CONTESTS), self.zone, width - 4)

    @cached_property
    def _details(self) -> Details | None:
        if not self.look.opened:
            return None
        return Details.open(
            self.board, self.look.focus, self.look.opened, self.width - 4, self.zone
        )

    @cached_property
    def _help(self) -> list[Line]:
        return HelpPane(self.is_joined).lines(self.width - 4)

    @property
    def _inner(self) -> int:
        """The lines between the header and the footer, without the frame's bottom."""
        return self.height - header_height(self.height) - 2

    @property
    def _alone(self) -> int:
        """The lines inside the frame of a pane that has all the room."""
        return max(1, self._inner - 1)

    @property
    def _is_alone(self) -> bool:
        return self.look.is_zoomed or self.height < _THREE_PANES_HEIGHT

    @property
    def _is_wide(self) -> bool:
        return self.width >= _WIDE

    @property
    def _has_four(self) -> bool:
        """Say whether the contests have a place of their own; an older node tells of none."""
        return self.height >= _FOUR_PANES_HEIGHT and self.board.contests.is_told

    @property
    def _left(self) -> int:
        """The width of the left one of two panes, with both its edges."""
        return self.width * 11 // 20

    @property
    def _right(self) -> int:
        """The width of the right one; the edge between them belongs to both."""
        return self.width - self._left + 1

    @cached_property
    def _heights(self) -> tuple[int, int, int, int]:
        """Return the lines inside each pane's frame. A pane that is not shown has what it would have alone."""
        if self._is_alone:
            return (self._alone,) * 4
        room = self._inner - (2 if self._is_wide else 3) - self._has_four
        share = 0.6 if self._is_wide else 0.45
        members = min(max(len(self.board.members), 3) + 1, max(4, int(room * share)))
        rest = room - members
        if self._has_four:
            contests = min(self._contests.lines_wanted, rest * 2 // 5)
            rest -= contests
            tasks = rest * 3 // 5
            return (
                (members, rest, rest, contests)
                if self._is_wide
                else (members, tasks, rest - tasks, contests)
            )
        if self._is_wide:
            return members, rest, rest, rest
        tasks = rest * (2 if self.look.focus == CONTESTS else 3) // 5
        return members, tasks, rest - tasks, rest - tasks

    def _body(self) -> list[Line]:
        width = self.width
        if self.look.is_help:
            return self._page("help", self._help, self.look.help_scroll)
        if self._details:
            return self._page(self._details.title, self._details.lines, self.look.scroll)
        if self._is_alone:
            return [*self._pane(self.look.focus, Edge(width)), bottom(width)]
        below = Edge(width, is_first=False)
        lines = self._pane(MEMBERS, Edge(width))
        if not self._is_wide:
            lines += [*self._pane(TASKS, below), *self._shared(below)]
            if self._has_four:
                lines += self._pane(CONTESTS, below)
            return [*lines, bottom(width)]
        left = self._pane(TASKS, Edge(self._left, is_first=False))
        lines += side_by_side(left, self._shared(Edge(self._right, is_first=False)))
        if not self._has_four:
            return [*lines, bottom(width, self._left)]
        contests = self._pane(CONTESTS, replace(below, joint=self._left))
        return [*lines, *contests, bottom(width)]

    def _shared(self, edge: Edge) -> list[Line]:
        """Draw events or contests: where they share a place, its edge says which key shows the other."""
        shown, other = EVENTS, CONTESTS
        if self._has_four or not (self.board.contests.is_told or self.look.focus == CONTESTS):
            return self._pane(EVENTS, edge)
        if self.look.focus == CONTESTS:
            shown, other = other, shown
        return self._pane(shown, replace(edge, aside=f"key {other + 1}: {PANES[other]}"))

    def _page(self, title: str, lines: Sequence[Line], scroll: int) -> list[Line]:
        height = self._alone
        first = min(scroll, max(0, len(lines) - height))
        seen = fill(list(lines[first : first + height]), self.width - 4, height)
        where = position(len(lines), height, first) and (
            f"line {first + 1}-{min(first + height, len(lines))} of {len(lines)}"
        )
        edge = Edge(self.width, is_focused=True)
        return [*framed(title, where, seen, edge), bottom(self.width)]

    def _pane(self, index: int, edge: Edge) -> list[Line]:
        pane, height = self._panes[index], self._heights[index]
        lines = pane.render(edge.width - 4, height)
        is_focused = index == self.look.focus
        return framed(pane.title, pane.note(height), lines, replace(edge, is_focused=is_focused))

    def _too_small(self) -> list[Line]:
        texts = ["mesh top", f"needs {WIDTH_MIN}x{HEIGHT_MIN}, is {self.width}x{self.height}"]
        lines = [fit_line([Segment(text)], self.width) for text in texts]
        blank = fit_line([], self.width)
        return [*lines, *[blank] * self.height][: self.height]
