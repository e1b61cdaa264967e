"""The members: who is there, how each one is, since when, and what it can take on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from mesh.core.load import format_load
from mesh.core.time import format_duration
from mesh.tui.board import Board
from mesh.tui.cells import Line, fit, fit_middle, line_width, milliseconds
from mesh.tui.columns import Column, Layout, lay_out
from mesh.tui.filters import MEMBER_FIELDS, MEMBER_WORDS, matching, slip
from mesh.tui.orders import MEMBER_ORDERS
from mesh.tui.palette import (
    BOLD,
    BUSIEST,
    DIM,
    GREEN,
    MEMBER_MARKS,
    PLAIN,
    UNKNOWN,
    YELLOW,
    bar,
    load_style,
)
from mesh.tui.pane import Stance, count_note, fill, list_lines
from mesh.tui.rows import MemberRow
from mesh.tui.sentences import accusation, reason
from mesh.tui.spots import Spot

_BAR_CELLS: Final = 4
_SLOT_CELLS_MAX: Final = 8
_SELF: Final = " (me)"
_BUSIEST: Final = f" {BUSIEST.symbol} busiest"


@dataclass(frozen=True)
class MembersPane:
    """The members that the filter leaves, sorted, seen through a window."""

    board: Board
    stance: Stance = field(default_factory=Stance)

    @property
    def title(self) -> str:
        """The pane's name."""
        return "members"

    @property
    def is_rolling(self) -> bool:
        """Members keep their places."""
        return False

    @cached_property
    def rows(self) -> Sequence[MemberRow]:
        """The members as they stand."""
        order = MEMBER_ORDERS[self.stance.sorting.order]
        rows = matching(self.board.members, MEMBER_FIELDS, self.stance.filter)
        return order.arrange(rows, self.board.at, is_reversed=self.stance.sorting.is_reversed)

    @cached_property
    def keys(self) -> Sequence[str]:
        """Their keys."""
        return [member.key for member in self.rows]

    def note(self, height: int) -> str:
        """Return the number of members, and which of them are shown."""
        held, page = len(self.board.members), self.page(height)
        return count_note(held, len(self.rows), page, self.stance, self._spot(page)) or "0"

    def page(self, height: int) -> int:
        """Return how many members fit."""
        return max(0, height - 1)

    def render(self, width: int, height: int) -> list[Line]:
        """Draw the titles and the members."""
        layout = lay_out(_columns(self.board), self.rows, width)
        sorting = self.stance.sorting
        order = MEMBER_ORDERS[sorting.order]
        arrow = order.arrow(is_reversed=sorting.is_reversed)
        rows = list_lines(
            self.rows,
            lambda member: self._row(layout, member),
            (width, height - 1),
            self._spot(self.page(height)),
            has_cursor=self.stance.has_cursor,
        )
        if not self.rows and rows:
            wrong = slip(self.stance.filter, MEMBER_FIELDS, MEMBER_WORDS)
            text = (wrong or "no member matches") if self.board.members else "no members yet"
            rows[0] = [Segment(text, DIM)]
        return fill([layout.titles(order.column, arrow), *rows], width, height)

    def _spot(self, page: int) -> Spot:
        return self.stance.spot.settled(self.keys, page, is_rolling=self.is_rolling)

    def _row(self, layout: Layout[MemberRow], member: MemberRow) -> Line:
        """Draw a member; why one is suspected or dead stands where the vitals of the living stand."""
        if member.is_living and member.state != "suspect":
            return layout.row(member)
        verdict = self.board.verdict(member)
        evidence = verdict.evidence if verdict else ()
        text = reason(member.state, member.cause, evidence)
        if member.suspected_by and member.state == "suspect":
            return layout.row_until(member, "FOR", _accusation(member, evidence))
        if evidence and cell_len(text) > layout.room_after("FOR"):
            text = "; ".join(evidence)  # the state beside it says the rest
        style = MEMBER_MARKS.get(member.state, UNKNOWN).style
        return layout.row_until(member, "FOR", [Segment(text, style)])


def _accusation(member: MemberRow, evidence: Sequence[str]) -> Line:
    """Draw who accuses a suspect, and why as far as there is room."""
    said = accusation(member.suspected_by)
    known = [piece for piece in evidence if piece != f"suspected by {member.suspected_by[0]}"]
    style = MEMBER_MARKS["suspect"].style
    return [Segment(said, style), Segment(f": {'; '.join(known)}" if known else "", DIM)]


