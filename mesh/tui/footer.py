"""The last line: the keys that mean something now, or the filter while it is typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rich.segment import Segment

from mesh.tui.cells import Line, line_width, spread
from mesh.tui.look import EVENTS, PANES, Look
from mesh.tui.orders import CONTEST_ORDERS, MEMBER_ORDERS, TASK_ORDERS, Order
from mesh.tui.palette import BOLD, DIM, KEY

_TYPING: Final = (("enter", "keep"), ("esc", "clear"))
_EXAMPLES: Final = (
    "state:dead  zone=eu  !n3",
    "state:failed  node:n2",
    "kind:dead  n3",
    "state:late  bid:n2",
)
_ORDERS: Final[tuple[tuple[Order[Any], ...], ...]] = (
    MEMBER_ORDERS,
    TASK_ORDERS,
    (),
    CONTEST_ORDERS,
)
"""Of each pane; events have none."""


@dataclass(frozen=True, slots=True)
class Footer:
    """The keys, as many as fit, and the time of the view at the right end."""

    look: Look
    clock: str
    is_joined: bool = False

    def render(self, width: int) -> Line:
        """Draw a line of `width` cells."""
        if self.look.is_typing:
            return self._typing(width)
        line: Line = []
        room = width - len(self.clock) - 2
        for keys, meaning in self._hints():
            gap = "  " if line else " "
            hint = [Segment(gap), Segment(keys, KEY), Segment(f" {meaning}", DIM)]
            if line_width(line) + line_width(hint) > room:
                break
            line += hint
        return spread(line, [Segment(f"{self.clock} ", DIM)], width)

    def _typing(self, width: int) -> Line:
        pane = self.look.focus
        line: Line = [
            Segment(f" filter {PANES[pane]} /", KEY),
            Segment(self.look.filters[pane], BOLD),
        ]
        line += [Segment("▏", KEY), Segment("   ")]
        for keys, meaning in _TYPING:
            line += [Segment(keys, KEY), Segment(f" {meaning}  ", DIM)]
        return spread(line, [Segment(f"as {_EXAMPLES[pane]} ", DIM)], width)

    def _hints(self) -> tuple[tuple[str, str], ...]:
        look = self.look
        pause = ("p", "go on" if look.is_paused else "pause")
        if look.opened:
            return (
                ("esc", "back"),
                ("↑↓", "scroll"),
                ("← →", "next one"),
                pause,
                ("?", "help"),
            )
        return (
            *((("q", "close"), ("Ctrl-C", "leave")) if self.is_joined else (("q", "quit"),)),
            ("?", "help"),
            ("tab", "pane"),
            ("enter", "open"),
            ("/", "find"),
            *(() if look.focus == EVENTS else (("s", "sort"),)),
            ("z", "panes" if look.is_zoomed else "zoom"),
            pause,
            ("↑↓", "row"),
            *(() if look.focus == EVENTS else (("S", f"sorted by {self._order()}"),)),
        )

    def _order(self) -> str:
        sorting = self.look.sortings[self.look.focus]
        name = _ORDERS[self.look.focus][sorting.order].name
        return f"{name}, reversed" if sorting.is_reversed else name
