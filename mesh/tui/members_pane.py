"""The members: who is there, how each one is, since when, and what it can take on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from mesh.tui.board import Board
from mesh.tui.cells import Line, duration, fit, fit_middle, milliseconds
from mesh.tui.columns import Column, lay_out
from mesh.tui.palette import BOLD, DIM, GREEN, MEMBER_MARKS, PLAIN, UNKNOWN, YELLOW, bar, load_style
from mesh.tui.pane import fill, list_lines, position
from mesh.tui.rows import MemberRow

_BAR_CELLS: Final = 4
_SLOT_CELLS_MAX: Final = 8
_SELF: Final = " (me)"


@dataclass(frozen=True, slots=True)
class MembersPane:
    """A window on the members from `offset` on."""

    board: Board
    offset: int = 0

    @property
    def title(self) -> str:
        """The pane's name."""
        return "members"

    @property
    def total(self) -> int:
        """How many members are known."""
        return len(self.board.members)

    def note(self, height: int) -> str:
        """Return the number of members, and which of them are shown."""
        return position(self.total, self.page(height), self.offset) or str(self.total)

    def page(self, height: int) -> int:
        """Return how many members fit."""
        return max(0, height - 1)

    def render(self, width: int, height: int) -> list[Line]:
        """Draw the titles and the members."""
        members = self.board.members
        layout = lay_out(_columns(self.board.at), members, width)
        rows = list_lines(members, layout.row, (width, height - 1), self.offset)
        if not members and rows:
            rows[0] = [Segment("no members yet", DIM)]
        return fill([layout.titles(), *rows], width, height)


def _columns(at: float) -> list[Column[MemberRow]]:
    """Return the columns, in the order in which they stand; ages are counted to `at`."""
    return [
        Column(title="NAME", cell=_name, text=_name_text, width_min=10, width_max=32),
        _words("ADDRESS", lambda m: m.address, (14, 47), cut=fit_middle),
        Column(title="STATE", cell=_state, text=_state_text, width_min=13, width_max=16),
        Column(
            title="FOR",
            cell=lambda m, width: _for(m, width, at),
            width_min=6,
            rank=1,
            align="right",
        ),
        Column(title="RTT", cell=_rtt, width_min=6, rank=3, align="right"),
        Column(title="SLOTS", cell=_slots, text=_slots_text, width_min=8, width_max=16, rank=2),
        Column(title="LOAD", cell=_load, width_min=_BAR_CELLS + 5, width_max=13, rank=4),
        _words("CLASS", lambda m: m.class_, (9, 12), rank=5),
        _words("POOL", lambda m: m.pool, (7, 16), rank=6),
        _words("NODE ID", lambda m: m.node_id, (16, 16), rank=8),
        _words("VERSION", lambda m: m.version, (7, 12), rank=9),
        _words("LABELS", lambda m: m.labels, (16, 200), rank=7),
    ]


def _words(
    title: str,
    read: Callable[[MemberRow], str],
    widths: tuple[int, int],
    *,
    rank: int = 0,
    cut: Callable[[str, int], str] = fit,
) -> Column[MemberRow]:
    """Return a column of plain text that grows from the first of `widths` to the second."""
    return Column(
        title=title,
        cell=lambda member, width: [Segment(cut(read(member) or "-", width), _tone(member))],
        text=read,
        width_min=widths[0],
        width_max=widths[1],
        rank=rank,
    )


def _is_there(member: MemberRow) -> bool:
    return member.state in {"alive", "suspect"}


def _tone(member: MemberRow) -> Style:
    return PLAIN if _is_there(member) else DIM


def _name_text(member: MemberRow) -> str:
    return member.name + _SELF if member.is_self else member.name


def _name(member: MemberRow, width: int) -> Line:
    if not member.is_self:
        return [Segment(fit_middle(member.name, width), _tone(member))]
    name = fit_middle(member.name, min(width - len(_SELF), cell_len(member.name)))
    return [Segment(name, BOLD), Segment(_SELF, DIM)]


def _state_text(member: MemberRow) -> str:
    return f"x {member.state} {member.cause}".rstrip()


def _state(member: MemberRow, _width: int) -> Line:
    mark = MEMBER_MARKS.get(member.state, UNKNOWN)
    line = [Segment(f"{mark.symbol} {member.state}", mark.style)]
    if member.cause:
        line.append(Segment(f" {member.cause}", DIM))
    return line


def _for(member: MemberRow, width: int, at: float) -> Line:
    text = duration(at - member.since) if member.since else "-"
    return [Segment(fit(text, width, "right"), _tone(member))]


def _rtt(member: MemberRow, width: int) -> Line:
    if member.is_self or not _is_there(member):
        return [Segment(fit("-", width, "right"), DIM)]
    return [Segment(fit(milliseconds(member.rtt_ms), width, "right"), _tone(member))]


def _slots_text(member: MemberRow) -> str:
    slots = member.slots or 0
    return "#" * min(slots, _SLOT_CELLS_MAX) + f" {slots}/{slots}"


def _slots(member: MemberRow, width: int) -> Line:
    if not member.slots or not _is_there(member):
        return [Segment("-", DIM)]
    if member.used is None:
        return [Segment(f"?/{member.slots}", DIM)]
    text = f" {member.used}/{member.slots}"
    cells = max(0, min(member.slots, width - len(text), _SLOT_CELLS_MAX))
    style = GREEN if member.used < member.slots else YELLOW
    return [Segment(bar(member.used, member.slots, cells), style), Segment(text)]


def _load(member: MemberRow, width: int) -> Line:
    if member.load is None or not _is_there(member):
        return [Segment("-", DIM)]
    cells = width - 5
    return [
        Segment(bar(member.load, 1.0, cells), load_style(member.load)),
        Segment(fit(f"{min(member.load, 99.9):.{1 if member.load >= 9.95 else 2}f}", 5, "right")),
    ]
