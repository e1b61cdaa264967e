"""The numbers of ballots: each once, in one session."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.core.ballot import N_MAX
from mesh.errors import LocalProtocolError
from mesh.registers.numbers import BLOCK, LEAP_MAX, Numbers


def test_the_first_number_is_one_and_is_set_aside_with_a_block() -> None:
    assert Numbers(0).take() == (1, 1 + BLOCK)


def test_numbers_of_a_block_need_no_further_store() -> None:
    numbers = Numbers(0)
    numbers.take()
    assert [numbers.take() for _ in range(BLOCK)] == [(n, None) for n in range(2, BLOCK + 2)]
    assert numbers.take() == (BLOCK + 2, 2 * BLOCK + 2)


def test_a_number_is_above_what_was_heard_of() -> None:
    numbers = Numbers(0)
    assert numbers.take(above=5000) == (5001, 5001 + BLOCK)
    assert numbers.take(above=7) == (5002, None)


@given(st.lists(st.lists(st.integers(0, 5000), max_size=5), max_size=6), st.data())
def test_no_number_is_used_by_two_sessions_whenever_the_first_ends(
    sessions: list[list[int]], data: st.DataObject
) -> None:
    stored, used = 0, []
    for heard in sessions:
        numbers = Numbers(stored)
        for above in heard:
            n, limit = numbers.take(above)
            if limit is not None:
                stored = limit
            if limit is not None and data.draw(st.booleans()):
                break  # it ends when that is stored: the number was never sent
            assert n > above
            used.append(n)
    assert used == sorted(set(used))


@pytest.mark.parametrize("above", [LEAP_MAX + 1, N_MAX])
def test_a_number_nobody_counted_to_is_not_followed(above: int) -> None:
    numbers = Numbers(0)
    assert not numbers.can_follow(above)
    with pytest.raises(LocalProtocolError):
        numbers.take(above)
    assert numbers.take() == (1, 1 + BLOCK)


@pytest.mark.parametrize("above", [0, 1, LEAP_MAX])
def test_a_number_that_somebody_may_have_counted_to_is_followed(above: int) -> None:
    numbers = Numbers(0)
    assert numbers.can_follow(above)
    assert numbers.take(above)[0] == above + 1


def test_there_is_no_number_after_the_last() -> None:
    numbers = Numbers(N_MAX - 1)
    assert numbers.take()[0] == N_MAX
    with pytest.raises(LocalProtocolError):
        numbers.take()
