"""The replay window against a set that forgets nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mesh.seal.window import WIDTH, ReplayWindow

NUMBERS = st.lists(st.integers(0, 4 * WIDTH) | st.integers(0, 1 << 32), max_size=300)


@given(NUMBERS, st.integers(0, 2 * WIDTH))
def test_number_counts_once_if_it_is_within_the_window_and_not_below_the_floor(
    numbers: list[int], floor: int
) -> None:
    window, seen = ReplayWindow(floor), set[int]()
    for number in numbers:
        highest = max(seen, default=-1)
        is_within = number > highest - WIDTH
        expected = number >= floor and is_within and number not in seen
        assert window.accept(number) is expected
        if expected:
            seen.add(number)


def test_every_number_of_a_shuffled_block_counts_once() -> None:
    window = ReplayWindow()
    block = [i ^ 0x55 for i in range(WIDTH)]
    assert all(window.accept(number) for number in block)
    assert not any(window.accept(number) for number in block)
