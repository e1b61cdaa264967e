"""The page of details of a row: a member's, a task's, a contest's, or that of the one an event is about."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

from rich.segment import Segment

from mesh.tui.board import Board
from mesh.tui.cells import Line
from mesh.tui.contest_page import contest_page
from mesh.tui.look import CONTESTS, MEMBERS, TASKS
from mesh.tui.member_page import is_about, member_page
from mesh.tui.pages import happenings, heading, paragraph
from mesh.tui.palette import DIM
from mesh.tui.rows import EventRow
from mesh.tui.task_page import task_page


@dataclass(frozen=True, slots=True)
class Details:
    """A title and lines."""

    title: str
    lines: list[Line]

    @classmethod
    def open(cls, board: Board, pane: int, key: str, width: int, zone: tzinfo | None) -> Details:
        """Return the page of the row `key` of a pane; one that has gone meanwhile leaves a page that says so."""
        if pane == MEMBERS:
            return _member(board, key, width, zone)
        if pane == TASKS:
            return _task(board, key, width, zone)
        if pane == CONTESTS:
            return _contest(board, key, width, zone)
        event = next((event for event in board.events if event.key == key), None)
        return _event(board, event, width, zone) if event else _gone("event", "this event")


def _member(board: Board, key: str, width: int, zone: tzinfo | None) -> Details:
    member = next((member for member in board.members if member.key == key), None)
    if member is None:
        return _lost(board, key, width, zone)
    return Details(f"member {member.name}", member_page(board, member, width, zone))


def _lost(board: Board, key: str, width: int, zone: tzinfo | None) -> Details:
    """Show what is left of a member that is not listed any more, as one that was forgotten: its events."""
    page = _gone("member", "this member")
    events = [event for event in board.events if event.member_id == key]
    if not events:
        return page
    lines = [*page.lines, *heading("what happened to it"), *happenings(events, width, zone)]
    return Details(f"member {events[0].member}", lines)


def _task(board: Board, key: str, width: int, zone: tzinfo | None) -> Details:
    task = next((task for task in board.tasks if task.key == key), None)
    if task is None:
        return _gone("task", f"task {key}")
    return Details(f"task {task.id}", task_page(board, task, width, zone))


def _contest(board: Board, key: str, width: int, zone: tzinfo | None) -> Details:
    row = next((row for row in board.contests.rows if row.key == key), None)
    if row is None:
        return _gone("contest", "this contest")
    return Details(f"contest for {row.task_id}", contest_page(board, row, width, zone))


def _event(board: Board, event: EventRow, width: int, zone: tzinfo | None) -> Details:
    """Show the event with all its evidence, and below it what it is about."""
    lines = happenings([event], width, zone)
    if event.detail:
        lines += paragraph(event.detail, width, DIM, indent=" " * 11)
    member = next((member for member in board.members if is_about(event, member)), None)
    task = next((task for task in board.tasks if task.id == event.task_id), None)
    if task is not None:
        lines += [[], *task_page(board, task, width, zone)]
    elif member is not None:
        lines += [[], *member_page(board, member, width, zone)]
    return Details("event", lines)


def _gone(title: str, what: str) -> Details:
    return Details(title, [[Segment(f"this node does not know {what} any more", DIM)]])
