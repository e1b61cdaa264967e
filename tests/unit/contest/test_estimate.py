"""What is expected of those called, by the caller's table, and what each finds of itself."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cmp_to_key

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest.estimate import expected, in_order, own_fitness, sent_score, wants_of
from mesh.contest.fitness import DEFAULT_WEIGHTS, HALF_LIFE_S, PRIOR, STEP
from mesh.contest.known import AGE_S_MAX, Known
from mesh.contest.rank import BUCKETS, better, bucket, estimate_rank
from mesh.contest.weighing import weights_of
from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.placement.live_view import Wants
from mesh.wire.contest_messages import HISTORY_MAX, SCORE_MAX, WEIGHED, Called, Weighing
from mesh.wire.records import Metadata
from mesh.wire.task_messages import AttemptCause, Offer
from tests.unit.wire.strategies import uints, weighings

META = Metadata(slots=4)
WANTS = Wants(key="t")
GOOD = Called(NodeId(1), 4, 0, 0, 0, HISTORY_MAX, 0)
"""A member of which nothing could be better."""

BEST = sent_score(1 - STEP) / SCORE_MAX
"""The highest score of a member that is dedicated to nothing, as it is sent: below the uppermost bucket."""


def score(
    called: Called = GOOD, wants: Wants = WANTS, *, meta: Metadata = META, told: Weighing = ()
) -> float:
    found = expected(meta, called, wants, weights_of(told))
    assert found is not None
    return found


WORSE = {
    "cpu": {"busy_pct": 90},
    "distance": {"rtt_us": 90_000},
    "free_slots": {"free_slots": 1},
    "history": {"history": 8},
    "lag": {"lag_ms": 90},
}


@pytest.mark.parametrize("name", sorted({*WEIGHED} - {"match"}))
def test_each_part_of_the_table_counts_as_much_as_it_weighs(name: str) -> None:
    worse = replace(GOOD, **WORSE[name])  # type: ignore[arg-type]  # of that part
    assert score(GOOD) == BEST > score(worse)
    assert (
        score(worse)
        >= BEST * (1 - getattr(DEFAULT_WEIGHTS, name) / DEFAULT_WEIGHTS.total) - 1 / SCORE_MAX
    )
    assert score(worse, told=((name, 1.0),)) < 0.5
    others = tuple((other, 1.0) for other in WEIGHED if other != name)
    assert score(worse, told=others) == BEST


def test_who_is_as_fit_as_can_be_leaves_the_uppermost_bucket_to_dedicated_members() -> None:
    assert bucket(score()) == BUCKETS - 2
    dedicated = replace(META, node_class="dedicated", queues=("video",))
    assert bucket(score(wants=replace(WANTS, queue="video"), meta=dedicated)) == BUCKETS - 1


def test_what_is_not_known_of_it_counts_as_neither_good_nor_bad() -> None:
    unknown = replace(GOOD, lag_ms=None, rtt_us=None)
    by_lag, by_distance = (score(unknown, told=((one, 1.0),)) for one in ("lag", "distance"))
    assert by_lag == by_distance == pytest.approx(BEST * PRIOR, abs=1e-4)


def test_a_member_on_which_all_fails_is_less_fit_than_one_that_is_busy() -> None:
    """It is always idle: that is why it fails so many."""
    failing = replace(GOOD, history=8)
    assert score(failing) < score(replace(GOOD, free_slots=2, busy_pct=50))


def test_what_is_old_says_little() -> None:
    ages = [score(replace(GOOD, age_ds=round(10 * s))) for s in (0, HALF_LIFE_S, AGE_S_MAX)]
    assert ages == pytest.approx([BEST, BEST * 0.75, BEST * PRIOR], abs=1e-4)


def test_an_age_fits_into_a_call() -> None:
    assert Known().age_s(5.0) == AGE_S_MAX
    assert Known(heard_at=-1e9).age_s(5.0) == AGE_S_MAX
    assert Known(heard_at=3.0).age_s(5.0) == 2.0
    assert Known(heard_at=math.inf).age_s(5.0) == 0.0


def test_who_cannot_take_it_is_expected_not_to() -> None:
    assert expected(META, replace(GOOD, free_slots=0), WANTS) is None
    assert expected(META, GOOD, replace(WANTS, pool="image")) is None


def test_who_is_dedicated_to_other_queues_is_expected_not_to_take_it_and_is_ahead_for_its_own() -> (
    None
):
    video = replace(META, node_class="dedicated", queues=("video",))
    busy = replace(GOOD, free_slots=1)
    assert expected(video, busy, WANTS) is None
    assert score(busy, replace(WANTS, queue="video"), meta=video) > score(busy)


@settings(max_examples=60)
@given(
    st.builds(
        Called,
        st.just(NodeId(1)),
        st.integers(1, 9),
        uints(8),
        st.just(0),
        st.none() | uints(8),
        uints(8),
        st.none() | uints(32),
    ),
    weighings,
)
def test_one_reckons_of_itself_as_others_do(called: Called, told: Weighing) -> None:
    own = own_fitness(
        META,
        replace(called, age_ds=50),
        WANTS,
        weights_of(told),
        free_slots=called.free_slots,
        busy_pct=called.busy_pct,
    )
    assert own is not None
    assert sent_score(own.score) / SCORE_MAX == score(called, told=told)
    assert {part.name for part in own.parts} <= set(WEIGHED)


def test_an_offer_wants_what_its_task_wants_and_its_id_draws_the_lots() -> None:
    offer = Offer(
        task_id="t",
        ballot=Ballot(0, 1, 0, NodeId(9)),
        seq=0,
        attempt=1,
        cause=AttemptCause.FIRST,
        queue="video",
        pool="image",
        node_class="general",
        labels=(("zone", "a"),),
        needs=(("gpu", 1),),
    )
    assert wants_of(offer) == Wants(
        key="t",
        queue="video",
        pool="image",
        node_class="general",
        labels=(("zone", "a"),),
        needs=(("gpu", 1),),
    )


SCORES = st.dictionaries(
    st.integers(1, 2**64 - 1).map(NodeId), st.floats(0, 1), min_size=1, max_size=8
)


@settings(max_examples=60)
@given(scores=SCORES, key=st.text(max_size=4))
def test_the_callers_order_is_the_rank_that_each_finds_for_itself(
    scores: dict[NodeId, float], key: str
) -> None:
    found = in_order(scores, key)
    ranks = [estimate_rank(one, scores[one], scores, key) for one in found]
    assert ranks == list(range(1, len(scores) + 1))

    def compare(a: NodeId, b: NodeId) -> int:
        return -1 if better(scores[a], a, scores[b], b, key) else 1

    assert found == sorted(scores, key=cmp_to_key(compare))
