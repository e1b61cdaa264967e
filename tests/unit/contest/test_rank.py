"""Who comes first: buckets, one order everywhere, ranks that are a permutation, and buckets that hold."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest.rank import BUCKETS, MARGIN, Hysteresis, better, bucket, estimate_rank
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
    hysteresis = Hysteresis()
    for call in (
        lambda: bucket(score),
        lambda: better(score, one, 0.5, two, "k"),
        lambda: better(0.5, one, score, two, "k"),
        lambda: estimate_rank(one, 0.5, {two: score}, "k"),
        lambda: hysteresis.settle(one, score),
    ):
        with pytest.raises(LocalProtocolError, match=r"contest score: .* from 0 to 1"):
            call()
    assert len(hysteresis) == 0


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


# Hysteresis.


def test_a_score_at_an_edge_stays_in_its_bucket() -> None:
    hysteresis = Hysteresis()
    edge = 4 / BUCKETS
    assert hysteresis.settle("n", edge - 0.001) == edge - 0.001
    kept = [bucket(hysteresis.settle("n", edge + wobble)) for wobble in (0.001, -0.02, 0.03, -0.01)]
    assert kept == [3, 3, 3, 3]


def test_a_score_that_has_left_takes_its_bucket_with_it() -> None:
    hysteresis = Hysteresis()
    edge = 4 / BUCKETS
    hysteresis.settle("n", edge - 0.001)
    assert hysteresis.settle("n", edge + MARGIN) == edge + MARGIN
    assert bucket(hysteresis.settle("n", edge - MARGIN)) == 4
    assert bucket(hysteresis.settle("n", edge - MARGIN - 0.001)) == 3
    assert bucket(hysteresis.settle("n", 1.0)) == 7
    assert bucket(hysteresis.settle("n", 0.0)) == 0


@settings(max_examples=60)
@given(st.lists(scores, min_size=1, max_size=20))
def test_what_is_kept_is_never_further_off_than_the_margin(path: list[float]) -> None:
    hysteresis = Hysteresis()
    for score in path:
        kept = bucket(hysteresis.settle("n", score))
        assert kept / BUCKETS - MARGIN <= score <= (kept + 1) / BUCKETS + MARGIN


@settings(max_examples=60)
@given(scores, st.lists(st.floats(-MARGIN / 2.01, MARGIN / 2.01), min_size=2, max_size=20))
def test_noise_of_half_the_margin_moves_nobody(score: float, noise: list[float]) -> None:
    hysteresis = Hysteresis()
    settled = [
        bucket(hysteresis.settle("n", min(1, max(0, score + wobble)))) for wobble in (0, *noise)
    ]
    assert set(settled) == {bucket(score)}


@settings(max_examples=60)
@given(st.lists(scores, min_size=1, max_size=20), st.integers(16, 4096))
def test_a_settled_score_survives_rounding_if_it_was_moved(path: list[float], steps: int) -> None:
    hysteresis = Hysteresis()
    for score in path:
        settled = hysteresis.settle("n", score)
        if settled != score:
            assert bucket(round(settled * steps) / steps) == bucket(settled)
            assert bucket(math.floor(settled * steps) / steps) == bucket(settled)


def test_each_subject_is_kept_by_itself_until_it_is_forgotten() -> None:
    hysteresis = Hysteresis()
    hysteresis.settle((1, "video"), 0.49)
    hysteresis.settle((1, "audio"), 0.51)
    assert bucket(hysteresis.settle((1, "video"), 0.5)) == 3
    assert bucket(hysteresis.settle((1, "audio"), 0.499)) == 4
    hysteresis.forget((1, "video"))
    hysteresis.forget("never seen")
    assert bucket(hysteresis.settle((1, "video"), 0.5)) == 4


def test_of_too_many_subjects_the_one_looked_at_longest_ago_is_dropped() -> None:
    hysteresis = Hysteresis(subjects_max=2)
    for subject in ("a", "b", "a", "c"):
        hysteresis.settle(subject, 0.49)
    assert len(hysteresis) == 2
    assert [bucket(hysteresis.settle(subject, 0.5)) for subject in ("a", "c")] == [3, 3]
    assert bucket(hysteresis.settle("b", 0.5)) == 4


@pytest.mark.parametrize("margin", [-0.1, 1.1, math.nan])
def test_a_margin_that_makes_no_sense_is_refused(margin: float) -> None:
    with pytest.raises(LocalProtocolError, match="contest margin"):
        Hysteresis(margin=margin)


def test_room_for_no_subject_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match=r"contest subjects_max: .* of 1 or more"):
        Hysteresis(subjects_max=0)
