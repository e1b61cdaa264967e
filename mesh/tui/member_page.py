"""A member's page: how it is and why, what it declared, what runs there, and what happened to it."""

from __future__ import annotations

from datetime import tzinfo
from typing import Final

from rich.segment import Segment

from mesh.core.load import format_load
from mesh.core.time import format_duration
from mesh.tui.board import Board
from mesh.tui.cells import Line, milliseconds
from mesh.tui.events_pane import clock
from mesh.tui.pages import facts, happenings, heading, paragraph, plain
from mesh.tui.palette import (
    BOLD,
    BUSIEST,
    DIM,
    GREEN,
    MEMBER_MARKS,
    TASK_MARKS,
    UNKNOWN,
    YELLOW,
    bar,
    load_style,
)
from mesh.tui.reading import mapping, text, whole
from mesh.tui.rows import EventRow, MemberRow
from mesh.tui.sentences import explanation

_BAR_CELLS: Final = 10
_RUNS_MAX: Final = 20
_VERDICTS: Final = frozenset({"suspect", "dead", "leave", "update"})


def member_page(board: Board, member: MemberRow, width: int, zone: tzinfo | None) -> list[Line]:
    """Return the lines of a member's page."""
    lines = [_state(board, member, zone)]
    if member.state != "alive":
        lines += _why(board, member, width)
    if member.closed and member.is_living:
        why = text(member.source, "availability_why")
        lines += paragraph(f"{member.closed}: {why}" if why else member.closed, width, YELLOW)
    lines += heading("what it is")
    lines += facts(_pairs(board, member), width)
    lines += _runs(board, member)
    lines += heading("what happened to it")
    return [*lines, *happenings(_events(board, member), width, zone)]


def _state(board: Board, member: MemberRow, zone: tzinfo | None) -> Line:
    mark = MEMBER_MARKS.get(member.state, UNKNOWN)
    cause = f" ({member.cause})" if member.cause else ""
    line = [
        Segment(member.name, BOLD),
        Segment("  "),
        Segment(f"{mark.symbol} {member.state}{cause}", mark.style),
    ]
    if member.since:
        age = format_duration(board.at - member.since)
        line.append(Segment(f"  for {age}, since {clock(member.since, zone)}", DIM))
    if member.is_self:
        line.append(Segment("  this node", DIM))
    if board.is_busiest(member):
        line.append(Segment(f"  {BUSIEST.symbol} the busiest", BUSIEST.style))
    return line


def _why(board: Board, member: MemberRow, width: int) -> list[Line]:
    style = MEMBER_MARKS.get(member.state, UNKNOWN).style
    lines = heading("why")
    lines += paragraph(explanation(member.state, member.cause), width, style)
    evidence = _evidence(board, member)
    accusers = member.suspected_by or _accusers(board, member)
    if accusers and not any(piece.startswith("accused by ") for piece in evidence):
        lines += paragraph(f"accused by {', '.join(accusers)}", width, indent="· ")
        evidence = [piece for piece in evidence if piece != f"suspected by {accusers[0]}"]
    for piece in evidence:
        lines += paragraph(piece, width, indent="· ")
    if not evidence:
        lines.append([Segment("this node remembers no evidence of its own", DIM)])
    return lines


def _evidence(board: Board, member: MemberRow) -> list[str]:
    """Return what speaks for the member's state, the latest verdict first, back to when it was well."""
    verdict = board.verdict(member)
    found = list(verdict.evidence) if verdict else []
    for event in _events(board, member):
        if event.kind not in _VERDICTS:
            break
        found += [piece for piece in event.evidence if piece not in found]
    return found


def _accusers(board: Board, member: MemberRow) -> tuple[str, ...]:
    verdict = board.verdict(member)
    return verdict.accusers if verdict else ()


def _pairs(board: Board, member: MemberRow) -> list[tuple[str, Line]]:
    boot = whole(member.source, "boot")
    pid = board.node.pid if board.node and member.is_self else None
    return [
        ("address", plain(member.address)),
        ("rtt", plain("this node" if member.is_self else milliseconds(member.rtt_ms))),
        ("slots", _slots(member)),
        ("load", _load(member)),
        ("version", plain(member.version)),
        ("pool", plain(member.pool)),
        ("class", plain(member.class_)),
        ("node id", plain(member.node_id)),
        ("session", plain(boot)),
        ("incarnation", plain(whole(member.source, "incarnation"))),
        *_labels(member),
        *([] if pid is None else [("process", plain(pid))]),
    ]


def _labels(member: MemberRow) -> list[tuple[str, Line]]:
    count = len(mapping(member.source.get("labels")))
    return [(f"labels ({count})" if count > 1 else "labels", plain(member.labels))]


def _slots(member: MemberRow) -> Line:
    ratio = member.slot_ratio
    if ratio is None:
        return plain(f"? of {member.slots}" if member.slots else "-")
    style = GREEN if ratio < 1 else YELLOW
    return [
        Segment(bar(ratio, 1.0, _BAR_CELLS), style),
        Segment(f" {member.used} of {member.slots} taken"),
    ]


def _load(member: MemberRow) -> Line:
    if member.load is None or not member.is_living:
        return plain(None)
    style = load_style(member.load)
    return [
        Segment(bar(member.load, 1.0, _BAR_CELLS), style),
        Segment(
            f" {format_load(member.load)} (load average: who wanted to run, of all processors)"
        ),
    ]


def _runs(board: Board, member: MemberRow) -> list[Line]:
    runs = [task for task in board.tasks if task.state == "running" and task.owner == member.name]
    if not runs or not member.is_living:
        return []
    lines = heading(f"what runs there ({len(runs)} of the tasks that this node knows)")
    mark = TASK_MARKS["running"]
    for task in runs[:_RUNS_MAX]:
        age = format_duration(board.at - task.started) if task.started else "-"
        lines.append(
            [
                Segment(f"{mark.symbol} {task.id}", mark.style),
                Segment(f"  {age:>6}  {task.command}"),
            ]
        )
    if len(runs) > _RUNS_MAX:
        lines.append([Segment(f"… {len(runs) - _RUNS_MAX} more", DIM)])
    return lines


def _events(board: Board, member: MemberRow) -> list[EventRow]:
    return [event for event in board.events if is_about(event, member)]


def is_about(event: EventRow, member: MemberRow) -> bool:
    """Say whether an event is about this member: by id where it has one, else by name."""
    if event.member_id:
        return event.member_id == member.node_id
    return bool(event.member) and event.member == member.name
