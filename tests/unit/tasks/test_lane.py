"""Tasks of one lane: the oldest first, in whatever order they come and go."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.tasks.lane import DEAD_MIN, ByAge, Queued


def queued(number: int, created: float = 0.0, *, was_begun: bool = False) -> Queued:
    task = Queued(f"t{number}".encode(), created)
    task.number, task.was_begun = number, was_begun
    return task


def drained(waiting: ByAge) -> list[Queued]:
    found = []
    while (task := waiting.first) is not None:
        waiting.remove(task)
        waiting.check_invariants()
        found.append(task)
    return found


def test_of_those_made_at_one_time_who_was_begun_goes_first_and_then_who_came_first() -> None:
    waiting = ByAge()
    old, first, second = queued(9, -1.0), queued(1), queued(2)
    lost = queued(3, was_begun=True)
    for task in (second, lost, first, old):
        waiting.add(task)
    assert drained(waiting) == [old, lost, first, second]


def test_who_comes_back_stands_where_it_stood() -> None:
    waiting = ByAge()
    tasks = [queued(number, number / 2) for number in range(6)]
    for task in tasks:
        waiting.add(task)
    for number in (0, 3, 5):
        waiting.remove(tasks[number])
    for number in (5, 3, 0):
        waiting.add(tasks[number])
    assert drained(waiting) == tasks


def test_those_that_are_gone_are_not_kept_for_long() -> None:
    waiting = ByAge()
    tasks = [queued(number) for number in range(10 * DEAD_MIN)]
    for task in tasks:
        waiting.add(task)
    for task in tasks[1:]:
        waiting.remove(task)
    assert len(waiting) == 1
    assert len(waiting._heap) <= 2 + DEAD_MIN
    assert waiting.first is tasks[0]


@settings(max_examples=60)
@given(
    ages=st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=60),
    moves=st.lists(st.integers(0, 59), max_size=150),
)
def test_the_oldest_is_first_whoever_comes_and_goes(
    ages: list[tuple[int, bool]], moves: list[int]
) -> None:
    waiting = ByAge()
    tasks = [
        queued(number, float(created), was_begun=begun)
        for number, (created, begun) in enumerate(ages)
    ]
    here: set[int] = set()
    for move in moves:
        number = move % len(tasks)
        (waiting.remove if number in here else waiting.add)(tasks[number])
        here ^= {number}
        waiting.check_invariants()
        assert len(waiting) == len(here)
        oldest = min(here, key=lambda n: (ages[n][0], not ages[n][1], n), default=None)
        assert waiting.first is (None if oldest is None else tasks[oldest])
