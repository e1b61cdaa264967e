"""A task's page: how it stands, every attempt with its node and its end, its latest contest, and the last of its output."""

from __future__ import annotations

from datetime import tzinfo
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment

from mesh.core.time import format_duration
from mesh.tasks.words import attempt_end, attempt_reason, placed_text, wants_text
from mesh.tui.board import Board
from mesh.tui.cells import Line, clean, fit
from mesh.tui.contest_page import contest_story
from mesh.tui.events_pane import clock
from mesh.tui.pages import facts, happenings, heading, paragraph, plain
from mesh.tui.palette import BOLD, COLUMN, DIM, PLAIN, RED, TASK_MARKS, UNKNOWN
from mesh.tui.reading import Json, listing, mapping, number, prose, text, whole
from mesh.tui.rows import TaskRow

_NODE_CELLS_MAX: Final = 16
_TAILS: Final = {"stdout_tail": "output", "stderr_tail": "errors"}


def task_page(board: Board, task: TaskRow, width: int, zone: tzinfo | None) -> list[Line]:
    """Return the lines of a task's page."""
    lines = [_state(board, task)]
    if task.note:
        lines += paragraph(task.note, width, RED if task.state == "failed" else PLAIN, indent="  ")
    lines += heading("command")
    lines += paragraph(task.command, width)
    lines += heading("attempts")
    lines += _attempts(board, task, zone)
    lines += _output(task, width)
    lines += _contest(board, task, width, zone)
    lines += heading("what it is")
    lines += facts(_pairs(task, zone), width)
    events = [event for event in board.events if event.task_id == task.id]
    if events:
        lines += heading("what happened to it")
        lines += happenings(events, width, zone)
    return lines


def _state(board: Board, task: TaskRow) -> Line:
    mark = TASK_MARKS.get(task.state, UNKNOWN)
    line = [
        Segment(task.id, BOLD),
        Segment("  "),
        Segment(f"{mark.symbol} {task.state}", mark.style),
    ]
    if task.exit_code is not None:
        line.append(Segment(f"  exit {task.exit_code}", RED if task.exit_code else PLAIN))
    lasting_s = task.lasting_s(board.at)
    if lasting_s is not None:
        verb = "took" if task.is_over else "runs for" if task.state == "running" else "waits for"
        line.append(Segment(f"  {verb} {format_duration(lasting_s)}", DIM))
    if task.owner:
        line.append(Segment(f"  on {task.owner}", DIM))
    return line


def _attempts(board: Board, task: TaskRow, zone: tzinfo | None) -> list[Line]:
    attempts = [mapping(item) for item in listing(task.source.get("attempts"))]
    if not attempts:
        return [[Segment(_who_knows(task), DIM)]]
    cells = min(_NODE_CELLS_MAX, max(4, *(cell_len(text(one, "node")) for one in attempts)))
    titles = f"{'ATTEMPT':>7}  {'NODE':<{cells}}  {'BEGAN':<8}  {'TOOK':>6}  {'END':<12}  CAUSE"
    lines = [[Segment(titles, COLUMN)]]
    lost = task.lost if task.state == "lost" else None
    for position, attempt in enumerate(attempts, 1):
        lines.append(_attempt(board, attempt, (position, cells), zone, lost))
        if placed := _placed(attempt):
            lines.append([Segment(f"{'':9}{placed}", DIM)])
    return lines


def _who_knows(task: TaskRow) -> str:
    """Return why no attempts are listed."""
    if task.is_guest:
        return f"its voters know them: mesh task {task.id}"
    return "none yet"


def _placed(attempt: Json) -> str:
    """Return why an attempt is where it is; "" where its node does not say."""
    placed = mapping(attempt.get("placed"))
    words = {part: text(placed, part) or None for part in ("home", "passed")}
    return placed_text(
        {"by": text(placed, "by"), **words} if placed else None, text(attempt, "node")
    )


