"""A mesh is short when its load lasts, asks for the hook while it is high, and gets by when it has fallen."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from mesh.hooks.shortage import COOL_DOWN_S, GAP_S, SHORT_AFTER_S, SPREAD_S, Shortage
from mesh.placement.demand import demand_of

HIGH, BAND, LOW = 0.9, 0.7, 0.5


class Watch:
    """One node that looks every second."""

    def __init__(self, seed: int = 1) -> None:
        self.now = 100.0
        self.shortage = Shortage(random.Random(seed))

    def see(self, load: float, seconds: float, step_s: float = 1.0) -> list[float]:
        """Return after how many seconds of this load the hook is asked for; each question ends with `waits`."""
        asked, begun = [], self.now
        while self.now < begun + seconds:
            if self.shortage.step(self.now, load):
                asked.append(self.now - begun)
                self.shortage.answered(self.now, COOL_DOWN_S)
            self.now += step_s
        return asked


def test_it_is_asked_for_once_the_load_has_lasted_and_again_after_each_cool_down() -> None:
    first, second, third = Watch().see(HIGH, 3 * COOL_DOWN_S)
    assert SHORT_AFTER_S <= first <= SHORT_AFTER_S + SPREAD_S + 1
    for early, late in ((first, second), (second, third)):
        assert COOL_DOWN_S <= late - early <= COOL_DOWN_S + SPREAD_S + 1


def test_nobody_is_asked_before_the_question_under_way_is_answered() -> None:
    shortage = Shortage(random.Random(1), short_after_s=1.0)
    asked = [at for at in range(100) if shortage.step(float(at), HIGH)]
    assert len(asked) == 1
    shortage.answered(100.0, 0.0)
    assert any(shortage.step(float(at), HIGH) for at in range(100, 104))


def test_a_load_that_is_not_above_the_bound_all_the_time_is_no_shortage() -> None:
    watch = Watch()
    assert watch.see(0.8, 1_000) == []
    for _ in range(20):
        assert watch.see(HIGH, SHORT_AFTER_S - 1) == []
        assert watch.see(BAND, 1) == []


def test_a_dip_that_is_not_low_neither_ends_a_shortage_nor_asks() -> None:
    watch = Watch()
    assert len(watch.see(HIGH, SHORT_AFTER_S + SPREAD_S + 2)) == 1
    assert watch.see(BAND, 2 * COOL_DOWN_S) == []
    assert watch.shortage.is_short
    assert watch.see(HIGH, 5) == [0.0], "at once: it was short all the time"


def test_a_low_load_ends_it_and_the_next_one_begins_anew() -> None:
    watch = Watch()
    watch.see(HIGH, SHORT_AFTER_S + SPREAD_S + 2)
    assert watch.see(LOW, 2 * COOL_DOWN_S) == []
    assert not watch.shortage.is_short
    (first,) = watch.see(HIGH, COOL_DOWN_S)
    assert first >= SHORT_AFTER_S


def test_the_cool_down_outlasts_the_shortage() -> None:
    watch = Watch()
    watch.see(HIGH, SHORT_AFTER_S + SPREAD_S + 2)
    watch.see(LOW, 10)
    assert watch.see(HIGH, COOL_DOWN_S - 60) == []


def test_where_nobody_looked_the_clock_begins_anew() -> None:
    watch = Watch()
    assert watch.see(HIGH, SHORT_AFTER_S - 1) == []
    watch.now += GAP_S + 1
    assert watch.see(HIGH, SHORT_AFTER_S - 1) == []
    assert watch.see(HIGH, SPREAD_S + 3) != []


def test_a_mesh_without_slots_is_short() -> None:
    assert Watch().see(demand_of([]).load, SHORT_AFTER_S + SPREAD_S + 2) != []


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(1, 90)), max_size=20), st.integers(0, 99))
def test_it_never_asks_unless_the_load_was_high_for_long_since_it_was_low(
    loads: list[tuple[float, int]], seed: int
) -> None:
    watch = Watch(seed)
    run = 0  # seconds above in a row
    was_long = False  # since it was low
    for load, seconds in loads:
        for _ in range(seconds):
            run = run + 1 if load > 0.8 else 0
            was_long = (was_long or run > SHORT_AFTER_S) and load >= 0.6
            if watch.see(load, 1):
                assert was_long
                assert load > 0.8
