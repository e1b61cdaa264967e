"""Timers against the naive way to do it: a dict that is searched each time."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mesh.core.timers import Timers

keys = st.integers(0, 7)
deadlines = st.integers(0, 20).map(float)


class TimersAgainstDict(RuleBasedStateMachine):
    """The model: a dict in the order of the last arming."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: Timers[int] = Timers()
        self.model: dict[int, float] = {}

    @rule(key=keys, deadline=deadlines)
    def arm(self, key: int, deadline: float) -> None:
        self.timers.set(key, deadline)
        self.model.pop(key, None)
        self.model[key] = deadline

    @rule(key=keys, count=st.integers(60, 150))
    def arm_again_and_again(self, key: int, count: int) -> None:
        for n in range(count):
            self.arm(key, float(n % 21))

    @rule(key=keys)
    def cancel(self, key: int) -> None:
        self.timers.cancel(key)
        self.model.pop(key, None)

    @rule(now=deadlines)
    def take(self, now: float) -> None:
        due = sorted((at, n, key) for n, (key, at) in enumerate(self.model.items()) if at <= now)
        assert self.timers.take_due(now) == [key for _, _, key in due]
        for _, _, key in due:
            del self.model[key]

    @invariant()
    def both_say_the_same(self) -> None:
        assert len(self.timers) == len(self.model)
        assert self.timers.next_deadline() == min(self.model.values(), default=None)
        for key in range(8):
            assert (key in self.timers) == (key in self.model)
            assert self.timers.deadline(key) == self.model.get(key)


TestTimersAgainstDict = TimersAgainstDict.TestCase


def test_equal_deadlines_come_up_in_the_order_in_which_they_were_set() -> None:
    timers: Timers[str] = Timers()
    for key in "cab":
        timers.set(key, 1.0)
    timers.set("c", 1.0)
    assert timers.take_due(1.0) == ["a", "b", "c"]


def test_taking_early_twice_or_late_is_harmless() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", 5.0)
    assert timers.take_due(4.9) == []
    assert timers.take_due(100.0) == ["a"]
    assert timers.take_due(100.0) == []
    assert timers.next_deadline() is None


def test_keys_that_cannot_be_compared_may_share_a_deadline() -> None:
    timers: Timers[object] = Timers()
    first, second = object(), object()
    timers.set(first, 1.0)
    timers.set(second, 1.0)
    assert timers.take_due(1.0) == [first, second]


def test_moving_one_deadline_for_ever_keeps_memory_bounded() -> None:
    timers: Timers[int] = Timers()
    for n in range(10_000):
        timers.set(0, float(n))
    for n in range(10_000):
        timers.set(n, float(n))
        timers.cancel(n)
    assert len(timers._heap) <= 100
