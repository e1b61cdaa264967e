"""What the user has done to the screen: which pane has the keys, and how far each is scrolled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

PANES: Final = ("members", "tasks", "events")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A value: every key makes a new one."""

    focus: int = 0
    offsets: tuple[int, ...] = (0,) * len(PANES)
    is_help: bool = False

    def press(self, key: str, page: int, offset_max: int) -> Look:
        """Return the look after `key`; `page` rows are seen of the focused pane, scrolled to `offset_max` at most.

        A key that means nothing here changes nothing, except that any key closes the help.
        """
        if self.is_help:
            return replace(self, is_help=False)
        if key == "?":
            return replace(self, is_help=True)
        if key == "tab":
            return replace(self, focus=(self.focus + 1) % len(PANES))
        if key == "back_tab":
            return replace(self, focus=(self.focus - 1) % len(PANES))
        step = max(1, page - 2)
        here = min(self.offsets[self.focus], offset_max)
        moves = {
            "down": here + 1,
            "j": here + 1,
            "up": here - 1,
            "k": here - 1,
            "page_down": here + step,
            " ": here + step,
            "page_up": here - step,
            "home": 0,
            "g": 0,
            "end": offset_max,
            "G": offset_max,
        }
        if key not in moves:
            return self
        return self._scrolled(self.focus, min(max(moves[key], 0), offset_max))

    def clamped(self, offset_maxima: Sequence[int]) -> Look:
        """Return the look with no pane scrolled past its end."""
        offsets = tuple(map(min, self.offsets, offset_maxima))
        return self if offsets == self.offsets else replace(self, offsets=offsets)

    def _scrolled(self, pane: int, offset: int) -> Look:
        offsets = (*self.offsets[:pane], offset, *self.offsets[pane + 1 :])
        return replace(self, offsets=offsets)