def _columns(board: Board) -> list[Column[MemberRow]]:
    """Return the columns, in the order in which they stand; ages are counted to the board's time."""
    at = board.at
    return [
        Column(
            title="NAME",
            cell=lambda m, width: _name(m, width, is_busiest=board.is_busiest(m)),
            text=lambda m: _name_text(m, is_busiest=board.is_busiest(m)),
            width_min=11,
            width_max=40,
        ),
        Column(
            title="STATE",
            cell=_state,
            text=_state_text,
            width_min=9,
            width_max=16,
            grows_first=True,
        ),
        Column(
            title="FOR",
            cell=lambda m, width: _for(m, width, at),
            width_min=6,
            rank=1,
            align="right",
        ),
        _words("ADDRESS", lambda m: m.address, (14, 47), cut=fit_middle),
        Column(title="RTT", cell=_rtt, width_min=6, rank=3, align="right"),
        Column(title="SLOTS", cell=_slots, text=_slots_text, width_min=8, width_max=16, rank=2),
        Column(title="LOAD", cell=_load, width_min=_BAR_CELLS + 6, width_max=14, rank=4),
        _words("CLASS", lambda m: m.class_, (9, 32), rank=5),
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
        is_extra=rank > 0,
    )


def _tone(member: MemberRow) -> Style:
    return PLAIN if member.is_living else DIM


def _name_text(member: MemberRow, *, is_busiest: bool) -> str:
    return member.name + (_SELF if member.is_self else "") + (_BUSIEST if is_busiest else "")


def _name(member: MemberRow, width: int, *, is_busiest: bool) -> Line:
    """Draw the name and what is special about it; the name gives way, and "busiest" leaves its mark."""
    marks: Line = [Segment(_SELF, DIM)] if member.is_self else []
    if is_busiest:
        room = width - cell_len(member.name) - (len(_SELF) if member.is_self else 0)
        text = _BUSIEST if room >= len(_BUSIEST) else _BUSIEST[:2]
        marks.append(Segment(text, BUSIEST.style))
    name = fit_middle(member.name, min(width - line_width(marks), cell_len(member.name)))
    return [Segment(name, BOLD if member.is_self else _tone(member)), *marks]


def _state_text(member: MemberRow) -> str:
    return f"x {member.state} {_aside(member)}".rstrip()


def _aside(member: MemberRow) -> str:
    """Return what to know beside its state: why it is dead, or takes no work."""
    return member.cause or (member.closed if member.is_living else "")


def _state(member: MemberRow, _width: int) -> Line:
    mark = MEMBER_MARKS.get(member.state, UNKNOWN)
    line = [Segment(f"{mark.symbol} {member.state}", mark.style)]
    if aside := _aside(member):
        line.append(Segment(f" {aside}", DIM))
    return line


def _for(member: MemberRow, width: int, at: float) -> Line:
    text = format_duration(at - member.since) if member.since else "-"
    return [Segment(fit(text, width, "right"), _tone(member))]


def _rtt(member: MemberRow, width: int) -> Line:
    if member.is_self or not member.is_living:
        return [Segment(fit("-", width, "right"), DIM)]
    return [Segment(fit(milliseconds(member.rtt_ms), width, "right"), _tone(member))]


def _slots_text(member: MemberRow) -> str:
    slots = member.slots or 0
    return "#" * min(slots, _SLOT_CELLS_MAX) + f" {slots}/{slots}"


def _slots(member: MemberRow, width: int) -> Line:
    if not member.slots or not member.is_living:
        return [Segment("-", DIM)]
    if member.used is None:
        return [Segment(f"?/{member.slots}", DIM)]
    text = f" {member.used}/{member.slots}"
    cells = max(0, min(member.slots, width - len(text), _SLOT_CELLS_MAX))
    style = GREEN if member.used < member.slots else YELLOW
    return [Segment(bar(member.used, member.slots, cells), style), Segment(text)]


def _load(member: MemberRow, width: int) -> Line:
    if member.load is None or not member.is_living:
        return [Segment("-", DIM)]
    cells = width - 6
    return [
        Segment(bar(member.load, 1.0, cells), load_style(member.load)),
        Segment(fit(format_load(member.load), 6, "right")),
    ]
