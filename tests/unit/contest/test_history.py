"""How tasks fared: Laplace's share, which fades to one half with time and is soon outdone by what follows."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest.fitness import PRIOR
from mesh.contest.history import HALF_LIFE_S, History
from mesh.errors import LocalProtocolError


def test_without_history_the_share_is_what_is_known_of_nobody() -> None:
    assert History().share(123.0) == PRIOR


def test_the_first_ends_count_as_laplace_has_it() -> None:
    history = History()
    history.note(5.0, ok=True)
    assert history.share(5.0) == pytest.approx(2 / 3)
    history.note(5.0, ok=False)
    assert history.share(5.0) == pytest.approx(1 / 2, abs=0.01)


ends = st.lists(st.tuples(st.floats(0, 1e4), st.booleans()), max_size=60)


@settings(max_examples=40)
@given(ends, st.floats(0, 1e5), st.floats(0, 1e5))
def test_a_share_lies_within_its_bounds_and_fades_to_one_half(
    noted: list[tuple[float, bool]], soon_s: float, late_s: float
) -> None:
    history = History()
    for now, ok in noted:
        history.note(now, ok)
    last = max((now for now, _ in noted), default=0.0)
    sooner, later = sorted([soon_s, late_s])
    soon, late = history.share(last + sooner), history.share(last + later)
    assert 1 / 34 <= soon <= 33 / 34
    assert abs(late - PRIOR) <= abs(soon - PRIOR) + 1e-12
    assert history.share(last + 100 * HALF_LIFE_S) == pytest.approx(PRIOR)


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
    assert history.share(0.0) > 0.95
    for _ in range(20):
        history.note(0.0, ok=False)
    assert history.share(0.0) < 0.6


def test_an_end_that_is_noted_late_does_not_turn_the_clock_back() -> None:
    history = History()
    history.note(100.0, ok=True)
    history.note(50.0, ok=True)
    in_time = History()
    for _ in range(2):
        in_time.note(100.0, ok=True)
    for now in (100.0, 100.0 + HALF_LIFE_S):
        assert history.share(now) == in_time.share(now) > PRIOR


@pytest.mark.parametrize("now", [math.nan, math.inf, -math.inf])
def test_a_time_that_is_none_is_refused(now: float) -> None:
    history = History()
    history.note(1.0, ok=True)
    for call in (lambda: history.note(now, ok=True), lambda: history.share(now)):
        with pytest.raises(LocalProtocolError, match="contest now: a finite number is expected"):
            call()
    assert history.share(1.0) == pytest.approx(2 / 3)
