"""Schedules on paper: what no schedule falls below, the longest first, and who knows no duration."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from mesh.bench.schedules import bound_s, compare, draw_durations, greedy_s
from mesh.errors import LocalProtocolError


def test_the_next_task_goes_to_the_slot_that_is_free_first() -> None:
    assert greedy_s([3, 1, 1, 2], 2) == 4  # 3 and 1 + 1 + 2
    assert greedy_s([2, 1, 1, 3], 2) == 5
    assert greedy_s([1, 2], 5) == 2


def test_nothing_is_shorter_than_the_longest_task_or_an_even_spread() -> None:
    assert bound_s([1, 1, 4], 3) == 4
    assert bound_s([1, 1, 4], 1) == 6


def test_the_longest_first_is_within_a_third_of_the_best_of_all_schedules() -> None:
    rng = Random(1)
    for _ in range(50):
        durations = draw_durations(rng, 6, 0.05, 5)
        best = min(
            max(sum(d for d, at in zip(durations, places, strict=True) if at == slot) for slot in range(3))
            for places in product(range(3), repeat=6)
        )  # fmt: skip
        found = compare(best, durations, 3)
        assert found.bound_s <= best + 1e-9
        assert best <= found.longest_first_s + 1e-9
        assert found.longest_first_s <= best * (4 / 3 - 1 / 9) + 1e-9


def test_durations_are_spread_over_their_orders_of_magnitude() -> None:
    durations = draw_durations(Random(2), 4_000, 0.05, 5)
    assert 0.05 <= min(durations) < max(durations) <= 5
    assert 0.47 < sum(one < 0.5 for one in durations) / len(durations) < 0.53


@pytest.mark.parametrize(("durations", "slots"), [([], 1), ([1.0], 0)])
def test_without_tasks_or_slots_there_is_no_schedule(durations: list[float], slots: int) -> None:
    with pytest.raises(LocalProtocolError, match="at least are expected"):
        bound_s(durations, slots)
