"""Colours: the terminal's own sixteen, and no background, so that light and dark themes both work."""

from __future__ import annotations

import pytest
from rich.color import ColorType
from rich.style import Style

from mesh.membership.lifeguard import LifeguardConfig
from mesh.tui import palette
from mesh.tui.history import spark


def styles() -> list[Style]:
    plain = [value for value in vars(palette).values() if isinstance(value, Style)]
    marks = [*palette.MEMBER_MARKS.values(), *palette.TASK_MARKS.values()]
    loads = [palette.load_style(load) for load in (0.1, 0.9, 3.0)]
    health = [palette.health_style(score) for score in range(9)]
    return [*plain, *(mark.style for mark in marks), *loads, *health]


def test_no_style_sets_a_background_or_a_colour_of_its_own() -> None:
    assert len(styles()) > 20
    for style in styles():
        assert style.bgcolor is None
        assert style.color is None or style.color.type is ColorType.STANDARD
        assert style.color is None or style.color.name not in {"black", "white"}


def test_every_sign_of_the_screen_has_one_for_a_plain_terminal() -> None:
    marks = [
        *palette.MEMBER_MARKS.values(),
        *palette.TASK_MARKS.values(),
        *palette.EVENT_MARKS.values(),
        palette.BUSIEST,
        palette.UNKNOWN,
    ]
    signs = {*(mark.symbol for mark in marks), *palette.TASK_BLOCKS.values(), *palette.bar(1, 2, 2)}
    signs.update(*spark([n / 8 for n in range(9)], 1, 1.0))
    assert all(sign.isascii() or ord(sign) in palette.ASCII for sign in signs)


@pytest.mark.parametrize(
    ("load", "style"),
    [
        (0.69, palette.GREEN),
        (0.7, palette.YELLOW),
        (1.0, palette.YELLOW),
        (1.01, palette.RED),
    ],
)
def test_load_is_calm_busy_or_too_much(load: float, style: Style) -> None:
    assert palette.load_style(load) == style


def test_worst_health_is_that_of_the_usual_settings() -> None:
    assert LifeguardConfig().health_max == palette.HEALTH_MAX


def test_signs_that_a_plain_terminal_gets_take_one_cell_each() -> None:
    assert all(len(sign) == 1 for sign in palette.ASCII.values())
