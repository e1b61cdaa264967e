"""How tasks fared: from 1 down by what failed, back to 1 with time, and soon outdone by what follows."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest.history import HALF_LIFE_S, History
from mesh.errors import LocalProtocolError


def test_without_history_nothing_has_failed_and_success_lifts_nobody_above_that() -> None:
    history = History()
    assert history.share(123.0) == 1
    for _ in range(5):
        history.note(123.0, ok=True)
        assert history.share(123.0) == 1


def test_each_member_begins_with_two_successes() -> None:
    history = History()
    history.note(5.0, ok=False)
    assert history.share(5.0) == pytest.approx(2 / 3)
    history.note(5.0, ok=False)
    assert history.share(5.0) == pytest.approx(1 / 2, abs=0.01)
    history.note(5.0, ok=True)
    assert history.share(5.0) == pytest.approx(3 / 5, abs=0.02)


ends = st.lists(st.tuples(st.floats(0, 1e4), st.booleans()), max_size=60)


@settings(max_examples=40)
@given(ends, st.floats(0, 1e5), st.floats(0, 1e5))
def test_a_share_lies_within_its_bounds_and_comes_back_to_1(
    noted: list[tuple[float, bool]], soon_s: float, late_s: float
) -> None:
    history = History()
    for now, ok in noted:
        history.note(now, ok)
    last = max((now for now, _ in noted), default=0.0)
    sooner, later = sorted([soon_s, late_s])
    soon, late = history.share(last + sooner), history.share(last + later)
    assert 2 / 34 <= soon <= late + 1e-12 <= 1 + 1e-12
    assert history.share(last + 100 * HALF_LIFE_S) == pytest.approx(1)


@settings(max_examples=40)
@given(ends)
def test_a_success_never_lowers_the_share_and_a_failure_never_raises_it(
    noted: list[tuple[float, bool]],
) -> None:
    history = History()
    for now, ok in sorted(noted):
        before = history.share(now)
        history.note(now, ok)
        assert history.share(now) >= before - 1e-12 if ok else history.share(now) <= before + 1e-12


def test_a_host_on_which_all_begins_to_fail_is_soon_known_for_it() -> None:
    history = History()
    for _ in range(1000):
        history.note(0.0, ok=True)
    assert history.share(0.0) == 1
    for _ in range(20):
        history.note(0.0, ok=False)
    assert history.share(0.0) < 0.6


def test_an_end_that_is_noted_late_does_not_turn_the_clock_back() -> None:
    history = History()
    history.note(100.0, ok=False)
    history.note(50.0, ok=False)
    in_time = History()
    for _ in range(2):
        in_time.note(100.0, ok=False)
    for now in (100.0, 100.0 + HALF_LIFE_S):
        assert history.share(now) == in_time.share(now) < 1


@pytest.mark.parametrize("now", [math.nan, math.inf, -math.inf])
def test_a_time_that_is_none_is_refused(now: float) -> None:
    history = History()
    history.note(1.0, ok=False)
    for call in (lambda: history.note(now, ok=True), lambda: history.share(now)):
        with pytest.raises(LocalProtocolError, match="contest now: a finite number is expected"):
            call()
    assert history.share(1.0) == pytest.approx(2 / 3)
