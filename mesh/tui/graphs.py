"""The sparklines: packets sent and received, tasks done, and this node's load."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rich.segment import Segment
from rich.style import Style

from mesh.core.load import LOAD_MAX, format_load
from mesh.core.time import format_duration
from mesh.tui.board import Board
from mesh.tui.cells import Line, fit, fit_line
from mesh.tui.history import Levels, Rates, full, mean, span_s, spark
from mesh.tui.palette import BLUE, CYAN, DIM, MAGENTA, YELLOW, load_style

GRAPH_LINES: Final = 4
_GAP: Final = 2
_DONE_CELLS: Final = 3
"""Tasks a second are the mean of so many cells: as long a time as packets a second are the mean of."""


@dataclass(frozen=True, slots=True)
class _Graph:
    """One value: its sign and name, what it is now, its past, what fills the graph at least, its unit.

    The `unit` is for one line, in which two rates share it; the `name` is for a graph of its own.
    `write` makes a text of a value, `scale` one of what fills the graph.
    """

    sign: str
    name: str
    now: float | None
    past: Rates | Levels
    full_least: float
    style: Style
    unit: str
    write: Callable[[float], str]
    scale: Callable[[float], str] = "{:g}".format
    full_most: float = math.inf

    @property
    def text(self) -> str:
        return "-" if self.now is None else self.write(self.now)

    @property
    def label(self) -> str:
        return f"{self.sign} {self.text}{self.unit}"

    def full(self, values: list[float | None]) -> float:
        return min(full([*values, self.now], self.full_least), self.full_most)


def spark_line(board: Board, width: int) -> Line:
    """Return one line in which the graphs share the room that their numbers leave."""
    graphs = _graphs(board)
    words = [f"{graph.label} " for graph in graphs]
    room = width - 1 - sum(len(text) for text in words) - _GAP * len(graphs)
    cells = max(0, room // len(graphs))
    line: Line = [Segment(" ")]
    for graph, text in zip(graphs, words, strict=True):
        values = graph.past.last(cells)
        (picture,) = spark(values, 1, graph.full(values))
        line += [Segment(text, DIM), Segment(picture, graph.style), Segment(" " * _GAP)]
    return fit_line(line, width)


def graph_lines(board: Board, width: int) -> list[Line]:
    """Return graphs side by side, each under a line with its name, its number and its scale."""
    graphs = _graphs(board)
    cells = (width - 1) // len(graphs) - _GAP
    lines: list[Line] = [[Segment(" ")] for _ in range(GRAPH_LINES)]
    for graph in graphs:
        values = graph.past.last(cells)
        top = graph.full(values)
        title = f"{graph.sign} {graph.text} {graph.name}"
        known_s = span_s(values)
        scale = f"  last {format_duration(known_s)}, full at {graph.scale(top)}" if known_s else ""
        lines[0] += [
            Segment(title, graph.style),
            Segment(fit(scale, max(cells + _GAP - len(title), 0)), DIM),
        ]
        for number, picture in enumerate(spark(values, GRAPH_LINES - 1, top), start=1):
            lines[number] += [Segment(picture, graph.style), Segment(" " * _GAP)]
    return [fit_line(line, width) for line in lines]


def _graphs(board: Board) -> list[_Graph]:
    past = board.history
    sent, received = board.traffic.rates() or (None, None)
    done = mean(past.done.last(_DONE_CELLS))
    load = board.own.load if board.own else None
    style = YELLOW if load is None else load_style(load)
    return [
        _Graph("↑", "packets/s out", sent, past.sent, 5.0, CYAN, "", _rate),
        _Graph("↓", "packets/s in", received, past.received, 5.0, BLUE, " packets/s", _rate),
        _Graph("✓", "tasks/s done", done, past.done, 1.0, MAGENTA, " tasks/s", _rate),
        _Graph(
            "load", "here", load, past.load, 1.0, style, "", format_load, "{:.0%}".format, LOAD_MAX
        ),
    ]


def _rate(value: float) -> str:
    """Return a rate in at most four characters, as far as rates go."""
    return f"{value:.1f}" if value < 99.5 else f"{value:.0f}"
