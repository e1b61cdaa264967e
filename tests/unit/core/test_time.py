"""Durations as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.core.time import format_duration


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0ms"),
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
        (412 * 86400, "412d"),
        (1e12, "99999d"),
    ],
)
def test_durations_are_shown_short_and_rounded_once(seconds: float, shown: str) -> None:
    assert format_duration(seconds) == shown


@given(seconds=st.floats(-1e15, 1e15))
def test_a_shown_duration_fits_its_column(seconds: float) -> None:
    assert len(format_duration(seconds)) <= 6
