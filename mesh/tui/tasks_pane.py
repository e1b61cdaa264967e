"""The tasks: how many are in each state, and the latest of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from rich.segment import Segment
from rich.style import Style

from mesh.core.time import format_duration
from mesh.tui.board import TASK_STATES, Board
from mesh.tui.cells import Line, fit, fit_line, fit_middle
from mesh.tui.columns import Column, lay_out
from mesh.tui.filters import TASK_FIELDS, TASK_WORDS, matching, slip
from mesh.tui.orders import TASK_ORDERS
from mesh.tui.palette import DIM, PLAIN, TASK_BLOCKS, TASK_MARKS, UNKNOWN
from mesh.tui.pane import Stance, count_note, fill, list_lines
from mesh.tui.rows import TaskRow
from mesh.tui.spots import Spot

_HEAD_LINES: Final = 2
_HINT: Final = "nothing yet: give it work with  mesh submit -- CMD"
_HINT_OF_MANY: Final = "none kept or run here: mesh tasks lists all, mesh submit -- CMD adds one"
_COUNTS_CELLS: Final = 58
"""What the counts of all states take, more or less; the bar has the rest of the line."""


@dataclass(frozen=True)
class TasksPane:
    """The tasks that the filter leaves, sorted, seen through a window under the counts of all."""

    board: Board
    stance: Stance = field(default_factory=Stance)

    @property
    def title(self) -> str:
        """The pane's name."""
        return "tasks"

    @property
    def is_rolling(self) -> bool:
        """Tasks move about as they change."""
        return False

    @cached_property
    def rows(self) -> Sequence[TaskRow]:
        """The tasks as they stand."""
        order = TASK_ORDERS[self.stance.sorting.order]
        rows = matching(self.board.tasks, TASK_FIELDS, self.stance.filter)
        return order.arrange(rows, self.board.at, is_reversed=self.stance.sorting.is_reversed)

    @cached_property
    def keys(self) -> Sequence[str]:
        """Their ids."""
        return [task.key for task in self.rows]

    def note(self, height: int) -> str:
        """Return which of the tasks are shown, and who keeps them: a node knows not all of its mesh's."""
        held, page = len(self.board.tasks), self.page(height)
        note = count_note(held, len(self.rows), page, self.stance, self._spot(page))
        if self.stance.filter or not note or not _has_others(self.board):
            return note
        if held == sum(self.board.task_counts.values()) and not self.board.guests:
            return f"{note} kept here"
        whose = _whose(self.board)
        return whose if note == str(held) else f"{note}: {whose}"

    def page(self, height: int) -> int:
        """Return how many tasks fit."""
        return max(0, height - _HEAD_LINES)

    def render(self, width: int, height: int) -> list[Line]:
        """Draw the counts, the titles and the tasks."""
        counts = counts_line(self.board.shown_counts, width)
        if not self.rows:
            hint = _HINT_OF_MANY if _has_others(self.board) else _HINT
            wrong = slip(self.stance.filter, TASK_FIELDS, TASK_WORDS)
            text = (wrong or "no task matches") if self.board.tasks else hint
            return fill([counts, [Segment(text, DIM)]], width, height)
        layout = lay_out(_columns(self.board.at), self.rows, width)
        sorting = self.stance.sorting
        order = TASK_ORDERS[sorting.order]
        arrow = order.arrow(is_reversed=sorting.is_reversed)
        rows = list_lines(
            self.rows,
            layout.row,
            (width, height - _HEAD_LINES),
            self._spot(self.page(height)),
            has_cursor=self.stance.has_cursor,
        )
        return fill([counts, layout.titles(order.column, arrow), *rows], width, height)

    def _spot(self, page: int) -> Spot:
        return self.stance.spot.settled(self.keys, page, is_rolling=self.is_rolling)


def _has_others(board: Board) -> bool:
    return any(member.is_living and not member.is_self for member in board.members)


def _whose(board: Board) -> str:
    """Say how many of the tasks this node keeps, and how many it runs beside these."""
    guests = board.guests
    kept, listed = sum(board.task_counts.values()), len(board.tasks) - len(guests)
    latest = f", the latest {listed} listed" if listed < kept else ""
    own = f"{kept} kept here{latest}"
    if not guests:
        return own
    return f"{own}, {len(guests)} run here" if kept else f"{len(guests)} run here, kept by others"


