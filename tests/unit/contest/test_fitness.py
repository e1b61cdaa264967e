"""How fit a member is: hard needs, nine parts and what they explain, age, classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest.fitness import (
    HALF_LIFE_S,
    LAG_HALF_S,
    PRIOR,
    RTT_HALF_S,
    STEP,
    Circumstances,
    Fitness,
    Weights,
    fitness,
)
from mesh.contest.rank import bucket
from mesh.errors import ConfigError, LocalProtocolError
from mesh.placement.live_view import Wants
from mesh.wire.contest_messages import WEIGHED
from mesh.wire.records import Availability, Metadata

ANY = Wants(key="k", queue="video")
NAMES = [field.name for field in fields(Weights)]
EVERY_PART = Weights(checkpoint=0.05, warm=0.05, zone=0.05)
"""The default weights, and what weighs nothing by these."""

NOT_NUMBERS = (math.nan, math.inf, -math.inf, -1)


def known(**parts: object) -> Circumstances:
    """A member of four slots of which nothing else is known."""
    return changed(Circumstances(meta=Metadata(slots=4)), parts)


def changed(member: Circumstances, parts: Mapping[str, object]) -> Circumstances:
    return replace(member, **parts)  # type: ignore[arg-type]  # which field it is, only the test knows


def fit(
    circumstances: Circumstances,
    wants: Wants = ANY,
    weights: Weights = EVERY_PART,
    *,
    zone: str = "",
) -> Fitness:
    found = fitness(wants, circumstances, weights, zone=zone)
    assert found is not None
    return found


def value(found: Fitness, name: str) -> float:
    return next(part.value for part in found.parts if part.name == name)


def general(share: float) -> float:
    """Return the score of a member that is dedicated to nothing and so fit, by its parts."""
    return (1 - STEP) * share


def sum_of(found: Fitness) -> float:
    return sum(part.value * part.weight for part in found.parts)


def unknown_or(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[float | None]:
    return st.none() | numbers


seconds = st.floats(0, 1e6)
shares = st.floats(0, 1)
maybe = st.none() | st.booleans()
zones = st.sampled_from(["", "east", "west"])
metas = st.builds(
    Metadata,
    slots=st.integers(1, 8),
    labels=st.sampled_from([(), (("disk", "ssd"),), (("disk", "ssd"), ("rack", "3"))]),
    offers=st.sampled_from([(), (("gpu", 2),)]),
    node_class=st.sampled_from(["general", "dedicated", "emergency", "spot"]),
    queues=st.just(("video",)),
)
members = st.builds(
    Circumstances,
    meta=metas,
    free_slots=st.none() | st.integers(1, 9),
    busy_pct=st.none() | st.integers(0, 255),
    lag_s=unknown_or(seconds),
    history=unknown_or(shares),
    zone=zones,
    has_checkpoint=maybe,
    is_warm=maybe,
    rtt_s=unknown_or(seconds),
    age_s=seconds,
)
weightings = st.lists(st.floats(0, 100), min_size=9, max_size=9).filter(any)


def weights_of(numbers: list[float]) -> Weights:
    return Weights(**dict(zip(NAMES, numbers, strict=True)))


# Bounds, and what the parts explain.


@settings(max_examples=40)
@given(members, weightings, zones)
def test_a_score_and_every_part_lie_from_0_to_1(
    member: Circumstances, numbers: list[float], zone: str
) -> None:
    found = fit(member, ANY, weights_of(numbers), zone=zone)
    assert 0 <= found.score <= 1
    assert all(0 <= part.value <= 1 and 0 < part.weight <= 1 for part in found.parts)
    assert sum(part.weight for part in found.parts) == pytest.approx(1)


@settings(max_examples=50)
@given(members, weightings, zones)
def test_the_parts_explain_the_score_before_age_and_class(
    member: Circumstances, numbers: list[float], zone: str
) -> None:
    found = fit(member, ANY, weights_of(numbers), zone=zone)
    score = general(PRIOR + (sum_of(found) - PRIOR) * 0.5 ** (member.age_s / HALF_LIFE_S))
    score += STEP if member.meta.node_class == "dedicated" else 0
    assert found.score == pytest.approx(score)
    fresh = fit(replace(member, age_s=0.0, meta=replace(member.meta, node_class="general")), ANY)
    assert fresh.score == pytest.approx(general(sum_of(fresh)))


def test_every_part_is_weighed_once_and_by_default_those_that_members_know_of_each_other() -> None:
    assert [part.name for part in fit(known()).parts] == NAMES
    assert EVERY_PART.total == pytest.approx(1)
    by_default = fitness(ANY, known())
    assert by_default is not None
    assert {part.name for part in by_default.parts} == set(WEIGHED)


def test_the_best_dedicated_member_scores_1_any_other_a_bucket_less_and_the_worst_nearly_0() -> (
    None
):
    good = known(
        free_slots=4, busy_pct=0, lag_s=0.0, history=1.0, zone="east", has_checkpoint=True, is_warm=True, rtt_s=0.0
    )  # fmt: skip
    assert fit(good, zone="east").score == pytest.approx(1 - STEP)
    meta = replace(good.meta, node_class="dedicated", queues=("video",))
    assert fit(replace(good, meta=meta), zone="east").score == pytest.approx(1)
    bad = known(
        free_slots=1, busy_pct=255, lag_s=1e6, history=0.0, zone="west", has_checkpoint=False, is_warm=False, rtt_s=1e6
    )  # fmt: skip
    weights = replace(EVERY_PART, match=0, free_slots=0)
    assert fit(bad, ANY, weights, zone="east").score == pytest.approx(0, abs=1e-4)


@settings(max_examples=50)
@given(members, st.sampled_from(NAMES), weightings)
def test_a_weight_of_0_leaves_a_part_out(
    member: Circumstances, name: str, numbers: list[float]
) -> None:
    weights = replace(weights_of(numbers), **{name: 0.0, _other(name): 1.0})
    found = fit(member, ANY, weights)
    assert name not in [part.name for part in found.parts]
    best = {"free_slots": 9, "busy_pct": 0, "lag_s": 0.0, "history": 1.0, "rtt_s": 0.0}
    field = {"cpu": "busy_pct", "lag": "lag_s", "distance": "rtt_s"}.get(name, name)
    if field in best:
        better = changed(member, {field: best[field]})
        assert fit(better, ANY, weights) == found


def _other(name: str) -> str:
    return next(other for other in NAMES if other != name)


@given(weightings, st.floats(0.5, 100))
def test_only_the_shares_of_weights_matter(numbers: list[float], factor: float) -> None:
    member = known(free_slots=1, busy_pct=70, history=0.9)
    more = weights_of([number * factor for number in numbers])
    assert fit(member, ANY, weights_of(numbers)).score == pytest.approx(
        fit(member, ANY, more).score
    )


# Monotone in each part.


@pytest.mark.parametrize(
    ("field", "worse_to_better"),
    [
        ("free_slots", st.integers(1, 9)),
        ("busy_pct", st.integers(0, 255).map(lambda pct: -pct)),
        ("lag_s", seconds.map(lambda s: -s)),
        ("history", shares),
        ("rtt_s", seconds.map(lambda s: -s)),
        ("has_checkpoint", st.booleans()),
        ("is_warm", st.booleans()),
        ("zone", st.booleans()),
    ],
)
@settings(max_examples=40)
@given(data=st.data())
def test_better_in_one_part_never_scores_less(
    field: str, worse_to_better: st.SearchStrategy[float], data: st.DataObject
) -> None:
    member, numbers = data.draw(members), data.draw(weightings)
    worse, better = sorted([data.draw(worse_to_better), data.draw(worse_to_better)])

    def score(goodness: float) -> float:
        shown = ("west", "east")[int(goodness)] if field == "zone" else abs(goodness)
        other = changed(member, {field: shown})
        return fit(other, ANY, weights_of(numbers), zone="east").score

    assert score(worse) <= score(better)


def test_each_part_makes_a_difference() -> None:
    member = known(
        free_slots=2, busy_pct=50, lag_s=0.1, history=0.5, has_checkpoint=False, is_warm=False, rtt_s=0.1, zone="west"
    )  # fmt: skip
    score = fit(member, zone="east").score
    for better in (
        {"free_slots": 3},
        {"busy_pct": 40},
        {"lag_s": 0.05},
        {"history": 0.6},
        {"has_checkpoint": True},
        {"is_warm": True},
        {"rtt_s": 0.05},
        {"zone": "east"},
    ):
        assert fit(changed(member, better), zone="east").score > score, better


def test_what_is_special_and_not_asked_for_is_kept_for_those_that_need_it() -> None:
    gpu = Circumstances(meta=Metadata(slots=4, labels=(("disk", "ssd"),), offers=(("gpu", 1),)))
    plain = known()
    assert fit(gpu).score < fit(plain).score
    wants = Wants(key="k", labels=(("disk", "ssd"),), needs=(("gpu", 1),))
    assert value(fit(gpu, wants), "match") == 1
    assert value(fit(gpu, Wants(key="k", needs=(("gpu", 1),))), "match") == pytest.approx(2 / 3)
    assert value(fit(gpu, Wants(key="k", needs=(("tpu", 0),))), "match") == pytest.approx(1 / 3)
    spot = Circumstances(meta=Metadata(slots=4, node_class="spot"))
    assert value(fit(spot), "match") == 0.5
    assert value(fit(spot, Wants(key="k", node_class="spot")), "match") == 1


@pytest.mark.parametrize(
    ("name", "worth"),
    [
        ("free_slots", {1: 1 / 4, 4: 1, 5: 1}),
        ("busy_pct", {0: 1, 50: 1 / 2, 100: 0, 255: 0}),
        ("lag_s", {0.0: 1, LAG_HALF_S: 1 / 2, 3 * LAG_HALF_S: 1 / 4}),
        ("rtt_s", {0.0: 1, RTT_HALF_S: 1 / 2, 3 * RTT_HALF_S: 1 / 4}),
        ("history", {0.0: 0, 0.7: 0.7}),
        ("has_checkpoint", {False: 0, True: 1}),
        ("is_warm", {False: 0, True: 1}),
    ],
)
def test_what_each_part_is_worth(name: str, worth: dict[float, float]) -> None:
    part = {"busy_pct": "cpu", "lag_s": "lag", "rtt_s": "distance"}.get(
        name, name.removeprefix("has_").removeprefix("is_")
    )
    for known_as, expected in worth.items():
        assert value(fit(known(**{name: known_as})), part) == pytest.approx(expected)


# What is not known, and what is old.


def test_nothing_known_is_neither_good_nor_bad() -> None:
    found = fit(known())
    assert {part.value for part in found.parts if part.name != "match"} == {PRIOR}
    assert value(fit(known(zone="east")), "zone") == PRIOR
    assert value(fit(known(), zone="east"), "zone") == PRIOR


@settings(max_examples=50)
@given(members, weightings, seconds, seconds)
def test_age_draws_a_score_to_what_is_known_of_nobody(
    member: Circumstances, numbers: list[float], age_a: float, age_b: float
) -> None:
    member = replace(member, meta=replace(member.meta, node_class="general"))

    def score(age_s: float) -> float:
        return fit(replace(member, age_s=age_s), ANY, weights_of(numbers)).score

    younger, older = sorted([age_a, age_b])
    if score(0.0) >= general(PRIOR):
        assert score(0.0) >= score(younger) >= score(older) - 1e-12
        assert score(older) >= general(PRIOR)
    else:
        assert score(0.0) <= score(younger) <= score(older) + 1e-12
        assert score(older) <= general(PRIOR)


def test_after_a_half_life_half_is_believed() -> None:
    fresh = fit(known(free_slots=4, busy_pct=0)).score
    old = fit(known(free_slots=4, busy_pct=0, age_s=HALF_LIFE_S)).score
    assert old - general(PRIOR) == pytest.approx((fresh - general(PRIOR)) / 2)
    assert fit(known(free_slots=4, busy_pct=0, age_s=1e300)).score == general(PRIOR)


# Hard needs and classes.


@pytest.mark.parametrize(
    "wants",
    [
        Wants(key="k", pool="gpu"),
        Wants(key="k", node_class="spot"),
        Wants(key="k", labels=(("disk", "ssd"),)),
        Wants(key="k", needs=(("gpu", 1),)),
    ],
)
def test_who_does_not_meet_hard_needs_has_no_fitness(wants: Wants) -> None:
    assert fitness(wants, known(free_slots=4, busy_pct=0)) is None


def test_who_has_no_free_slot_has_no_fitness() -> None:
    assert fitness(ANY, known(free_slots=0)) is None
    assert fitness(ANY, Circumstances(meta=Metadata(slots=0), free_slots=1)) is None
    assert fitness(ANY, known(free_slots=1)) is not None


def test_a_dedicated_member_is_a_bucket_up_for_its_queues_and_has_no_fitness_for_others() -> None:
    meta = Metadata(slots=4, node_class="dedicated", queues=("video", "audio"))
    member = Circumstances(meta=meta, free_slots=2, busy_pct=30)
    other = replace(member, meta=replace(meta, node_class="general", queues=()))
    for queue in meta.queues:
        wants = replace(ANY, queue=queue)
        own, same = fit(member, wants), fit(other, wants)
        assert own.parts == same.parts
        assert own.score == same.score + STEP
        assert bucket(own.score) == bucket(same.score) + 1
    assert fitness(replace(ANY, queue="text"), member) is None
    assert fitness(replace(ANY, queue=""), member) is None


@settings(max_examples=50)
@given(members, weightings)
def test_a_dedicated_member_is_a_bucket_up_however_fit_both_are(
    member: Circumstances, numbers: list[float]
) -> None:
    scores = [
        fit(
            replace(member, meta=replace(member.meta, node_class=one, labels=(), offers=())),
            ANY,
            replace(weights_of(numbers), match=0.0, cpu=1.0),
        ).score
        for one in ("dedicated", "general")
    ]
    assert bucket(scores[0]) == bucket(scores[1]) + 1


def test_who_stands_by_or_is_unfit_has_no_fitness() -> None:
    meta = Metadata(slots=4, node_class="emergency", availability=Availability.STANDBY)
    idle = Circumstances(meta=meta, free_slots=4)
    assert fitness(ANY, idle) is None
    assert fitness(replace(ANY, node_class="emergency"), idle) is not None
    needed = replace(idle, meta=replace(meta, availability=Availability.OPEN))
    assert fit(needed).score < fit(known(free_slots=4)).score
    unfit = replace(idle, meta=replace(meta, availability=Availability.UNFIT))
    assert fitness(replace(ANY, node_class="emergency"), unfit) is None


# What is refused.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weight", [*NOT_NUMBERS, 1e7])
def test_what_is_no_weight_is_refused_by_name(name: str, weight: float) -> None:
    with pytest.raises(ConfigError, match=f"weight {name}: a number from 0"):
        Weights(**{name: weight})


def test_weights_that_weigh_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least one above 0"):
        weights_of([0.0] * 9)


@pytest.mark.parametrize("name", ["free_slots", "busy_pct", "lag_s", "history", "rtt_s", "age_s"])
@pytest.mark.parametrize("number", NOT_NUMBERS)
def test_what_is_no_number_is_refused_by_name(name: str, number: float) -> None:
    with pytest.raises(LocalProtocolError, match=f"contest {name}: a finite number"):
        known(**{name: number})


@pytest.mark.parametrize(("name", "number"), [("busy_pct", 256), ("history", 1.01)])
def test_what_is_too_much_is_refused_by_name(name: str, number: float) -> None:
    with pytest.raises(LocalProtocolError, match=f"contest {name}: .* from 0 to"):
        known(**{name: number})
