"""How states look: a symbol, a word and a colour each, so that colour never stands alone.

Only the terminal's own sixteen colours are used: the user's theme decides what they are.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rich.style import Style

PLAIN: Final = Style()
BOLD: Final = Style(bold=True)
DIM: Final = Style(dim=True)
TITLE: Final = Style(color="cyan", bold=True)
FRAME: Final = Style(dim=True)
KEY: Final = Style(color="cyan", bold=True)
COLUMN: Final = Style(dim=True, bold=True)
BANNER: Final = Style(color="yellow", reverse=True, bold=True)
CURSOR: Final = Style(reverse=True)
"""Reversed rather than coloured: it shows on light and dark, and without colours."""

GREEN: Final = Style(color="green")
YELLOW: Final = Style(color="yellow")
RED: Final = Style(color="red")
RED_BOLD: Final = Style(color="red", bold=True)
CYAN: Final = Style(color="cyan")
MAGENTA: Final = Style(color="magenta")
BLUE: Final = Style(color="blue")


class Mark(NamedTuple):
    """A state's symbol and colour."""

    symbol: str
    style: Style


MEMBER_MARKS: Final[dict[str, Mark]] = {
    "alive": Mark("●", GREEN),
    "suspect": Mark("◐", Style(color="yellow", bold=True)),
    "dead": Mark("✗", RED_BOLD),
    "left": Mark("○", DIM),
}

TASK_MARKS: Final[dict[str, Mark]] = {
    "scheduled": Mark("◇", BLUE),
    "ready": Mark("◌", YELLOW),
    "running": Mark("▸", CYAN),
    "lost": Mark("◐", RED),
    "done": Mark("✓", GREEN),
    "failed": Mark("✗", RED_BOLD),
    "cancelled": Mark("⊘", MAGENTA),
}

TASK_BLOCKS: Final[dict[str, str]] = {
    "scheduled": "┄",
    "ready": "░",
    "running": "▒",
    "lost": "▚",
    "done": "█",
    "failed": "▓",
    "cancelled": "─",
}
"""What a state's share of the tasks' bar is drawn with: told apart without colour too."""

EVENT_MARKS: Final[dict[str, Mark]] = {
    "found": Mark("◆", CYAN),
    "enter": Mark("◆", CYAN),
    "join": Mark("+", GREEN),
    "return": Mark("●", GREEN),
    "update": Mark("~", CYAN),
    "suspect": MEMBER_MARKS["suspect"],
    "refute": Mark("●", GREEN),
    "dead": MEMBER_MARKS["dead"],
    "leave": MEMBER_MARKS["left"],
    "forget": Mark("✗", DIM),
    "conflict": Mark("!", RED_BOLD),
    "seek": Mark("?", YELLOW),
    "hook": Mark("▸", CYAN),
    "warn": Mark("!", Style(color="yellow", bold=True)),
}

CONTEST_MARKS: Final[dict[str, Mark]] = {
    "open": Mark("▸", CYAN),
    "granted": Mark("✓", GREEN),
    "late": Mark("◐", YELLOW),
    "nobody": Mark("✗", RED),
}
"""How a contest ended."""

BUSIEST: Final = Mark("▲", Style(color="magenta", bold=True))

UNKNOWN: Final = Mark("·", PLAIN)

ASCII: Final = str.maketrans(
    {
        **dict.fromkeys("╭╮╰╯├┤┬┴┼", "+"),
        "─": "-",
        "│": "|",
        "▮": "#",
        "▯": ".",
        "█": "#",
        "▓": "%",
        "▒": "=",
        "░": ":",
        "▚": "&",
        "…": "~",
        "·": ".",
        "●": "*",
        "◐": "?",
        "✗": "x",
        "○": "o",
        "◌": "o",
        "◇": ".",
        "┄": ",",
        "▸": ">",
        "✓": "+",
        "⊘": "/",
        "◆": "*",
        "↑": "^",
        "↓": "v",
        "←": "<",
        "→": ">",
        "▏": "|",
        "▲": "^",
        "▼": "v",
        **dict(zip("▁▂▃▄▅▆▇", "_.-~=+*", strict=True)),
    }
)
"""Our own signs for a terminal that is not UTF-8; each takes one cell, as the sign does."""


def bar(filled: float, total: float, width: int) -> str:
    """Return `width` cells of which the share `filled / total` is full; any share above 0 shows."""
    share = min(max(filled / total, 0.0), 1.0) if total > 0 else 0.0
    full = min(width, int(share * width + 0.5))
    if filled > 0 and width > 0:
        full = max(full, 1)
    return "▮" * full + "▯" * (width - full)


def load_style(load: float) -> Style:
    """Return the colour of a load ratio: calm below 0.7, busy to 1, too much above."""
    if load < 0.7:
        return GREEN
    return YELLOW if load <= 1.0 else RED


HEALTH_MAX: Final = 8
"""The worst health score that a node of the usual settings has."""

HEALTH_OVERLOADED: Final = 4
"""From this health score on a node is called overloaded: its probes take five times as long."""


def health_style(health: int) -> Style:
    """Return the colour of a health score: 0 is well, the more the worse."""
    if health <= 0:
        return GREEN
    return YELLOW if health < HEALTH_OVERLOADED else RED_BOLD
