"""The sparklines: packets sent and received, tasks done, and this node's load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rich.segment import Segment
from rich.style import Style

from mesh.core.load import format_load
from mesh.tui.board import Board
from mesh.tui.cells import Line, fit, fit_line
from mesh.tui.history import CELL_S, Levels, Rates, peak, spark
from mesh.tui.palette import BLUE, CYAN, DIM, MAGENTA, YELLOW, load_style

GRAPH_LINES: Final = 4
_GAP: Final = 2


@dataclass(frozen=True, slots=True)
class _Graph:
    """One value: its sign and name, what it is now, its past, what fills the graph at least, its unit.

    The `unit` is for one line, in which two rates share it; the `name` is for a graph of its own.
    """

    sign: str
    name: str
    now: str
    past: Rates | Levels
    top_least: float
    style: Style
    unit: str

    @property
    def label(self) -> str:
        return f"{self.sign} {self.now}{self.unit}"


def spark_line(board: Board, width: int) -> Line:
    """Return one line in which the graphs share the room that their numbers leave."""
    graphs = _graphs(board)
    words = [f"{graph.label} " for graph in graphs]
    room = width - 1 - sum(len(text) for text in words) - _GAP * len(graphs)
    cells = max(0, room // len(graphs))
    line: Line = [Segment(" ")]
    for graph, text in zip(graphs, words, strict=True):
        values = graph.past.last(cells)
        (picture,) = spark(values, 1, peak(values, graph.top_least))
        line += [Segment(text, DIM), Segment(picture, graph.style), Segment(" " * _GAP)]
    return fit_line(line, width)


def graph_lines(board: Board, width: int) -> list[Line]:
    """Return graphs side by side, each under a line with its name, its number and its scale."""
    graphs = _graphs(board)
    cells = (width - 1) // len(graphs) - _GAP
    lines: list[Line] = [[Segment(" ")] for _ in range(GRAPH_LINES)]
    for graph in graphs:
        values = graph.past.last(cells)
        top = peak(values, graph.top_least)
        title = f"{graph.sign} {graph.now} {graph.name}"
        scale = f"  last {int(cells * CELL_S)} s, up to {top:.3g}"
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
    (done,) = past.done.last(1)
    load = board.own.load if board.own else None
    style = YELLOW if load is None else load_style(load)
    return [
        _Graph("↑", "packets/s out", _rate(sent), past.sent, 4.0, CYAN, ""),
        _Graph("↓", "packets/s in", _rate(received), past.received, 4.0, BLUE, " packets/s"),
        _Graph("✓", "tasks/s done", _rate(done), past.done, 1.0, MAGENTA, " tasks/s"),
        _Graph(
            "load", "here", "-" if load is None else format_load(load), past.load, 1.0, style, ""
        ),
    ]


def _rate(value: float | None) -> str:
    """Return a rate in at most four characters, as far as rates go."""
    if value is None:
        return "-"
    return f"{value:.1f}" if value < 99.5 else f"{value:.0f}"
