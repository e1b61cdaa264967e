"""The events: when, and who saw what; the newest on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import cached_property

from rich.segment import Segment

from mesh.tui.board import Board
from mesh.tui.cells import Line
from mesh.tui.filters import EVENT_FIELDS, EVENT_WORDS, matching, slip
from mesh.tui.palette import DIM, EVENT_MARKS, PLAIN, RED, TASK_MARKS, UNKNOWN, Mark
from mesh.tui.pane import Stance, count_note, fill, list_lines
from mesh.tui.rows import EventRow
from mesh.tui.sentences import sentence
from mesh.tui.spots import Spot


@dataclass(frozen=True)
class EventsPane:
    """A window on the events; times are shown in `zone` (None: this host's)."""

    board: Board
    stance: Stance = field(default_factory=Stance)
    zone: tzinfo | None = None

    @property
    def title(self) -> str:
        """The pane's name."""
        return "events"

    @property
    def is_rolling(self) -> bool:
        """The newest stands on top."""
        return True

    @cached_property
    def rows(self) -> Sequence[EventRow]:
        """The events that the filter leaves, the newest first."""
        return matching(list(self.board.events), EVENT_FIELDS, self.stance.filter)

    @cached_property
    def keys(self) -> Sequence[str]:
        """Their keys."""
        return [event.key for event in self.rows]

    def note(self, height: int) -> str:
        """Return which of the events are shown."""
        held, page = len(self.board.events), self.page(height)
        return count_note(held, len(self.rows), page, self.stance, self._spot(page))

    def page(self, height: int) -> int:
        """Return how many events fit."""
        return max(0, height)

    def render(self, width: int, height: int) -> list[Line]:
        """Draw the events."""
        if not self.rows:
            wrong = slip(self.stance.filter, EVENT_FIELDS, EVENT_WORDS)
            text = (
                (wrong or "no event matches") if self.board.events else "nothing has happened yet"
            )
            return fill([[Segment(text, DIM)]], width, height)
        return list_lines(
            self.rows,
            lambda event: event_line(event, self.zone),
            (width, height),
            self._spot(self.page(height)),
            has_cursor=self.stance.has_cursor,
        )

    def _spot(self, page: int) -> Spot:
        return self.stance.spot.settled(self.keys, page, is_rolling=self.is_rolling)


def event_line(event: EventRow, zone: tzinfo | None, *, is_full: bool = True) -> Line:
    """Return when, who saw what, and (unless not `is_full`) the most that is known about it."""
    mark = _mark(event)
    words, more = sentence(event)
    return [
        Segment(clock(event.at, zone) + " ", DIM),
        Segment(mark.symbol + " ", mark.style),
        Segment(words, RED if event.kind in {"dead", "conflict"} else PLAIN),
        Segment(f"  {more}" if more and is_full else "", DIM),
    ]


def clock(at: float, zone: tzinfo | None) -> str:
    """Return the time of day of a unix time, as 12:04:31; dashes when it is out of range."""
    try:
        return datetime.fromtimestamp(at, zone).strftime("%H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return "--:--:--"


def _mark(event: EventRow) -> Mark:
    if event.kind == "task":
        return TASK_MARKS.get(event.state, UNKNOWN)
    return EVENT_MARKS.get(event.kind, UNKNOWN)
