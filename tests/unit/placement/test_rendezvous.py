"""Rendezvous hashing: the same everywhere and for ever, and fair by weight."""

from __future__ import annotations

from mesh.core.ids import NodeId
from mesh.placement.cells import cell_of
from mesh.placement.rendezvous import hash64, rank


def test_the_hash_is_the_same_everywhere_and_for_ever() -> None:
    assert hash64("key", NodeId(1)) == 0x7DF861ED81D509EF


def test_a_cell_and_a_key_with_the_same_digits_hash_apart() -> None:
    assert hash64(7, NodeId(1)) != hash64("7", NodeId(1))


def test_weight_zero_is_never_ranked() -> None:
    assert rank("k", [(NodeId(1), 0), (NodeId(2), 1)]) == [NodeId(2)]


def test_a_cell_lies_in_the_key_space() -> None:
    assert {cell_of(f"k{i}") for i in range(5000)} == set(range(256))
