"""How long an answer may take, by those that came."""

from __future__ import annotations

import pytest

from mesh.core.round_trip import RoundTrip


def test_first_round_trip_allows_for_three_times_as_long() -> None:
    assert RoundTrip.first(0.1).patience_s == pytest.approx(0.3)


def test_steady_round_trips_make_it_impatient_and_one_that_is_late_patient_again() -> None:
    found = RoundTrip.first(0.1)
    for _ in range(100):
        found.measure(0.1)
    assert found.patience_s == pytest.approx(0.1, rel=0.01)
    found.measure(0.5)
    assert found.patience_s == pytest.approx(0.15 + 4 * 0.1, rel=0.01)


def test_mean_follows_slowly() -> None:
    found = RoundTrip.first(0.0)
    found.measure(0.8)
    assert found.mean_s == pytest.approx(0.1)
