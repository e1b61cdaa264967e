"""What keys do to the look."""

from __future__ import annotations

import pytest

from mesh.tui.look import Look


def test_tab_goes_round_the_panes_both_ways() -> None:
    look = Look()
    assert [look.press("tab", 5, 0).focus, look.press("back_tab", 5, 0).focus] == [1, 2]
    assert Look(focus=2).press("tab", 5, 0).focus == 0


@pytest.mark.parametrize(
    ("key", "offset"),
    [
        ("down", 11),
        ("j", 11),
        ("up", 9),
        ("k", 9),
        ("page_down", 18),
        (" ", 18),
        ("page_up", 2),
        ("home", 0),
        ("g", 0),
        ("end", 20),
        ("G", 20),
        ("x", 10),
    ],
)
def test_scrolling_moves_the_focused_pane_alone(key: str, offset: int) -> None:
    look = Look(focus=1, offsets=(3, 10, 4))
    assert look.press(key, 10, 20).offsets == (3, offset, 4)


def test_scrolling_stops_at_both_ends() -> None:
    assert Look().press("page_up", 10, 20).offsets[0] == 0
    assert Look(offsets=(15, 0, 0)).press("page_down", 10, 20).offsets[0] == 20
    assert Look(offsets=(99, 0, 0)).press("down", 10, 20).offsets[0] == 20


def test_page_of_a_tiny_pane_still_moves() -> None:
    assert Look().press("page_down", 0, 20).offsets[0] == 1
