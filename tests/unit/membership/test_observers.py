"""Who observes whom."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from mesh.core.ids import NodeId
from mesh.membership.observers import Observers, observers_of, rank_of
from tests.unit.membership.pump import node_id

EVERYBODY = [node_id(number) for number in range(1, 101)]


def test_everybody_names_the_same_observers_in_any_order() -> None:
    for subject in EVERYBODY[:10]:
        first = observers_of(subject, EVERYBODY, 4)
        assert first == observers_of(subject, reversed(EVERYBODY), 4)
        assert len(set(first)) == 4
        assert subject not in first


def test_member_that_goes_moves_only_those_whom_it_observed() -> None:
    gone = EVERYBODY[50]
    rest = [other for other in EVERYBODY if other != gone]
    for subject in rest:
        before, after = observers_of(subject, EVERYBODY, 4), observers_of(subject, rest, 4)
        assert [known for known in before if known != gone] == after[: 4 - (gone in before)]


def test_a_rank_is_the_place_among_the_observers_or_none() -> None:
    for subject in EVERYBODY[:20]:
        observers = observers_of(subject, EVERYBODY, 4)
        for own in EVERYBODY:
            expected = observers.index(own) if own in observers else None
            assert rank_of(own, subject, EVERYBODY, 4) == expected
    assert rank_of(node_id(1), node_id(2), [], 4) == 0
    assert rank_of(node_id(1), node_id(2), [], 0) is None


def test_each_observes_about_as_many_as_it_is_observed_by() -> None:
    counts = Counter[NodeId]()
    for subject in EVERYBODY:
        counts.update(observers_of(subject, EVERYBODY, 4))
    assert sum(counts.values()) == 400
    assert max(counts.values()) <= 12


def test_few_others_all_observe() -> None:
    assert observers_of(node_id(1), [node_id(1), node_id(2)], 4) == [node_id(2)]
    assert observers_of(node_id(1), [], 4) == []


@pytest.mark.parametrize("seed", range(5))
def test_observers_that_are_kept_are_those_that_are_chosen(seed: int) -> None:
    rng = random.Random(seed)
    kept, living = Observers(node_id(1), 4), list[NodeId]()
    for _ in range(300):
        other = node_id(rng.randint(2, 12))
        if other in living:
            living.remove(other)
        else:
            living.append(other)
        kept.follow(other, is_living=other in living)
        if rng.random() < 0.5:  # nobody asks after each change
            assert kept.among(living, 4) == observers_of(node_id(1), living, 4)
            assert kept.among(living, 2) == observers_of(node_id(1), living, 2)
