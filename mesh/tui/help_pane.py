"""The help: what the keys do and what the signs mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rich.segment import Segment

from mesh.tui.cells import Line, fit
from mesh.tui.palette import BOLD, KEY, MEMBER_MARKS, TASK_MARKS, Mark
from mesh.tui.pane import fill

_KEYS: Final = (
    ("q  Ctrl-C", "quit"),
    ("tab", "give the keys to the next pane"),
    ("↑ ↓  j k", "scroll by a line"),
    ("PgUp PgDn", "scroll by a page"),
    ("g G", "to the top, to the end"),
    ("?", "this page; any key closes it"),
)

_MEMBERS: Final = (
    ("alive", "answers"),
    ("suspect", "did not answer; it may still refute"),
    ("dead", "silent: too long · crashed · ended"),
    ("left", "said goodbye"),
)

_TASKS: Final = (
    ("ready", "waits for a free slot"),
    ("leased", "runs on the node named under ON"),
    ("done", "ended well"),
    ("failed", "ended badly; see EXIT"),
    ("cancelled", "was called off"),
)


@dataclass(frozen=True, slots=True)
class HelpPane:
    """One page, which does not scroll."""

    def render(self, width: int, height: int) -> list[Line]:
        """Draw."""
        lines: list[Line] = [
            [Segment(fit(keys, 13), KEY), Segment(meaning)] for keys, meaning in _KEYS
        ]
        lines += [[], [Segment("members", BOLD)]]
        lines += [_legend(MEMBER_MARKS[state], state, meaning) for state, meaning in _MEMBERS]
        lines += [[], [Segment("tasks", BOLD)]]
        lines += [_legend(TASK_MARKS[state], state, meaning) for state, meaning in _TASKS]
        return fill(lines, width, height)


def _legend(mark: Mark, state: str, meaning: str) -> Line:
    return [Segment(fit(f"{mark.symbol} {state}", 13), mark.style), Segment(meaning)]