def _attempt(
    board: Board, attempt: Json, place: tuple[int, int], zone: tzinfo | None, lost: float | None
) -> Line:
    """Return the line of an attempt; `place` is its position, and the cells of its node's name.

    `lost`: since when (Unix) what is on record as the one that runs is known not to; None: it is not.
    """
    position, cells = place
    started, ended, is_lost = number(attempt, "started"), number(attempt, "ended"), lost is not None
    until = ended or lost or board.at
    took = format_duration(max(0.0, until - started)) if started else "-"
    exit_code, error = whole(attempt, "exit_code"), text(attempt, "error")
    end = attempt_end(
        is_over=ended is not None, end=text(attempt, "end"), exit_code=exit_code, is_lost=is_lost
    )
    style = RED if exit_code != 0 and (ended or is_lost) else PLAIN
    began = clock(started, zone) if started else "-"
    return [
        Segment(f"{whole(attempt, 'number') or position:>7}  "),
        Segment(fit(text(attempt, "node") or "-", cells) + "  "),
        Segment(f"{began:<8}  {took:>6}  ", DIM),
        Segment(f"{end:<12}  ", style),
        Segment(attempt_reason(text(attempt, "cause")), DIM),
        Segment(f"  {error}" if error else "", RED),
    ]


def _contest(board: Board, task: TaskRow, width: int, zone: tzinfo | None) -> list[Line]:
    """Return how its latest contest went, if this node held one and remembers it."""
    row = board.contests.of_task(task.id)
    if row is None:
        return []
    return [*heading(f"its latest contest, at {clock(row.at, zone)}"), *contest_story(row, width)]


def _output(task: TaskRow, width: int) -> list[Line]:
    result = mapping(task.source.get("result"))
    lines: list[Line] = []
    for key, name in _TAILS.items():
        tail = prose(result, key)
        if tail:
            lines += heading(f"the last of its {name}")
            for piece in tail:
                lines += paragraph(piece, width)
    hint = _where_output_is(task, result)
    return [*lines, [Segment(hint, DIM)]] if hint else lines


def _where_output_is(task: TaskRow, result: Json) -> str:
    """Return how to see what the page does not show of the output, "" when there is nothing to see."""
    if task.state == "running":
        return f"mesh task {task.id} --output follows what it writes"
    total = whole(result, "output_bytes")
    if not total:
        return ""
    if sum(_bytes_least(result.get(key)) for key in _TAILS) >= total:
        return f"{total} bytes, all shown"
    return f"{total} bytes in all; mesh task {task.id} --output shows more"


def _bytes_least(tail: object) -> int:
    """Return how many bytes this is the text of, at least: what was no text may have been one byte or more."""
    if not isinstance(tail, str):
        return 0
    return len(tail) if "\ufffd" in tail else len(tail.encode("utf-8", "replace"))


def _wants(source: Json) -> str:
    return clean(
        wants_text(
            {
                "pool": text(source, "pool"),
                "class": text(source, "class"),
                "labels": mapping(source.get("labels")),
                "needs": mapping(source.get("needs")),
            }
        )
    )


def _pairs(task: TaskRow, zone: tzinfo | None) -> list[tuple[str, Line]]:
    source = task.source
    retries = whole(source, "retries_left")

    def at(moment: float | None) -> Line:
        return plain(clock(moment, zone) if moment else "-")

    return [
        ("queue", plain(task.queue)),
        ("key", plain(text(source, "key"))),
        ("asks for", plain(_wants(source) or "-")),
        ("origin", plain(task.origin)),
        ("home", plain(text(source, "home"))),
        ("retry of", plain(text(source, "retry_of") or "-")),
        ("created", at(task.created)),
        ("not before", at(number(source, "not_before"))),
        ("started", at(task.started)),
        ("ended", at(task.ended)),
        ("attempts", plain(task.attempt)),
        ("may retry", plain(None if retries is None else f"{retries} more")),
    ]
