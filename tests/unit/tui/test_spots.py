"""The cursor: on the same row while rows move, and always in sight."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mesh.tui.spots import Spot
from mesh.tui.windows import window


def test_cursor_follows_its_row() -> None:
    spot = Spot("c", 2, 0)
    assert spot.settled(list("cab"), 10, is_rolling=False).index == 0
    assert spot.settled(list("abxyc"), 10, is_rolling=False).index == 4


def test_row_that_went_leaves_the_cursor_on_what_stands_there() -> None:
    assert Spot("c", 2, 0).settled(list("abde"), 10, is_rolling=False) == Spot("d", 2, 0)
    assert Spot("c", 2, 0).settled(list("ab"), 10, is_rolling=False) == Spot("b", 1, 0)
    assert Spot("c", 2, 0).settled([], 10, is_rolling=False) == Spot()


def test_top_stays_the_top() -> None:
    assert Spot().settled(list("xyz"), 10, is_rolling=True) == Spot()


def test_scrolled_rolling_list_stands_still_when_rows_come_in_above() -> None:
    rows = [f"e{n}" for n in range(40)]
    spot = Spot("e12", 12, 10)
    moved = spot.settled(["new1", "new2", *rows], 5, is_rolling=True)
    assert (moved.index, moved.offset) == (14, 12)
    assert spot.settled(["new1", "new2", *rows], 5, is_rolling=False).offset == 10


@given(
    total=st.integers(1, 40),
    page=st.integers(1, 12),
    moves=st.lists(st.integers(0, 45), max_size=6),
    offset=st.integers(0, 60),
)
def test_cursor_is_always_seen(total: int, page: int, moves: list[int], offset: int) -> None:
    rows = [str(n) for n in range(total)]
    spot = Spot(rows[0], 0, offset)
    for to in moves:
        spot = spot.settled(rows, page, is_rolling=False)
        spot = spot.moved(rows, page, to, is_rolling=False)
        shown = window(total, page, spot.offset)
        assert shown.first <= spot.index < shown.last
        assert spot.settled(rows, page, is_rolling=False) == spot
