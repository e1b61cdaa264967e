"""The contests: how they go on the whole, what to do where they go badly, and the latest of them.

    1.18 bids/contest ▃▃▆▃▃   91% in first window   window 4.2ms   118 of 120 won
    WHEN     TASK         ATTEMPT  CALLED    BIDS, DECLINES    WINNER     AFTER
    08:00:01 k3j5m7p9q0r1       1  3: n1 …   n2 0.81, n3 busy  ✓ n2        5.2ms

Only the voter that calls for a task's contest knows how it went; so these are the node's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import cached_property
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from mesh.contest.window import BIDS_MAX, BIDS_MIN, SUCCESS_MAX, SUCCESS_MIN
from mesh.tasks.contest_words import parts_text
from mesh.tui.board import Board
from mesh.tui.cells import Line, fit, fit_middle, line_width, milliseconds
from mesh.tui.columns import Column, lay_out
from mesh.tui.contest_rows import LATEST_MAX, ContestRow, Contests, Word
from mesh.tui.events_pane import clock
from mesh.tui.filters import CONTEST_FIELDS, CONTEST_WORDS, matching, slip
from mesh.tui.history import spark
from mesh.tui.orders import CONTEST_ORDERS
from mesh.tui.pages import paragraph
from mesh.tui.palette import (
    BOLD,
    CONTEST_MARKS,
    CYAN,
    DIM,
    GREEN,
    PLAIN,
    UNKNOWN,
    YELLOW,
)
from mesh.tui.pane import Stance, count_note, fill, list_lines
from mesh.tui.spots import Spot

_NONE: Final = "no contest held here yet; mesh queue set NAME --strategy contest makes them"
_NONE_AT_LENGTH: Final = (
    f"{_NONE}, and so does any task whose home is busy or gone while others could take it"
)
_UNTOLD: Final = "this node does not tell of contests: its version is older than this screen's"
_NAME_CELLS_MIN: Final = 4
_SPARK_CELLS_MIN: Final = 5
_SPARK_FULL: Final = 4.0
"""So many bids fill the sparkline: as many as are called first."""


@dataclass(frozen=True)
class ContestsPane:
    """The contests that the filter leaves, sorted, under how they go on the whole.

    Attributes:
        width: the cells of a line, from which follows how many the advice takes.
    """

    board: Board
    stance: Stance = field(default_factory=Stance)
    zone: tzinfo | None = None
    width: int = 76

    @property
    def title(self) -> str:
        """The pane's name."""
        return "contests"

    @property
    def is_rolling(self) -> bool:
        """The newest stands on top, unless they are sorted otherwise."""
        return not self.stance.sorting.order and not self.stance.sorting.is_reversed

    @cached_property
    def rows(self) -> Sequence[ContestRow]:
        """The contests as they stand."""
        order = CONTEST_ORDERS[self.stance.sorting.order]
        rows = matching(self.board.contests.rows, CONTEST_FIELDS, self.stance.filter)
        return order.arrange(rows, self.board.at, is_reversed=self.stance.sorting.is_reversed)

    @cached_property
    def keys(self) -> Sequence[str]:
        """Their keys."""
        return [row.key for row in self.rows]

    @property
    def lines_wanted(self) -> int:
        """How many lines show all of it."""
        return len(self._top) + (len(self.rows) + 1 if self.rows else 1)

    def note(self, height: int) -> str:
        """Return which of the contests are shown, and whose they are: a node knows its own alone."""
        held, page = len(self.board.contests.rows), self.page(height)
        note = count_note(held, len(self.rows), page, self.stance, self._spot(page))
        return f"{note} held here" if note and not self.stance.filter else note

    def page(self, height: int) -> int:
        """Return how many contests fit."""
        return max(0, height - len(self._top) - 1)

    def render(self, width: int, height: int) -> list[Line]:
        """Draw how they go, the advice, the titles and the contests."""
        contests = self.board.contests
        if not self.rows:
            wrong = slip(self.stance.filter, CONTEST_FIELDS, CONTEST_WORDS)
            text = (wrong or "no contest matches") if contests.rows else self._why_none(width)
            return fill([*self._top, *paragraph(text, width, DIM)], width, height)
        layout = lay_out(_columns(self.zone), self.rows, width)
        sorting = self.stance.sorting
        order = CONTEST_ORDERS[sorting.order]
        arrow = order.arrow(is_reversed=sorting.is_reversed)
        top = [*self._top, layout.titles(order.column, arrow)]
        rows = list_lines(
            self.rows,
            layout.row,
            (width, height - len(top)),
            self._spot(self.page(height)),
            has_cursor=self.stance.has_cursor,
        )
        return fill([*top, *rows], width, height)

    @cached_property
    def _top(self) -> list[Line]:
        contests = self.board.contests
        if not contests.held and not contests.rows:
            return []
        advice = paragraph(contests.advice, self.width, YELLOW) if contests.advice else []
        return [head_line(contests, self.width), *advice]

    def _why_none(self, width: int) -> str:
        if not self.board.contests.is_told:
            return _UNTOLD if self.board.node else ""
        return _NONE_AT_LENGTH if cell_len(_NONE_AT_LENGTH) <= width else _NONE

    def _spot(self, page: int) -> Spot:
        return self.stance.spot.settled(self.keys, page, is_rolling=self.is_rolling)


