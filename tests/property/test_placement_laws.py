"""Laws of rendezvous placement: what moves, and how evenly it falls."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.core.ids import NodeId
from mesh.placement.cells import CELLS, CellTable, cell_of
from mesh.placement.rendezvous import rank, score

node_ids = st.integers(1, 2**64 - 1).map(NodeId)
meshes = st.dictionaries(node_ids, st.integers(0, 64), min_size=1, max_size=12)


def table_of(members: dict[NodeId, int], owners_max: int = 3) -> CellTable:
    table = CellTable(owners_max)
    for node_id, weight in members.items():
        table.add(node_id, weight)
    return table


def owners(table: CellTable) -> list[tuple[NodeId, ...]]:
    return [table.owners(cell) for cell in range(CELLS)]


@settings(max_examples=25, deadline=None)
@given(meshes, node_ids, st.integers(1, 64))
def test_adding_a_member_moves_only_the_cells_it_wins(
    members: dict[NodeId, int], node_id: NodeId, weight: int
) -> None:
    members.pop(node_id, None)
    table = table_of(members)
    before = owners(table)
    moved = table.add(node_id, weight)
    for cell, (old, new) in enumerate(zip(before, owners(table), strict=True)):
        assert (node_id in new) == (cell in moved)
        if node_id in new:
            kept = tuple(n for n in new if n != node_id)
            assert kept == old[: len(kept)]
        else:
            assert new == old


@settings(max_examples=25, deadline=None)
@given(meshes, st.data())
def test_removing_a_member_moves_only_the_cells_it_held(
    members: dict[NodeId, int], data: st.DataObject
) -> None:
    gone = data.draw(st.sampled_from(sorted(members)))
    table = table_of(members)
    before = owners(table)
    moved = table.remove(gone)
    for cell, (old, new) in enumerate(zip(before, owners(table), strict=True)):
        assert (gone in old) == (cell in moved)
        kept = tuple(n for n in old if n != gone)
        assert new[: len(kept)] == kept


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(node_ids, st.integers(0, 9)), max_size=14))
def test_the_incremental_table_equals_one_from_scratch(changes: list[tuple[NodeId, int]]) -> None:
    table = CellTable()
    weights: dict[NodeId, int] = {}
    for node_id, weight in changes:
        table.add(node_id, weight)
        weights[node_id] = weight
    table.check_invariants()
    alive = {node_id: weight for node_id, weight in weights.items() if weight}
    assert len(table) == len(alive)
    for cell in range(CELLS):
        assert table.owners(cell) == tuple(rank(cell, alive.items())[:3])


@given(st.text(max_size=20), meshes)
def test_a_ranking_does_not_depend_on_the_order_of_members(
    key: str, members: dict[NodeId, int]
) -> None:
    pairs = list(members.items())
    assert rank(key, pairs) == rank(key, reversed(pairs))


@given(st.text(max_size=20), node_ids, st.integers(1, 65535))
def test_scores_are_finite_and_above_zero(key: str, node_id: NodeId, weight: int) -> None:
    assert 0 < score(key, node_id, weight) < math.inf
    assert score(key, node_id, 0) == 0


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [1, 2, 3, 10], [4, 0, 1]])
def test_keys_fall_on_members_in_proportion_to_their_weights(weights: list[int]) -> None:
    keys = 6000
    members = [(NodeId(1000003 * (i + 1)), weight) for i, weight in enumerate(weights)]
    won = dict.fromkeys((node_id for node_id, _ in members), 0)
    for i in range(keys):
        won[rank(f"key-{i}", members)[0]] += 1
    for node_id, weight in members:
        share = weight / sum(weights)
        four_sigma = 4 * math.sqrt(keys * share * (1 - share))
        assert abs(won[node_id] - keys * share) <= four_sigma


def test_keys_fall_on_cells_evenly() -> None:
    keys = 25600
    held = [0] * CELLS
    for i in range(keys):
        held[cell_of(f"key-{i}")] += 1
    sigma = math.sqrt(keys / CELLS * (1 - 1 / CELLS))
    assert all(abs(count - keys / CELLS) < 5 * sigma for count in held)


def test_cells_fall_on_members_within_the_binomial_expectation() -> None:
    nodes = 16
    table = table_of({NodeId(7919 * (i + 1)): 4 for i in range(nodes)}, owners_max=1)
    held: dict[NodeId, int] = {}
    for cell in range(CELLS):
        (owner,) = table.owners(cell)
        held[owner] = held.get(owner, 0) + 1
    sigma = math.sqrt(CELLS / nodes * (1 - 1 / nodes))
    assert all(abs(count - CELLS / nodes) <= 4 * sigma for count in held.values())
