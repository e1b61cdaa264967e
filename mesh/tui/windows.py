"""A window on a long list: which rows are seen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a list that is shown: rows `first` to `last` (exclusive)."""

    first: int
    last: int


def offset_max(total: int, page: int) -> int:
    """Return the offset at which the last row stands at the bottom."""
    return max(0, total - page)


def window(total: int, page: int, offset: int) -> Window:
    """Return what of `total` rows is shown in `page` lines from row `offset` on."""
    first = min(max(offset, 0), offset_max(total, page))
    return Window(first, min(total, first + max(page, 0)))


def position(total: int, page: int, offset: int) -> str:
    """Return where a window stands, as `5-9 of 16`; "" when everything is shown."""
    shown = window(total, page, offset)
    if shown == Window(0, total):
        return ""
    return f"{shown.first + 1}-{shown.last} of {total}"
