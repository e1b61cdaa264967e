"""The events: when, and who saw what; the newest on top."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo

from rich.segment import Segment

from mesh.tui.board import Board
from mesh.tui.cells import Line
from mesh.tui.palette import DIM, EVENT_MARKS, PLAIN, RED, TASK_MARKS, UNKNOWN, Mark
from mesh.tui.pane import fill, list_lines, position
from mesh.tui.rows import EventRow
from mesh.tui.sentences import sentence


@dataclass(frozen=True, slots=True)
class EventsPane:
    """A window on the events from `offset` on; times are shown in `zone` (None: this host's)."""

    board: Board
    offset: int = 0
    zone: tzinfo | None = None

    @property
    def title(self) -> str:
        """The pane's name."""
        return "events"

    @property
    def total(self) -> int:
        """How many events are held."""
        return len(self.board.events)

    def note(self, height: int) -> str:
        """Return which of the events are shown."""
        return position(self.total, self.page(height), self.offset)

    def page(self, height: int) -> int:
        """Return how many events fit."""
        return max(0, height)

    def render(self, width: int, height: int) -> list[Line]:
        """Draw the events."""
        if not self.board.events:
            return fill([[Segment("nothing has happened yet", DIM)]], width, height)
        return list_lines(list(self.board.events), self._line, (width, height), self.offset)

    def _line(self, event: EventRow) -> Line:
        mark = _mark(event)
        words, more = sentence(event)
        return [
            Segment(clock(event.at, self.zone) + " ", DIM),
            Segment(mark.symbol + " ", mark.style),
            Segment(words, RED if event.kind in {"dead", "conflict"} else PLAIN),
            Segment(f"  {more}" if more else "", DIM),
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
