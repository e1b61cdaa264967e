"""Durations as people write and read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.core.time import format_duration, parse_duration
from mesh.errors import ConfigError


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("300ms", 0.3),
        ("5s", 5),
        ("10m", 600),
        ("2h", 7200),
        ("7d", 604800),
        ("1.5s", 1.5),
        (" 0s ", 0),
    ],
)
def test_durations_are_read(written: str, seconds: float) -> None:
    assert parse_duration(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "5",
        "s",
        "-5s",
        "5 s",
        "5S",
        "1e3s",
        ".5s",
        "5.s",
        "5s5",
        "٣s",
        "infs",
        "5s\n6s",
        "9" * 400 + "d",
    ],
)
def test_what_is_no_duration_is_refused_with_what_was_found(written: str) -> None:
    with pytest.raises(ConfigError, match="a duration like") as caught:
        parse_duration(written)
    assert repr(written) in str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0ms"),
        (0.0124, "12ms"),
        (0.9994, "999ms"),
        (0.9996, "1.0s"),
        (4.24, "4.2s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (59.4, "59s"),
        (59.6, "1m00s"),
        (192, "3m12s"),
        (3599.6, "1h00m"),
        (7500, "2h05m"),
        (86399.9, "1d00h"),
        (615600, "7d03h"),
        (-5, "-5.0s"),
    ],
)
def test_durations_are_shown_short_and_rounded_once(seconds: float, shown: str) -> None:
    assert format_duration(seconds) == shown


@given(seconds=st.floats(0, 99 * 86400))
def test_a_shown_duration_fits_its_column(seconds: float) -> None:
    assert len(format_duration(seconds)) <= 6


@given(seconds=st.floats(0, 9.9))
def test_a_short_duration_is_read_back_to_its_last_digit(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, abs=0.0501)
