"""The help: what the keys do and what the signs mean."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from rich.segment import Segment

from mesh.tui.cells import Line, fit, fit_line
from mesh.tui.palette import (
    BOLD,
    BUSIEST,
    COLUMN,
    GREEN,
    HEALTH_MAX,
    HEALTH_OVERLOADED,
    KEY,
    MEMBER_MARKS,
    RED_BOLD,
    TASK_MARKS,
    YELLOW,
    Mark,
)

_QUIT: Final = (("q  Ctrl-C", "quit; the node stays"),)
_QUIT_JOINED: Final = (
    ("q", "close; the node stays a member"),
    ("Ctrl-C", "leave the mesh: end the node"),
)
_KEYS: Final = (
    ("1-4  tab", "panes; 4: the contests"),
    ("z", "one pane on the whole screen"),
    ("↑ ↓  j k", "move the cursor, scroll"),
    ("PgUp PgDn", "scroll by a page"),
    ("g G", "to the top, to the end"),
    ("enter", "open: why, attempts, output"),
    ("← →", "there: the row before, after"),
    ("esc", "back; clear the filter"),
    ("/", "only rows with: word state:dead"),
    ("s S", "sort by next column; reverse"),
    ("p  space", "freeze the picture, and go on"),
    ("?", "this page; any key closes it"),
)

_COLUMNS: Final = (
    ("LOAD", "minute's load average, per CPU"),
    ("TIME", "how long it waits, runs, or ran"),
    ("BIDS ▲ ▼", "not 1.1-1.3; grants not 85-95%"),
)

_MEMBERS: Final = (
    ("alive", "answers"),
    ("suspect", "may still refute"),
    ("dead", "silent·crashed·ended"),
    ("left", "said goodbye"),
)

_TASKS: Final = (
    ("scheduled", "not due yet"),
    ("ready", "waits for a slot"),
    ("running", f"see NODE; {TASK_MARKS['lost'].symbol} was lost"),
    ("done", "ended well"),
    ("failed", "see EXIT, or open it"),
    ("cancelled", "called off"),
)

_HEALTH: Final = (
    ("healthy", GREEN, "0: keeps its time"),
    ("strained", YELLOW, f"1-{HEALTH_OVERLOADED - 1}: it is late"),
    ("overloaded", RED_BOLD, f"{HEALTH_OVERLOADED}-{HEALTH_MAX}: far too late"),
)

_LEFT_CELLS: Final = 44


@dataclass(frozen=True, slots=True)
class HelpPane:
    """One page, in two columns where they fit."""

    is_joined: bool = False

    def lines(self, width: int) -> list[Line]:
        """Return all its lines."""
        keys: list[Line] = [
            [Segment(fit(keys, 12), KEY), Segment(meaning)]
            for keys, meaning in (*(_QUIT_JOINED if self.is_joined else _QUIT), *_KEYS)
        ]
        keys.append([])
        keys += [[Segment(fit(title, 12), COLUMN), Segment(text)] for title, text in _COLUMNS]
        signs: list[Line] = [[Segment("members", BOLD)]]
        signs += [_legend(MEMBER_MARKS[state], state, meaning) for state, meaning in _MEMBERS]
        signs += [_legend(BUSIEST, "busiest", "by slots or load")]
        signs += [[Segment("tasks", BOLD)]]
        signs += [_legend(TASK_MARKS[state], state, meaning) for state, meaning in _TASKS]
        signs += [[], [Segment(f"this node: 0 is best, {HEALTH_MAX} worst", BOLD)]]
        signs += [
            [Segment(fit(word, 12), style), Segment(meaning)] for word, style, meaning in _HEALTH
        ]
        if width < _LEFT_CELLS + 30:
            return [*keys, [], *signs]
        return [
            [*fit_line(left, _LEFT_CELLS), *right]
            for left, right in zip_longest(keys, signs, fillvalue=list[Segment]())
        ]


def _legend(mark: Mark, state: str, meaning: str) -> Line:
    return [Segment(fit(f"{mark.symbol} {state}", 12), mark.style), Segment(meaning)]
