"""How late deadlines were met, told in figures that a person can check by hand."""

from __future__ import annotations

import json

from mesh.runtime.lateness import LATEST_MAX, SMOOTHING, Lateness


def test_nothing_is_told_of_no_deadline() -> None:
    assert Lateness().to_json() == {
        "median_ms": None,
        "p99_ms": None,
        "worst_ms": None,
        "deadlines": 0,
    }


def test_one_in_a_hundred_is_above_the_99th_percentile() -> None:
    lateness = Lateness()
    for late_ms in range(200):
        lateness.note(late_ms / 1e3)
    assert lateness.to_json() == {
        "median_ms": 100.0,
        "p99_ms": 198.0,
        "worst_ms": 199.0,
        "deadlines": 200,
    }


def test_the_smoothed_lag_rises_with_what_is_late_all_the_time_and_forgets_what_was_once() -> None:
    lateness = Lateness()
    assert lateness.smoothed_ms == 0
    lateness.note(1.0)
    assert lateness.smoothed_ms == round(1_000 * SMOOTHING)
    for _ in range(100):
        lateness.note(0.0)
    assert lateness.smoothed_ms == 0
    for _ in range(100):
        lateness.note(0.020)
    assert lateness.smoothed_ms == 20


def test_only_the_latest_are_kept() -> None:
    lateness = Lateness()
    lateness.note(9.0)
    for _ in range(LATEST_MAX):
        lateness.note(-0.001)
    assert lateness.to_json()["worst_ms"] == 0.0
    assert lateness.to_json()["deadlines"] == LATEST_MAX


def test_a_deadline_that_was_due_ever_since_leaves_a_lag_that_is_a_number() -> None:
    lateness = Lateness()
    lateness.note(float("inf"))
    lateness.note(0.0)
    assert 0 <= lateness.smoothed_ms < 1_000
    json.dumps(lateness.to_json(), allow_nan=False)
