"""A contest's page: who was called and what came of each, every score with its parts, and how it ended, in words."""

from __future__ import annotations

from datetime import tzinfo
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment

from mesh.tasks.contest_words import contest_evidence, contest_words
from mesh.tui.board import Board
from mesh.tui.cells import Line, fit_middle, milliseconds
from mesh.tui.contest_rows import ContestRow, Word
from mesh.tui.contests_pane import outcome_style, round_text, winner_text
from mesh.tui.events_pane import clock
from mesh.tui.pages import facts, heading, paragraph, plain
from mesh.tui.palette import (
    BOLD,
    COLUMN,
    CONTEST_MARKS,
    DIM,
    GREEN,
    PLAIN,
    TASK_MARKS,
    UNKNOWN,
    bar,
)

_NAME_CELLS_MAX: Final = 24
_BAR_CELLS: Final = 10


def contest_page(board: Board, row: ContestRow, width: int, zone: tzinfo | None) -> list[Line]:
    """Return the lines of a contest's page."""
    lines = [_state(row)]
    lines += heading("what was said")
    lines += contest_story(row, width)
    lines += heading(f"who was called ({len(row.called)}, in the order of what was expected)")
    lines += _called(row)
    lines += heading("what it is")
    lines += facts(_pairs(board, row, zone), width)
    return lines


def contest_story(row: ContestRow, width: int) -> list[Line]:
    """Return in words who was called, what each of them said and on what grounds, and what came of it."""
    lines = paragraph(contest_words(row.words), width)
    *said, end = contest_evidence(row.words)
    for piece in said:
        lines += paragraph(piece, width, indent="· ")
    return [*lines, *paragraph(end, width, outcome_style(row), indent="· ")]


def _state(row: ContestRow) -> Line:
    mark = CONTEST_MARKS.get(row.outcome, UNKNOWN)
    line = [
        Segment(row.task_id, BOLD),
        Segment("  "),
        Segment(f"{mark.symbol} {winner_text(row)}{round_text(row)}", mark.style),
    ]
    if row.attempt is not None:
        line.append(Segment(f"  attempt {row.attempt}", DIM))
    if row.after_ms is not None:
        line.append(Segment(f"  granted after {milliseconds(row.after_ms)}", DIM))
    return line


def _called(row: ContestRow) -> list[Line]:
    names = [name for name, _ in row.called]
    cells = min(_NAME_CELLS_MAX, max([6, *map(cell_len, names)]))
    said = {word.member: word for word in reversed(row.said)}  # the first that each said
    titles = f"{'MEMBER':<{cells}}  {'EXPECTED':<{_BAR_CELLS + 5}}  BID"
    lines: list[Line] = [[Segment(titles, COLUMN)]]
    for name, expected in row.called:
        word = said.get(name)
        line = [
            Segment(fit_middle(name, cells), BOLD if name == row.winner else PLAIN),
            Segment(f"  {_scale(expected)}  ", DIM),
            *(_answer(word) if word else [Segment("-" if row.is_under_way else "silent", DIM)]),
        ]
        lines.append(line)
    return lines


def _answer(word: Word) -> Line:
    after = Segment(f"  after {milliseconds(word.after_ms)}", DIM)
    if word.score is None:
        return [Segment(f"{f'declined: {word.declined}':<{_BAR_CELLS + 5}}", DIM), after]
    return [Segment(_scale(word.score), GREEN), after]


def _scale(score: float) -> str:
    return f"{bar(score, 1.0, _BAR_CELLS)} {min(max(score, 0.0), 9.99):.2f}"


def _pairs(board: Board, row: ContestRow, zone: tzinfo | None) -> list[tuple[str, Line]]:
    task = next((task for task in board.tasks if task.id == row.task_id), None)
    mark = TASK_MARKS.get(task.state, UNKNOWN) if task else UNKNOWN
    return [
        ("held by", plain(row.caller)),
        ("called at", plain(clock(row.at, zone))),
        ("window", plain(milliseconds(row.window_ms))),
        ("rounds", plain(row.rounds or None)),
        ("bids", plain(len(row.bids))),
        ("task now", [Segment(f"{mark.symbol} {task.state}", mark.style)] if task else plain("-")),
        *([("command", plain(task.command))] if task else []),
    ]
