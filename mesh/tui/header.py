"""The two lines at the top: which mesh and node this is, and how both are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rich.segment import Segment

from mesh.tui.board import Board
from mesh.tui.cells import Line, duration, fit, fit_line, line_width, spread
from mesh.tui.palette import BANNER, BOLD, DIM, MEMBER_MARKS, TITLE, YELLOW, bar, load_style

HEADER_LINES: Final = 2
_LOAD_CELLS: Final = 5


@dataclass(frozen=True, slots=True)
class Header:
    """The head of the screen; `gone_s` is how long the node has not answered."""

    board: Board
    gone_s: float = 0.0

    def render(self, width: int) -> list[Line]:
        """Draw two lines of `width` cells."""
        first = self._banner(width) if self.board.gone else self._identity(width)
        return [first, self._state(width)]

    def _banner(self, width: int) -> Line:
        name = f" {self.board.node.name}" if self.board.node else ""
        text = f" node{name} gone, trying again ({duration(self.gone_s)}): {self.board.gone}"
        return [Segment(fit(text, width), BANNER)]

    def _identity(self, width: int) -> Line:
        node = self.board.node
        if node is None:
            return fit_line(
                [Segment(" mesh", TITLE), Segment("  waiting for the first view", DIM)], width
            )
        left = [
            Segment(" mesh ", TITLE),
            Segment(node.mesh_id or "none yet", BOLD),
            Segment("  node ", DIM),
            Segment(node.name, BOLD),
            Segment(f"  {node.address}"),
        ]
        right = []
        if node.phase != "member":
            right.append(Segment(f"{node.phase}  ", YELLOW))
        if node.since:
            right.append(Segment(f"up {duration(self.board.at - node.since)}  ", DIM))
        right.append(Segment(f"v{node.version} " if node.version else "", DIM))
        return spread(left, right, width)

    def _state(self, width: int) -> Line:
        counts = self.board.member_counts
        left = [Segment(" ")]
        for state, mark in MEMBER_MARKS.items():
            count = counts.get(state, 0)
            if count or state != "left":
                style = mark.style if count else DIM
                left += [Segment(f"{mark.symbol} {count}", style), Segment(f" {state}  ", DIM)]
        room = width - line_width(left) - 1
        vitals = [self._packets() + self._load(bar_cells) for bar_cells in (_LOAD_CELLS, 0)]
        fitting = [line for line in vitals if line_width(line) <= room]
        return spread(left, fitting[0] if fitting else self._packets(), width)

    def _packets(self) -> Line:
        rates = self.board.traffic.rates()
        if rates is None:
            return []
        sent, received = rates
        return [Segment(f"↑{sent:.1f} ↓{received:.1f}"), Segment(" packets/s  ", DIM)]

    def _load(self, bar_cells: int) -> Line:
        own = self.board.own
        if own is None or own.load is None:
            return []
        graph = [Segment(bar(own.load, 1.0, bar_cells) + " ", load_style(own.load))]
        return [
            Segment("load ", DIM),
            *(graph if bar_cells else []),
            Segment(f"{own.load:.2f} ", load_style(own.load)),
        ]
