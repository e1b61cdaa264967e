"""A pace: a burst, and then a rate."""

import pytest

from mesh.core.pace import Pace


def test_a_burst_is_let_through_and_then_the_rate() -> None:
    pace = Pace(rate_s=10.0, burst=3)
    assert [pace.allows(5.0) for _ in range(4)] == [True, True, True, False]
    assert pace.held == 1
    assert pace.next_at(5.0) == pytest.approx(5.1)
    assert pace.allows(5.1)
    assert not pace.allows(5.15)


def test_after_a_rest_the_burst_is_there_again() -> None:
    pace = Pace(rate_s=10.0, burst=3)
    for _ in range(3):
        pace.allows(0.0)
    assert [pace.allows(9.0) for _ in range(4)] == [True, True, True, False]


def test_in_the_long_run_the_rate_holds() -> None:
    pace = Pace(rate_s=5.0, burst=2)
    count = sum(pace.allows(step * 0.01) for step in range(10_000))
    assert count == pytest.approx(500, abs=3)
