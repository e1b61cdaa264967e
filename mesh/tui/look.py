"""What the user has done to the screen: where the cursor is, how lists are sorted and filtered, what is open.

A value: every key makes a new one. It knows how many orders each list has, but nothing of what is shown:
what a key can move on, the rows of the focused pane and the lines of the open page, is handed in as the
`Ground`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from mesh.tui.filters import FILTER_CHARS_MAX
from mesh.tui.orders import CONTEST_ORDERS, MEMBER_ORDERS, TASK_ORDERS
from mesh.tui.pane import Sorting, Stance
from mesh.tui.spots import Spot

PANES: Final = ("members", "tasks", "events", "contests")
MEMBERS, TASKS, EVENTS, CONTESTS = range(len(PANES))
ORDER_COUNTS: Final = (len(MEMBER_ORDERS), len(TASK_ORDERS), 1, len(CONTEST_ORDERS))
_PANE_KEYS: Final = {str(pane + 1): pane for pane in range(len(PANES))}

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Ground:
    """What a key can move on.

    Attributes:
        keys: the rows of the focused pane, as they stand.
        page: how many of them are seen.
        is_rolling: whether new rows come in above the old ones.
        scroll_page: how many lines of the open page are seen.
        scroll_max: how far the open page can be scrolled.
    """

    keys: Sequence[str] = ()
    page: int = 0
    is_rolling: bool = False
    scroll_page: int = 0
    scroll_max: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A value: every key makes a new one.

    Attributes:
        focus: the pane that has the keys.
        has_cursor: whether a row is marked; a picture has none.
        opened: the key of the row of the focused pane whose page is open, "" when none is.
        scroll: how far that page is scrolled.
        help_scroll: how far the help is.
        is_typing: whether keys go into the filter line.
    """

    focus: int = 0
    has_cursor: bool = False
    spots: tuple[Spot, ...] = (Spot(),) * len(PANES)
    sortings: tuple[Sorting, ...] = (Sorting(),) * len(PANES)
    filters: tuple[str, ...] = ("",) * len(PANES)
    opened: str = ""
    scroll: int = 0
    is_zoomed: bool = False
    is_typing: bool = False
    is_paused: bool = False
    is_help: bool = False
    help_scroll: int = 0

    @property
    def takes_quit(self) -> bool:
        """Say whether `q` is for us: it closes what lies over the panes, or is typed."""
        return self.is_help or self.is_typing or bool(self.opened)

    def press(self, key: str, ground: Ground) -> Look:
        """Return the look after `key`; one that means nothing here changes nothing.

        Any key closes the help, but those that scroll it where it does not fit.
        """
        if self.is_help:
            return self._on_help(key, ground)
        if self.is_typing:
            return self._typed(key)
        if key == "?":
            return replace(self, is_help=True)
        if key in {"p", " "}:
            return replace(self, is_paused=not self.is_paused)
        if self.opened:
            return self._on_page(key, ground)
        if key in _PANE_KEYS:
            return replace(self, focus=_PANE_KEYS[key])
        if key in {"tab", "back_tab"}:
            step = 1 if key == "tab" else -1
            return replace(self, focus=(self.focus + step) % len(PANES))
        return self._on_list(key, ground)

    def stance(self, pane: int) -> Stance:
        """Return what has been done to one pane."""
        return Stance(
            spot=self.spots[pane],
            sorting=self.sortings[pane],
            filter=self.filters[pane],
            has_cursor=self.has_cursor and pane == self.focus,
        )

    def _spot(self, ground: Ground) -> Spot:
        spot = self.spots[self.focus]
        return spot.settled(ground.keys, ground.page, is_rolling=ground.is_rolling)

    def _on_list(self, key: str, ground: Ground) -> Look:
        here = self._spot(ground).index
        to = _target(key, here, ground.page, len(ground.keys) - 1)
        if to is not None:
            return self._at(to, ground)
        sorting = self.sortings[self.focus]
        if key == "s":
            order = (sorting.order + 1) % ORDER_COUNTS[self.focus]
            return self._sorted(Sorting(order=order))
        if key == "S" and self.focus != EVENTS:
            return self._sorted(replace(sorting, is_reversed=not sorting.is_reversed))
        if key == "/":
            return replace(self, is_typing=True)
        if key == "z":
            return replace(self, is_zoomed=not self.is_zoomed)
        if key in {"enter", "right"} and ground.keys:
            return self._open(here, ground)
        if key == "escape":
            return self._let_go()
        return self

    def _on_page(self, key: str, ground: Ground) -> Look:
        if key in {"escape", "enter", "q", "backspace"}:
            return replace(self, opened="", scroll=0)
        if key in {"left", "right"} and ground.keys:
            is_held = self.opened in ground.keys
            here = ground.keys.index(self.opened) if is_held else self._spot(ground).index
            to = min(max(here + (1 if key == "right" else -1), 0), len(ground.keys) - 1)
            return self._open(to, ground)
        scroll = min(self.scroll, ground.scroll_max)
        to_line = _target(key, scroll, ground.scroll_page, ground.scroll_max)
        if to_line is None:
            return self
        return replace(self, scroll=min(max(to_line, 0), ground.scroll_max))

    def _on_help(self, key: str, ground: Ground) -> Look:
        scroll = min(self.help_scroll, ground.scroll_max)
        to_line = _target(key, scroll, ground.scroll_page, ground.scroll_max)
        if not ground.scroll_max or to_line is None:
            return replace(self, is_help=False, help_scroll=0)
        return replace(self, help_scroll=min(max(to_line, 0), ground.scroll_max))

    def _typed(self, key: str) -> Look:
        text = self.filters[self.focus]
        if key == "escape":
            return replace(self._filtered(""), is_typing=False)
        if key in {"enter", "tab", "up", "down"}:
            return replace(self, is_typing=False)
        if key == "backspace":
            return self._filtered(text[:-1]) if text else replace(self, is_typing=False)
        if len(key) == 1 and len(text) < FILTER_CHARS_MAX:
            return self._filtered(text + key)
        return self

    def _let_go(self) -> Look:
        """Undo one thing, the nearest: the filter, then the whole screen, then the cursor's row."""
        if self.filters[self.focus]:
            return self._filtered("")
        if self.is_zoomed:
            return replace(self, is_zoomed=False)
        return replace(self, spots=_with(self.spots, self.focus, Spot()))

    def _at(self, to: int, ground: Ground) -> Look:
        spot = self._spot(ground).moved(ground.keys, ground.page, to, is_rolling=ground.is_rolling)
        return replace(self, spots=_with(self.spots, self.focus, spot))

    def _open(self, to: int, ground: Ground) -> Look:
        return replace(self._at(to, ground), opened=ground.keys[to], scroll=0)

    def _sorted(self, sorting: Sorting) -> Look:
        return replace(self, sortings=_with(self.sortings, self.focus, sorting))

    def _filtered(self, text: str) -> Look:
        return replace(self, filters=_with(self.filters, self.focus, text))


def _target(key: str, here: int, page: int, last: int) -> int | None:
    """Return where a key that moves wants to go from `here`, None for any other key."""
    step = max(1, page - 2)
    moves = {
        "down": here + 1,
        "j": here + 1,
        "up": here - 1,
        "k": here - 1,
        "page_down": here + step,
        "page_up": here - step,
        "home": 0,
        "g": 0,
        "end": last,
        "G": last,
    }
    return moves.get(key)


def _with(items: tuple[_Item, ...], index: int, item: _Item) -> tuple[_Item, ...]:
    return (*items[:index], item, *items[index + 1 :])
