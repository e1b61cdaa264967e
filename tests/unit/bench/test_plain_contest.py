"""The plain scheme: right where nothing is lost, and two owners where a better score was not heard."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.bench.contest_world import NETWORKS, Setting
from mesh.bench.plain_contest import ANSWER_S, SPREAD, Outcome, patience_s, play
from mesh.sim.network import Conditions, Network

SCORES = (0.4, 0.9, None, 0.7, 0.2)


def played(conditions: Conditions, seed: int, *scores: float | None) -> Outcome:
    return play(Network(seed, conditions), random.Random(seed), 0, scores or SCORES)


def test_the_best_takes_the_task_after_all_have_answered() -> None:
    conditions = Conditions(delay_s=0.01, jitter_s=0.0)
    found = played(conditions, 1)
    assert found.owners == (1,)
    assert found.answers == 4, "who cannot take it keeps silent"
    assert found.grant_s == pytest.approx(0.01 + patience_s(conditions))
    assert found.grant_s == pytest.approx(0.01 + ANSWER_S * (1 + SPREAD) + 0.01)


@given(
    scores=st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=12),
    seed=st.integers(0, 1_000),
    network=st.sampled_from(sorted(NETWORKS)),
)
@settings(max_examples=40, deadline=None)
def test_where_nothing_is_lost_the_best_alone_takes_it_however_delays_vary(
    scores: list[float | None], seed: int, network: str
) -> None:
    found = played(Setting(len(scores), network, 0.0).conditions, seed, *scores)
    able = [score for score in scores if score is not None]
    assert len(found.owners) == (1 if able else 0)
    assert found.answers == len(able)
    if able:
        assert scores[found.owners[0]] == max(able)


def test_loss_makes_two_owners_of_one_task() -> None:
    conditions = Setting(5, "lan", 0.05).conditions
    outcomes = [played(conditions, seed) for seed in range(200)]
    wrong = [one for one in outcomes if len(one.owners) > 1]
    assert 5 <= len(wrong) <= 40, "the second best misses the best one's word in a twentieth"
    assert all(len(set(one.owners)) == len(one.owners) for one in wrong)


def test_who_never_heard_of_the_call_takes_nothing() -> None:
    found = played(Conditions(delay_s=0.01, loss_ratio=1.0), 1)
    assert found == Outcome(owners=(0,), answers=1, grant_s=found.grant_s), (
        "the caller hears itself"
    )