def counts_line(counts: Mapping[str, int], width: int) -> Line:
    """Return each state's count, and a bar of their shares; what is scheduled or lost only where there is some."""
    line: Line = []
    for state in TASK_STATES:
        mark = TASK_MARKS[state]
        count = counts.get(state, 0)
        if state in {"scheduled", "lost"} and not count:
            continue  # rare, and the line is full
        style = mark.style if count else DIM
        line += [Segment(f"{mark.symbol} {count}", style), Segment(f" {state}   ", DIM)]
    cells = min(60, width - max(_COUNTS_CELLS, sum(len(piece.text) for piece in line)))
    if cells >= 8:
        line += shares(counts, cells)
    return fit_line(line, width)


def shares(counts: Mapping[str, int], width: int) -> Line:
    """Return a bar of `width` cells in which each state has its share; no state that has one vanishes."""
    present = [(state, counts.get(state, 0)) for state in TASK_STATES if counts.get(state, 0) > 0]
    if not present or width < len(present):
        return [Segment("·" * width, DIM)]
    total = sum(count for _, count in present)
    spare = width - len(present)
    cells = {state: 1 + count * spare // total for state, count in present}
    biggest = max(present, key=lambda pair: pair[1])[0]
    cells[biggest] += width - sum(cells.values())
    return [
        Segment(TASK_BLOCKS[state] * cells[state], TASK_MARKS[state].style) for state, _ in present
    ]


def _columns(at: float) -> list[Column[TaskRow]]:
    return [
        Column(title="ID", cell=_id, text=lambda t: t.id, width_min=12, width_max=20),
        Column(title="STATE", cell=_state, width_min=11),
        Column(title="NODE", cell=_owner, text=lambda t: t.owner, width_min=8, width_max=20),
        Column(title="ATTEMPT", cell=_attempt, width_min=7, rank=2, align="right"),
        Column(
            title="TIME",
            cell=lambda t, width: _time(t, width, at),
            width_min=6,
            rank=1,
            align="right",
        ),
        Column(title="EXIT", cell=_exit, width_min=4, rank=4, align="right"),
        Column(
            title="ORIGIN",
            cell=_origin,
            text=lambda t: t.origin,
            width_min=8,
            width_max=16,
            rank=5,
        ),
        Column(
            title="COMMAND",
            cell=_command,
            text=lambda t: f"{t.command}  {t.note}",
            width_min=26,
            width_max=400,
        ),
    ]


def _tone(task: TaskRow) -> Style:
    return DIM if task.is_over else PLAIN


def _id(task: TaskRow, width: int) -> Line:
    return [Segment(fit(task.id, width), _tone(task))]


def _state(task: TaskRow, _width: int) -> Line:
    mark = TASK_MARKS.get(task.state, UNKNOWN)
    return [Segment(f"{mark.symbol} {task.state}", mark.style)]


def _owner(task: TaskRow, width: int) -> Line:
    return [Segment(fit_middle(task.owner or "-", width), _tone(task))]


def _origin(task: TaskRow, width: int) -> Line:
    return [Segment(fit_middle(task.origin or "-", width), DIM)]


def _attempt(task: TaskRow, width: int) -> Line:
    tone = TASK_MARKS["ready"].style if (task.attempt or 0) > 1 else _tone(task)
    return [Segment(fit(str(task.attempt or "-"), width, "right"), tone)]


def _time(task: TaskRow, width: int, at: float) -> Line:
    """How long it has waited, runs, or ran."""
    lasting_s = task.lasting_s(at)
    text = "-" if lasting_s is None else format_duration(lasting_s)
    return [Segment(fit(text, width, "right"), _tone(task))]


def _exit(task: TaskRow, width: int) -> Line:
    text = "-" if task.exit_code is None else str(task.exit_code)
    return [
        Segment(fit(text, width, "right"), TASK_MARKS["failed"].style if task.exit_code else DIM)
    ]


def _command(task: TaskRow, _width: int) -> Line:
    line = [Segment(task.command, _tone(task))]
    if task.note:
        line.append(Segment(f"  {task.note}", DIM))
    return line
