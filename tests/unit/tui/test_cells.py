"""Text in cells, and numbers in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mesh.tui.cells import clean, fit, fit_middle, folded, milliseconds
from mesh.tui.palette import bar


@given(st.text(max_size=60), st.integers(0, 70))
def test_fitted_text_has_exactly_the_width_asked_for(text: str, width: int) -> None:
    tidy = clean(text)
    assert cell_len(fit(tidy, width)) == width
    assert cell_len(fit_middle(tidy, width)) == width


def test_middle_cut_keeps_both_ends() -> None:
    assert fit_middle("[2001:db8::1234:5678]:7946", 15) == "[2001:d…8]:7946"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("line\nline", "line\\nline"),
        ("\x9b", "\\x9b"),
        ("abc\u202egnp", "abc\\u202egnp"),
        ("\ud800", "\\ud800"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.floats(0, 1e15))
def test_round_trip_times_take_at_most_six_characters(value: float) -> None:
    assert len(milliseconds(value)) <= 6


@pytest.mark.parametrize(
    ("value_ms", "text"),
    [
        (None, "-"),
        (0.254, "0.25ms"),
        (0.996, "1.0ms"),
        (9.96, "10ms"),
        (999.4, "999ms"),
        (1_500.0, "1.5s"),
        (1e9, "999.9s"),
    ],
)
def test_round_trip_times_are_as_exact_as_they_are_short(value_ms: float | None, text: str) -> None:
    assert milliseconds(value_ms) == text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two", "three"]),
        ("unbreakable word", ["unbreakab", "le word"]),
        ("a " + "x" * 20, ["a", "x" * 9, "x" * 9, "xx"]),
        ("デデデデデ", ["デデデデ", "デ"]),
        ("", [""]),
    ],
)
def test_text_is_folded_between_words_and_nothing_of_it_is_lost(
    text: str, lines: list[str]
) -> None:
    assert folded(text, 9) == lines


@pytest.mark.parametrize(
    ("filled", "total", "text"),
    [(0, 4, "▯▯▯▯"), (2, 4, "▮▮▯▯"), (0.01, 1, "▮▯▯▯"), (9, 4, "▮▮▮▮"), (1, 0, "▮▯▯▯")],
)
def test_bars_show_shares(filled: float, total: float, text: str) -> None:
    assert bar(filled, total, 4) == text