def head_line(contests: Contests, width: int) -> Line:
    """Return how the contests go: green is as it should be, and an arrow says what is too high or too low."""
    bids = _figure(contests.bids_mean, (BIDS_MIN, BIDS_MAX), "{:.2f}".format)
    success = _figure(contests.success, (SUCCESS_MIN, SUCCESS_MAX), "{:.0%}".format)
    line = [bids, Segment(" bids/contest", DIM)]
    rest = [Segment("  "), success, Segment(" in first window", DIM)]
    factor = contests.factor
    more = [
        [Segment("  window ", DIM), Segment(milliseconds(contests.window_ms))],
        [Segment(f"  {contests.won} of {contests.held} won", DIM)],
        [Segment("" if factor is None else f"  window factor {factor:.2f}", DIM)],
    ]
    for piece in more:
        spare = LATEST_MAX if piece is more[-1] else 0  # the sparkline goes before the factor
        if line_width([*line, *rest, *piece]) + spare > width:
            break
        rest += piece
    counts = [float(len(row.bids)) for row in contests.rows if not row.is_under_way][::-1]
    cells = min(width - line_width([*line, *rest]) - 1, len(counts))
    if cells >= min(_SPARK_CELLS_MIN, len(counts)) > 0:
        (picture,) = spark([*counts[-cells:]], 1, _SPARK_FULL)
        line += [Segment(" "), Segment(picture, CYAN)]
    return [*line, *rest]


def _figure(
    value: float | None, bounds: tuple[float, float], write: Callable[[float], str]
) -> Segment:
    """Return a figure, marked where it is out of its bounds (inclusive), without a colour too."""
    if value is None:
        return Segment("-", DIM)
    least, most = bounds
    if least <= value <= most:
        return Segment(write(value), GREEN)
    return Segment(f"{write(value)}{'▼' if value < least else '▲'}", YELLOW)


def winner_text(row: ContestRow) -> str:
    """Return who has the task, or that nobody has, or nobody yet."""
    return "open" if row.outcome == "open" else row.winner or "nobody"


def round_text(row: ContestRow) -> str:
    """Return ` round 2` of a contest that was granted later than in its first round, else ""."""
    return f" round {row.rounds}" if row.outcome == "late" else ""


def outcome_style(row: ContestRow) -> Style:
    """Return the colour of what came of it; plain where all went as it should."""
    return CONTEST_MARKS[row.outcome].style if row.outcome in {"nobody", "late"} else PLAIN


def _columns(zone: tzinfo | None) -> list[Column[ContestRow]]:
    return [
        Column(
            title="WHEN", cell=lambda c, _: [Segment(clock(c.at, zone), DIM)], width_min=8, rank=1
        ),
        Column(
            title="TASK, ATTEMPT",
            cell=_task,
            text=lambda c: f"{c.task_id} {c.attempt}",
            width_min=14,
            width_max=24,
        ),
        Column(title="CALLED", cell=_called, text=_called_text, width_min=8, width_max=48, rank=4),
        Column(
            title="BIDS, DECLINES",
            cell=lambda c, _: _said(c),
            text=lambda c: ", ".join(map(_word_text, c.said)),
            width_min=22,
            width_max=120,
            rank=2,
        ),
        Column(
            title="WINNER",
            cell=_winner,
            text=lambda c: f"x {winner_text(c)}{round_text(c)}",
            width_min=8,
            width_max=24,
            grows_first=True,
        ),
        Column(title="AFTER", cell=_granted, width_min=6, rank=3, align="right"),
        Column(title="WINDOW", cell=_window, width_min=6, rank=5, align="right", is_extra=True),
        Column(
            title="GROUNDS OF THE WINNER'S BID",
            cell=lambda c, _: [Segment(_grounds(c), DIM)],
            text=_grounds,
            width_min=27,
            width_max=200,
            rank=6,
            is_extra=True,
        ),
    ]


def _task(row: ContestRow, width: int) -> Line:
    attempt = f" {'-' if row.attempt is None else row.attempt}"
    style = YELLOW if (row.attempt or 0) > 1 else DIM
    cells = min(cell_len(row.task_id), max(0, width - len(attempt)))
    return [Segment(fit_middle(row.task_id, cells), outcome_style(row)), Segment(attempt, style)]


def _called_text(row: ContestRow) -> str:
    return f"{len(row.called)}: {' '.join(name for name, _ in row.called)}"


def _called(row: ContestRow, width: int) -> Line:
    return [Segment(fit(_called_text(row), width), DIM)]


def _word_text(word: Word) -> str:
    return f"{word.member} {word.declined if word.score is None else f'{word.score:.2f}'}"


def _said(row: ContestRow) -> Line:
    """Draw the words in the order in which they were spoken; the winner's bid stands out."""
    line: Line = []
    for word in row.said:
        style = DIM if word.score is None else PLAIN
        if word.score is not None and word.member == row.winner:
            style = BOLD
        line += [Segment(", " if line else "", DIM), Segment(_word_text(word), style)]
    return line or [Segment("-", DIM)]


def _winner(row: ContestRow, width: int) -> Line:
    """Draw the mark, the name and the round; the name gives way, and the round where nothing would be left of it."""
    mark = CONTEST_MARKS.get(row.outcome, UNKNOWN)
    name, later = winner_text(row), round_text(row)
    room = width - 2 - len(later)
    if room < min(_NAME_CELLS_MIN, cell_len(name)):
        room, later = width - 2, ""
    shown = fit_middle(name, max(0, min(room, cell_len(name))))
    return [Segment(f"{mark.symbol} ", mark.style), Segment(f"{shown}{later}", outcome_style(row))]


def _granted(row: ContestRow, width: int) -> Line:
    """How long after the call the grant was seen."""
    return [Segment(fit(milliseconds(row.after_ms), width, "right"), outcome_style(row))]


def _window(row: ContestRow, width: int) -> Line:
    return [Segment(fit(milliseconds(row.window_ms), width, "right"), DIM)]


def _grounds(row: ContestRow) -> str:
    """Return what the winner's score is made of, "" where it was not heard to bid."""
    bid = next((word for word in row.bids if word.member == row.winner), None)
    return parts_text(dict(bid.parts)) if bid else ""
