"""A window on a long list: which rows are seen, and how many follow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a list that is shown: rows `first` to `last` (exclusive), and how many follow."""

    first: int
    last: int
    more: int


def offset_max(total: int, page: int) -> int:
    """Return the offset at which the last row stands at the bottom."""
    return max(0, total - page)


def window(total: int, page: int, offset: int) -> Window:
    """Return what of `total` rows is shown in `page` lines from row `offset` on.

    While rows follow, the last line is kept for saying how many, unless it is the only one.
    """
    first = min(max(offset, 0), offset_max(total, page))
    last = min(total, first + max(page, 0))
    if last < total and page > 1:
        last -= 1
    return Window(first, last, total - last)


def position(total: int, page: int, offset: int) -> str:
    """Return where a window stands, as `5-9 of 16`; "" when everything is shown."""
    shown = window(total, page, offset)
    if shown.first == 0 and shown.more == 0:
        return ""
    return f"{shown.first + 1}-{shown.last} of {total}"
