"""An emergency member comes when the load has lasted, and goes when it has not for as long."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest.standby import HOLD_S, JOIN_LOAD, LEAVE_LOAD, LOOK_S, Standby


def looked(standby: Standby, begin: float, loads: list[float]) -> list[tuple[float, bool]]:
    """Return when it changed, and to what, where each load is looked at in its turn."""
    if standby.next_deadline() is None:
        standby.begin(begin)
    found = []
    for number, load in enumerate(loads):
        now = begin + number * LOOK_S
        assert standby.is_due(now)
        if standby.step(now, load):
            found.append((now, standby.is_needed))
        assert standby.next_deadline() == now + LOOK_S
    return found


def test_it_comes_once_the_load_has_lasted_and_goes_once_it_has_not() -> None:
    standby = Standby()
    lasting = int(HOLD_S / LOOK_S) + 1
    assert looked(standby, 0.0, [0.9] * lasting) == [(HOLD_S, True)]
    assert looked(standby, 100.0, [0.5] * lasting) == [(100.0 + HOLD_S, False)]


def test_a_moment_of_load_or_of_rest_changes_nothing() -> None:
    standby = Standby()
    assert looked(standby, 0.0, [0.9, 0.9, 0.9, 0.9, 0.9, 0.7] * 4) == []
    looked(standby, 100.0, [0.9] * 9)
    assert standby.is_needed
    assert looked(standby, 200.0, [0.1, 0.1, 0.1, 0.1, 0.1, 0.7] * 4) == []


def test_between_the_bounds_it_stays_as_it_is() -> None:
    standby = Standby()
    assert looked(standby, 0.0, [JOIN_LOAD, LEAVE_LOAD, 0.7] * 9) == []
    looked(standby, 100.0, [0.9] * 9)
    assert looked(standby, 200.0, [JOIN_LOAD, LEAVE_LOAD, 0.7] * 9) == []
    assert standby.is_needed


def test_a_load_that_nobody_looked_at_for_a_while_has_not_lasted() -> None:
    standby = Standby()
    looked(standby, 0.0, [0.9, 0.9])
    assert looked(standby, 60.0, [0.9, 0.9, 0.9]) == []
    assert looked(standby, 63.0, [0.9, 0.9, 0.9]) == [(60.0 + HOLD_S, True)]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(0, 2), st.integers(1, 12)), max_size=20))
def test_it_never_changes_twice_within_the_time_that_a_load_has_to_last(
    stretches: list[tuple[float, int]],
) -> None:
    loads = [0.9] * 9 + [load for load, seconds in stretches for _ in range(seconds)]
    changes = looked(Standby(), 0.0, loads)
    assert changes, "the first stretch is long enough"
    assert [to for _, to in changes] == [number % 2 == 0 for number in range(len(changes))]
    gaps = [after - before for (before, _), (after, _) in pairwise(changes)]
    assert all(gap > HOLD_S for gap in gaps)
