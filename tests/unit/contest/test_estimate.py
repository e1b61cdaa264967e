"""What a node expects of others, by what it knows of them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cmp_to_key

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest.estimate import compared_fitness, estimate, in_order, wants_of
from mesh.contest.fitness import HALF_LIFE_S, PRIOR, STEP, Circumstances
from mesh.contest.known import AGE_S_MAX, Known, unknown
from mesh.contest.rank import better, estimate_rank
from mesh.core.address import Address
from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveMember, Wants
from mesh.wire.records import Metadata
from mesh.wire.task_messages import AttemptCause, Offer

FRESH = Known(heard_at=math.inf)
WANTS = Wants(key="t")


def member(free: int = 4, load: int = 0, **declared: object) -> LiveMember:
    return LiveMember(
        node_id=NodeId(1),
        boot=1,
        name="anna",
        address=Address("127.0.0.1", 1000),
        meta=Metadata(slots=4, **declared),  # type: ignore[arg-type]  # the test's own parts
        free_slots=free,
        load_pct=load,
    )


def score(one: LiveMember, wants: Wants = WANTS, known: Known = FRESH) -> float:
    found = estimate(10.0, one, wants, known)
    assert found is not None
    return found


def test_who_has_more_free_or_less_to_do_is_expected_to_be_fitter() -> None:
    assert score(member(4)) > score(member(1))
    assert score(member(4, load=10)) > score(member(4, load=90))
    assert score(member(4, load=255)) == score(member(4, load=9_999))


def test_what_is_old_says_little_and_what_was_never_heard_nothing() -> None:
    good = member(4)
    ages = [score(good, known=Known(heard_at=10.0 - age_s)) for age_s in (0, HALF_LIFE_S, 1e9)]
    assert ages == sorted(ages, reverse=True)
    assert ages[-1] == pytest.approx((1 - STEP) * PRIOR)
    assert score(good, known=unknown(NodeId(1))) == ages[-1]
    assert score(good, known=Known(heard_at=11.0)) == ages[0], "what comes from later is fresh"


def test_an_age_fits_into_a_call() -> None:
    assert Known().age_s(5.0) == AGE_S_MAX
    assert Known(heard_at=-1e9).age_s(5.0) == AGE_S_MAX
    assert Known(heard_at=3.0).age_s(5.0) == 2.0
    assert Known(heard_at=math.inf).age_s(5.0) == 0.0


def test_who_cannot_take_it_is_expected_not_to() -> None:
    assert estimate(10.0, member(0), WANTS, FRESH) is None
    assert estimate(10.0, member(), replace(WANTS, pool="image"), FRESH) is None


def test_who_is_dedicated_to_other_queues_is_expected_not_to_take_it_and_is_ahead_for_its_own() -> (
    None
):
    video = member(1, node_class="dedicated", queues=("video",))
    assert estimate(10.0, video, WANTS, FRESH) is None
    assert score(video, replace(WANTS, queue="video")) > score(member(1), WANTS)


def test_one_reckons_of_itself_as_others_do() -> None:
    one = member(2, load=30)
    own = compared_fitness(WANTS, Circumstances(meta=one.meta, free_slots=2, cpu_pct=30))
    assert own is not None
    assert own.score == score(one)
    assert {part.name for part in own.parts} == {"free_slots", "cpu", "match"}


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
