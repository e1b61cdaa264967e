"""What keys do to the look."""

from __future__ import annotations

import pytest

from mesh.tui.look import Ground, Look
from mesh.tui.pane import Sorting
from mesh.tui.spots import Spot

ROWS = Ground([f"k{n}" for n in range(30)], page=10)
ROLLING = Ground([f"e{n}" for n in range(30)], page=10, is_rolling=True)


def press(look: Look, *keys: str, ground: Ground = ROWS) -> Look:
    for key in keys:
        look = look.press(key, ground)
    return look


def test_tab_goes_round_the_panes_both_ways() -> None:
    assert [press(Look(), "tab").focus, press(Look(), "back_tab").focus] == [1, 3]
    assert press(Look(focus=3), "tab").focus == 0
    assert [press(Look(), key).focus for key in "1234"] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("key", "index"),
    [
        ("down", 11),
        ("j", 11),
        ("up", 9),
        ("k", 9),
        ("page_down", 18),
        ("page_up", 2),
        ("home", 0),
        ("g", 0),
        ("end", 29),
        ("G", 29),
    ],
)
def test_keys_move_the_cursor_of_the_focused_pane_alone(key: str, index: int) -> None:
    spots = (Spot("a", 1, 1), Spot("k10", 10, 8), Spot("b", 2, 2), Spot("c", 3, 3))
    moved = press(Look(focus=1, spots=spots), key).spots
    assert moved[1].key == f"k{index}"
    assert moved[0] == spots[0]
    assert moved[2:] == spots[2:]


def test_unknown_key_changes_nothing() -> None:
    look = press(Look(), "down", "down")
    assert press(look, "x") == look


def test_cursor_stops_at_both_ends() -> None:
    assert press(Look(), "page_up").spots[0].index == 0
    assert press(Look(), "end", "down").spots[0].index == 29


def test_page_of_a_tiny_pane_still_moves() -> None:
    assert press(Look(), "page_down", ground=Ground(ROWS.keys, page=0)).spots[0].index == 1


def test_top_of_a_rolling_list_is_no_row() -> None:
    look = Look(focus=2)
    assert press(look, "down", ground=ROLLING).spots[2].key == "e1"
    assert press(look, "down", "up", ground=ROLLING).spots[2] == Spot()


def test_sort_cycles_the_orders_and_capital_turns_them_round() -> None:
    assert press(Look(), "s").sortings[0] == Sorting(order=1)
    assert press(Look(), "s", "S").sortings[0] == Sorting(order=1, is_reversed=True)
    assert press(Look(), "s", "S", "s").sortings[0] == Sorting(order=2)
    assert press(Look(), *"sssss").sortings[0] == Sorting()
    assert press(Look(focus=1), *"sss").sortings == Look().sortings
    assert press(Look(focus=2), "s", "S").sortings == Look().sortings


def test_filter_is_typed_kept_and_cleared() -> None:
    typed = press(Look(), "/", *"q s:x", "backspace")
    assert typed.is_typing
    assert typed.takes_quit
    assert typed.filters == ("q s:", "", "", "")
    kept = press(typed, "enter")
    assert not kept.is_typing
    assert kept.filters[0] == "q s:"
    assert press(kept, "escape").filters[0] == ""
    assert press(typed, "escape") == Look()


def test_filter_line_is_bounded() -> None:
    assert len(press(Look(), "/", *"x" * 500).filters[0]) == 80


def test_backspace_in_an_empty_filter_closes_it() -> None:
    assert press(Look(), "/", "backspace") == Look()


@pytest.mark.parametrize("key", ["p", " "])
def test_pause_is_a_switch_also_on_a_page(key: str) -> None:
    assert press(Look(), key).is_paused
    assert not press(Look(), key, key).is_paused
    assert press(Look(), "enter", key).is_paused


def test_enter_opens_the_row_and_escape_comes_back() -> None:
    look = press(Look(), "down", "down", "enter")
    assert look.opened == "k2"
    for key in ("escape", "enter", "q", "backspace"):
        assert press(look, key).opened == ""
    assert press(Look(), "enter", ground=Ground()).opened == ""


def test_arrows_on_a_page_go_to_the_neighbours_and_move_the_cursor_along() -> None:
    look = press(Look(), "enter", "right", "right", "left")
    assert (look.opened, look.spots[0].key) == ("k1", "k1")
    assert press(look, "left", "left").opened == "k0"


def test_page_is_scrolled_within_its_lines() -> None:
    ground = Ground(ROWS.keys, page=10, scroll_page=10, scroll_max=15)
    look = press(Look(), "enter", ground=ground)
    assert press(look, "down", ground=ground).scroll == 1
    assert press(look, "page_down", "page_down", "page_down", ground=ground).scroll == 15
    assert press(look, "up", ground=ground).scroll == 0
    assert press(look, "end", "right", ground=ground).scroll == 0


def test_escape_undoes_the_nearest_thing_first() -> None:
    look = press(Look(), "down", "z", "/", "x", "enter")
    look = press(look, "escape")
    assert (look.filters[0], look.is_zoomed) == ("", True)
    look = press(look, "escape")
    assert (look.is_zoomed, look.spots[0].key) == (False, "k1")
    assert press(look, "escape") == Look()
