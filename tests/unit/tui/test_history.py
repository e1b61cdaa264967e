"""The past in cells, and its picture."""

from __future__ import annotations

import pytest

from mesh.tui.history import CELL_S, CELLS_MAX, Levels, Rates, full, mean, span_s, spark


def test_cell_is_the_mean_of_its_stretch_and_stays_once_drawn() -> None:
    levels = Levels()
    for second in range(int(3 * CELL_S)):
        levels.note(float(second), second // CELL_S)
    assert levels.last(4) == [None, None, 0.0, 1.0]
    levels.note(3 * CELL_S, 9.0)
    assert levels.last(4) == [None, 0.0, 1.0, 2.0]


def test_stretch_without_a_view_is_a_gap() -> None:
    levels = Levels()
    levels.note(0.0, 1.0)
    levels.note(3 * CELL_S, 1.0)
    assert levels.last(3) == [1.0, None, None]


def test_past_is_bounded() -> None:
    levels = Levels()
    for number in range(CELLS_MAX + 10):
        levels.note(number * CELL_S, 1.0)
    assert levels.last(CELLS_MAX * 2) == [None] * CELLS_MAX + [1.0] * CELLS_MAX


def test_gap_as_long_as_the_past_leaves_nothing_of_it() -> None:
    levels = Levels()
    levels.note(0.0, 1.0)
    levels.note(1e9, 1.0)
    assert levels.last(CELLS_MAX) == [None] * CELLS_MAX


def test_clock_that_went_back_starts_anew() -> None:
    levels = Levels()
    levels.note(96.0, 7.0)
    levels.note(100.0, 7.0)
    levels.note(5.0, 1.0)
    levels.note(5.0 + CELL_S, 2.0)
    assert levels.last(2) == [None, 1.0]


def test_rate_is_the_growth_in_a_second_and_never_below_zero() -> None:
    rates = Rates()
    for at, total in [(0.0, 10.0), (2.0, 16.0), (4.0, 1.0), (8.0, 1.0)]:
        rates.note(at, total)
    assert rates.last(2) == [3.0, 0.0]


def test_picture_shows_what_is_known_and_fills_up_to_the_top() -> None:
    assert spark([None, 0.0, 0.01, 4.0, 9.0], 1, 8.0) == [" ▁▁▄█"]
    assert spark([8.0, 2.0, None], 2, 8.0) == ["█  ", "█▄ "]


@pytest.mark.parametrize(
    ("values", "least", "top"),
    [
        ([None, 3.0], 1.0, 5.0),
        ([], 1.0, 1.0),
        ([2.0], 1.0, 2.0),
        ([5.1], 5.0, 10.0),
        ([2.55], 1.0, 5.0),
        ([1234.0], 5.0, 2000.0),
        ([0.01], 0.1, 0.1),
    ],
)
def test_graph_is_full_at_a_round_number(
    values: list[float | None], least: float, top: float
) -> None:
    assert full(values, least) == pytest.approx(top)


def test_past_is_as_long_as_what_is_known() -> None:
    assert span_s([None, None, 1.0, None, 2.0]) == 3 * CELL_S
    assert span_s([None]) == 0
    assert mean([None, 1.0, 2.0]) == 1.5
    assert mean([None]) is None
