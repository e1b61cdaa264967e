"""Every schedule of the small scenarios holds, and every rule that is dropped is missed in one of them.

When last explored to the end (states, then seconds of one core):

    two claimants, one ballot each                                     21,039    0.8
    two claimants, commits that take time                              14,202    0.7
    a claimant claims again what it has, then another claims           48,987    2.3
    created by its first voter and by another, and claimed              7,232    0.3
    two claimants that renew, commits that take time                  158,999    5
    two claimants, two rounds of renewals                             220,527    8
    two claimants, two ballots each                                   724,554   34
    a claimant restarts, then another claims                          626,330   30
    a claimant restarts, its end is proved                            332,585   11
    a claimant restarts, beside two others                            750,912   34
    created by its first voter and by another, and claimed by two     218,965    8

Not here: changes of the roster, refusals (an asker may give up at any time instead), messages sent again
(each may be read again at any time anyway), doubt that ends as lost, and clocks beyond their bounds.
"""

import pytest

from tests.exhaustive import scenarios
from tests.exhaustive.scenarios import Scenario
from tests.exhaustive.schedule import Explored, explore
from tests.exhaustive.variants import RIGHT, VARIANTS, Variant
from tests.exhaustive.world import RegisterWorld

SMALL = [
    scenarios.ONE_CLAIM_EACH,
    scenarios.SLOW_COMMITS,
    scenarios.CLAIMS_AGAIN,
    scenarios.CREATED_TWICE,
    scenarios.CREATED_SLOWLY,
    scenarios.FIRST_RETURNS,
    scenarios.CREATES_AGAIN,
]
LARGE = [
    scenarios.SLOW_COMMITS_RENEWED,
    scenarios.TWO_ROUNDS,
    scenarios.TWO_CLAIMS_EACH,
    scenarios.RETURNS,
    scenarios.RETURNS_AMONG_THREE,
    scenarios.PROVED,
    scenarios.CREATED_AND_CLAIMED_TWICE,
]


def _check(scenario: Scenario) -> Explored:
    """Explore it to its end; nothing is at fault, and everybody got as far as it could."""
    world = RegisterWorld(RIGHT, scenario)
    explored = explore(world)
    print(f"\n{scenario.name}: {explored}")
    assert not explored.fault, explored
    assert explored.is_complete
    claims = sum(turn.kind is scenarios.Kind.CLAIM for turn in scenario.turns)
    coverage = world.coverage()
    assert coverage["wrote"] == len(scenario.turns)
    assert coverage["granted"] == claims
    assert coverage["completed"] == claims
    return explored


@pytest.mark.parametrize("scenario", SMALL, ids=lambda one: one.name)
def test_no_schedule_of_a_small_scenario_breaks_an_invariant(scenario: Scenario) -> None:
    _check(scenario)


@pytest.mark.sweep
@pytest.mark.parametrize("scenario", LARGE, ids=lambda one: one.name)
def test_no_schedule_of_a_large_scenario_breaks_an_invariant(scenario: Scenario) -> None:
    _check(scenario)


def test_voters_that_differ_in_nothing_but_their_names_are_met_once() -> None:
    apart = RegisterWorld(RIGHT, scenarios.apart(scenarios.FIRST_RETURNS))
    together = RegisterWorld(RIGHT, scenarios.FIRST_RETURNS)
    every, fewer = explore(apart), explore(together)
    assert not every.fault
    assert fewer.states < every.states <= 2 * fewer.states
    assert apart.coverage() == together.coverage()


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.name)
def test_a_dropped_rule_is_found_out(variant: Variant) -> None:
    world = RegisterWorld(variant.cores, variant.scenario, minds_traces=variant.minds_traces)
    explored = explore(world, states_max=500_000)
    print(f"\n{variant.name}: {explored}")
    assert explored.fault
    assert variant.shows in explored.fault
