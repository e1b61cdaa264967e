"""The orders in which a list can stand: each sorts by a column, best foot first, and can be reversed.

The first order of each list is the board's own, in which what needs attention stands first. Rows that
have no value for the column stand last, whichever way round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from mesh.core.load import LOAD_MAX
from mesh.core.order import natural
from mesh.tui.contest_rows import ContestRow
from mesh.tui.rows import MemberRow, TaskRow

Row = TypeVar("Row")


@dataclass(frozen=True, kw_only=True)
class Order(Generic[Row]):
    """One way to sort.

    Attributes:
        name: what the footer calls it.
        column: the title of the column that it sorts by.
        value: what is compared, of a row at a unix time; None for a row that has no such value. Without it:
            the board's own order.
        is_descending: whether the greatest stands first unless reversed.
    """

    name: str
    column: str
    value: Callable[[Row, float], Any] | None = None
    is_descending: bool = False

    def arrow(self, *, is_reversed: bool) -> str:
        """Return which way the column stands; "" for the board's own order, as it comes."""
        if self.value is None and not is_reversed:
            return ""
        return "▼" if self.is_descending != is_reversed else "▲"

    def arrange(self, rows: Sequence[Row], at: float, *, is_reversed: bool) -> Sequence[Row]:
        """Return `rows` in this order at unix time `at`; equals stay as they come in. O(n log n)."""
        if self.value is None:
            return rows[::-1] if is_reversed else rows
        values = [(self.value(row, at), row) for row in rows]
        valued = [pair for pair in values if pair[0] is not None]
        without = [row for value, row in values if value is None]
        valued.sort(key=lambda pair: pair[0], reverse=self.is_descending != is_reversed)
        return [*(row for _, row in valued), *without]


def _load(member: MemberRow) -> tuple[float, float] | None:
    """Return a member's load; of those that are busier than can be told, the fuller one is the busier."""
    if not member.is_living or member.load is None:
        return None
    is_untold = member.load >= LOAD_MAX
    return member.load, (member.slot_ratio or 0.0) if is_untold else 0.0


MEMBER_ORDERS: Final[tuple[Order[MemberRow], ...]] = (
    Order(name="state", column="STATE"),
    Order(
        name="load",
        column="LOAD",
        value=lambda m, _at: _load(m),
        is_descending=True,
    ),
    Order(
        name="slots",
        column="SLOTS",
        value=lambda m, _at: None if m.slot_ratio is None else (m.slot_ratio, m.used),
        is_descending=True,
    ),
    Order(
        name="rtt",
        column="RTT",
        value=lambda m, _at: m.rtt_ms if m.is_living and not m.is_self else None,
        is_descending=True,
    ),
    Order(name="name", column="NAME", value=lambda m, _at: natural(m.name)),
)
TASK_ORDERS: Final[tuple[Order[TaskRow], ...]] = (
    Order(name="state", column="STATE"),
    Order(name="time", column="TIME", value=lambda t, at: t.lasting_s(at), is_descending=True),
    Order(name="node", column="NODE", value=lambda t, _at: natural(t.owner) if t.owner else None),
)
CONTEST_ORDERS: Final[tuple[Order[ContestRow], ...]] = (
    Order(name="time", column="WHEN"),
    Order(
        name="bids",
        column="BIDS, DECLINES",
        value=lambda c, _at: (len(c.bids), len(c.said)),
        is_descending=True,
    ),
    Order(
        name="time to grant",
        column="AFTER",
        value=lambda c, _at: c.after_ms,
        is_descending=True,
    ),
    Order(
        name="winner",
        column="WINNER",
        value=lambda c, _at: natural(c.winner) if c.winner else None,
    ),
)
