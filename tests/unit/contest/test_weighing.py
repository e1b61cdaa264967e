"""Weights as people set them: read, sent, and reckoned by."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.contest.fitness import DEFAULT_WEIGHTS, Weights
from mesh.contest.weighing import UNKNOWN, merged, shown, weighing, weights_of
from mesh.errors import ConfigError
from mesh.wire.contest_messages import WEIGHED, Weighing
from tests.unit.wire.strategies import weighings

NUMBERS = st.dictionaries(st.sampled_from(WEIGHED), st.floats(0, 1e6))


def test_every_part_is_weighed_or_said_to_be_unknown_and_why() -> None:
    assert {field.name for field in fields(Weights)} == {*WEIGHED, *UNKNOWN}
    assert list(WEIGHED) == sorted(WEIGHED)
    assert all(getattr(DEFAULT_WEIGHTS, name) == 0 for name in UNKNOWN)
    assert all(getattr(DEFAULT_WEIGHTS, name) > 0 for name in WEIGHED)


def test_the_default_weights_are_sent_as_none_at_all() -> None:
    assert (
        weighing(DEFAULT_WEIGHTS)
        == merged((), {})
        == merged((), {"cpu": DEFAULT_WEIGHTS.cpu})
        == ()
    )
    assert weights_of(()) == DEFAULT_WEIGHTS
    assert shown(()) == {name: getattr(DEFAULT_WEIGHTS, name) for name in WEIGHED}


def test_parts_that_are_not_named_weigh_what_they_do_by_default() -> None:
    weights = weights_of(merged((), {"history": 5, "lag": 0}))
    assert (weights.history, weights.lag, weights.cpu) == (5, 0, DEFAULT_WEIGHTS.cpu)
    assert (weights.zone, weights.warm, weights.checkpoint) == (0, 0, 0)


@given(NUMBERS)
def test_what_is_set_is_what_is_reckoned_by(given: dict[str, float]) -> None:
    try:
        told = merged((), given)
    except ConfigError as error:
        assert "at least one above 0" in str(error)  # noqa: PT017 - it is raised for few of them
        assert not any(given[name] for name in WEIGHED)
        return
    expected = {name: getattr(DEFAULT_WEIGHTS, name) for name in WEIGHED} | given
    assert shown(told) == expected


@given(weighings)
def test_whatever_can_be_sent_can_be_reckoned_by(told: Weighing) -> None:
    assert weighing(weights_of(told)) in {told, ()}


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_what_nobody_can_tell_of_others_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(ConfigError, match=f"weight {name}: it cannot be set, as {UNKNOWN[name]}"):
        merged((), {name: 0.5})


def test_a_part_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="one of cpu, distance, free_slots, history, lag, match"):
        merged((), {"speed": 1})


def test_parts_that_are_not_named_stay_as_they_were_set() -> None:
    before = merged((), {"history": 5, "lag": 0})
    after = weights_of(merged(before, {"cpu": 2}))
    assert (after.history, after.lag, after.cpu) == (5, 0, 2)
    assert merged(before, {"history": None, "lag": None}) == ()
    assert merged(before, {}) == ()


def test_what_would_leave_no_part_that_counts_is_refused() -> None:
    alone = merged((), dict.fromkeys(WEIGHED, 0.0) | {"cpu": 1.0})
    with pytest.raises(ConfigError, match="at least one above 0"):
        merged(alone, {"cpu": 0})
