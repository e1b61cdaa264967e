"""A chain keeps its order whatever is put in and taken out, and asks the same time of whoever takes the first of many."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.core.chain import Chain, Link


@dataclass(slots=True, eq=False)
class Item(Link):
    number: int


MOVES = st.lists(st.tuples(st.sampled_from(["add", "add first", "remove"]), st.integers(0, 5)))


@given(MOVES)
def test_chain_holds_what_a_list_would(moves: list[tuple[str, int]]) -> None:
    chain: Chain[Item] = Chain()
    items = [Item(number) for number in range(6)]
    expected: list[Item] = []
    for move, number in moves:
        item = items[number]
        if move == "remove" and item in expected:
            chain.remove(item)
            expected.remove(item)
        elif move == "add" and item not in expected:
            chain.add(item)
            expected.append(item)
        elif move == "add first" and item not in expected:
            chain.add_first(item)
            expected.insert(0, item)
        assert list(chain) == expected
        assert len(chain) == len(expected)
        assert chain.first is (expected[0] if expected else None)
        assert [item.is_chained for item in items] == [item in expected for item in items]


def test_what_stands_in_a_chain_is_not_put_into_one_again() -> None:
    chain: Chain[Item] = Chain()
    item = Item(1)
    chain.add(item)
    with pytest.raises(AssertionError, match="already"):
        chain.add_first(item)
    assert list(chain) == [item]


def test_what_stands_in_no_chain_is_not_taken_out() -> None:
    with pytest.raises(AssertionError, match="no chain"):
        Chain[Item]().remove(Item(1))
