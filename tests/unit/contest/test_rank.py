"""Who comes first: buckets, one order everywhere, ranks that are a permutation, and who is held where it was placed."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest.rank import BUCKETS, MARGIN, better, bucket, estimate_rank, held
from mesh.core.ids import NodeId
from mesh.errors import LocalProtocolError
from mesh.placement import rendezvous

scores = st.floats(0, 1)
node_ids = st.integers(1, 2**64 - 1).map(NodeId)
keys = st.text(max_size=12)
# Few scores and small ids, so that equal buckets are met, beside any.
meshes = st.dictionaries(
    node_ids | st.integers(1, 9).map(NodeId),
    scores | st.sampled_from([0.0, 0.5, 1.0]),
    min_size=1,
    max_size=8,
)


# Buckets.


@given(scores, scores)
def test_a_bucket_rises_with_the_score(a: float, b: float) -> None:
    low, high = sorted([a, b])
    assert 0 <= bucket(low) <= bucket(high) <= BUCKETS - 1


def test_the_edges_of_buckets() -> None:
    assert [bucket(i / BUCKETS) for i in range(BUCKETS + 1)] == [0, 1, 2, 3, 4, 5, 6, 7, 7]
    assert bucket(math.nextafter(1 / BUCKETS, 0)) == 0


@pytest.mark.parametrize("score", [-0.001, 1.001, math.nan, math.inf])
def test_what_is_no_score_is_refused(score: float) -> None:
    one, two = NodeId(1), NodeId(2)
    for call in (
        lambda: bucket(score),
        lambda: better(score, one, 0.5, two, "k"),
        lambda: better(0.5, one, score, two, "k"),
        lambda: estimate_rank(one, 0.5, {two: score}, "k"),
        lambda: held(score, 0.5),
        lambda: held(0.5, score),
    ):
        with pytest.raises(LocalProtocolError, match=r"contest score: .* from 0 to 1"):
            call()


# The order.


@settings(max_examples=60)
@given(meshes, keys)
def test_the_order_is_total(mesh: dict[NodeId, float], key: str) -> None:
    pairs = [(a, b) for a in mesh for b in mesh]
    ahead = {(a, b) for a, b in pairs if better(mesh[a], a, mesh[b], b, key)}
    for a, b in pairs:
        assert ((a, b) in ahead) + ((b, a) in ahead) == (a != b)
        if (a, b) in ahead:
            assert all((a, c) in ahead for c in mesh if (b, c) in ahead)


@settings(max_examples=60)
@given(meshes, keys)
def test_ranks_are_a_permutation_and_agree_with_the_order(
    mesh: dict[NodeId, float], key: str
) -> None:
    ranks = {node_id: estimate_rank(node_id, mesh[node_id], mesh, key) for node_id in mesh}
    assert sorted(ranks.values()) == list(range(1, len(mesh) + 1))
    in_order = sorted(mesh, key=ranks.__getitem__)
    for a, b in pairwise(in_order):
        assert better(mesh[a], a, mesh[b], b, key)


@settings(max_examples=60)
@given(meshes, keys, st.data())
def test_a_rank_does_not_depend_on_the_order_in_which_others_are_known(
    mesh: dict[NodeId, float], key: str, data: st.DataObject
) -> None:
    shuffled = dict(data.draw(st.permutations(list(mesh.items()))))
    for node_id, score in mesh.items():
        others = {other: score for other, score in shuffled.items() if other != node_id}
        assert estimate_rank(node_id, score, others, key) == estimate_rank(
            node_id, score, mesh, key
        )


@given(scores, scores, node_ids, node_ids, keys)
def test_a_higher_bucket_comes_first_whatever_the_lots_say(
    a: float, b: float, id_a: NodeId, id_b: NodeId, key: str
) -> None:
    if bucket(a) != bucket(b):
        assert better(a, id_a, b, id_b, key) == (bucket(a) > bucket(b))


@given(st.sets(node_ids, min_size=1, max_size=6), keys, st.integers(0, BUCKETS - 1))
def test_within_a_bucket_the_order_is_that_of_rendezvous(
    ids: set[NodeId], key: str, common: int
) -> None:
    inside = {
        node_id: (common + (i + 0.5) / len(ids)) / BUCKETS for i, node_id in enumerate(sorted(ids))
    }
    ranked = sorted(
        inside, key=lambda node_id: estimate_rank(node_id, inside[node_id], inside, key)
    )
    assert ranked == rendezvous.rank(key, [(node_id, 1) for node_id in sorted(ids)])


def test_members_of_one_bucket_share_tasks_evenly() -> None:
    ids = [NodeId(7919 * (i + 1)) for i in range(4)]
    mesh = {node_id: 0.51 + 0.02 * i for i, node_id in enumerate(ids)}
    assert len({bucket(score) for score in mesh.values()}) == 1
    first = dict.fromkeys(ids, 0)
    for number in range(2000):
        for node_id in ids:
            first[node_id] += estimate_rank(node_id, mesh[node_id], mesh, f"task-{number}") == 1
    four_sigma = 4 * math.sqrt(2000 / 4 * 3 / 4)
    assert all(abs(count - 500) < four_sigma for count in first.values())


def test_the_order_is_the_one_that_other_releases_reckon() -> None:
    """These stand for every node of a mesh: a release that orders them another way would not agree with older ones."""
    mesh = {NodeId(i): score for i, score in enumerate([0.30, 0.34, 0.90, 0.36, 0.26], start=1)}
    ranked = sorted(
        mesh, key=lambda node_id: estimate_rank(node_id, mesh[node_id], mesh, "thumbs-17")
    )
    assert ranked == [3, 5, 1, 4, 2]


def test_nobody_else_means_the_first() -> None:
    assert estimate_rank(NodeId(1), 0.0, {}, "k") == 1
    assert estimate_rank(NodeId(1), 0.2, {NodeId(1): 0.9}, "k") == 1


# Held where it was placed.


def test_a_score_near_the_edge_stays_in_the_bucket_in_which_it_was_placed() -> None:
    edge = 4 / BUCKETS
    for placed in (edge - 0.001, edge - 0.1):
        assert bucket(held(edge + MARGIN * 0.9, placed)) == 3
        assert held(edge + MARGIN, placed) == edge + MARGIN
    for placed in (edge, edge + 0.1):
        assert bucket(held(edge - MARGIN * 0.9, placed)) == 4
        assert held(edge - MARGIN, placed) == edge - MARGIN


def test_a_score_in_the_bucket_in_which_it_was_placed_is_what_it_is() -> None:
    assert held(0.51, 0.6) == 0.51
    assert held(1.0, 0.95) == 1.0


@settings(max_examples=100)
@given(scores, scores)
def test_whoever_is_held_is_no_further_off_than_the_margin_and_else_ranked_as_it_is(
    score: float, placed: float
) -> None:
    found, kept = held(score, placed), bucket(placed)
    assert bucket(found) in {kept, bucket(score)}
    if found != score:
        assert bucket(found) == kept != bucket(score)
        assert kept / BUCKETS - MARGIN < score < (kept + 1) / BUCKETS + MARGIN


@settings(max_examples=60)
@given(scores, scores, st.integers(16, 65_535))
def test_a_score_that_is_held_survives_rounding(score: float, placed: float, steps: int) -> None:
    found = held(score, placed)
    if found != score:
        assert bucket(round(found * steps) / steps) == bucket(found)
        assert bucket(math.floor(found * steps) / steps) == bucket(found)


@settings(max_examples=60)
@given(meshes, keys, st.data())
def test_all_who_differ_a_little_from_what_was_told_of_them_find_the_ranks_of_the_table(
    told: dict[NodeId, float], key: str, data: st.DataObject
) -> None:
    """However each has moved by less than the margin, exactly one takes itself for the first."""
    moved = st.floats(-0.99 * MARGIN, 0.99 * MARGIN)
    now = {one: min(1.0, max(0.0, score + data.draw(moved))) for one, score in told.items()}
    ranks = [estimate_rank(one, held(now[one], told[one]), told, key) for one in told]
    assert sorted(ranks) == list(range(1, len(told) + 1))
