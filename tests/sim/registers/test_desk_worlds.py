"""Desks in random worlds: no seed breaks an invariant, every register ends; a dropped rule of order is seen.

The sweep's seeds come in blocks, each a test of its own: one that was stopped goes on with `-k`.
"""

import pytest

from tests.sim.registers.desk_variants import OFTEN, READS_AS_OWNER, RIGHT, SELDOM
from tests.sim.registers.desk_world import DeskOutcome, run

SEEDS = 15
CALM = 10
SWEPT = 5_000
BLOCK = 250


def _hold(seeds: range) -> list[DeskOutcome]:
    outcomes = []
    for seed in seeds:
        outcome = run(seed, RIGHT)
        assert not outcome.fault, f"seed {seed}: {outcome.fault}"
        outcomes.append(outcome)
    return outcomes


def test_no_seed_breaks_an_invariant_and_every_register_comes_to_its_end() -> None:
    outcomes = _hold(range(SEEDS))
    grants = [outcome.grants for outcome in outcomes]
    print(
        f"\n{SEEDS} seeds: {sum(grants)} grants, latest end {max(o.ended_s for o in outcomes):.0f} s"
    )
    assert min(grants) >= 2  # one for each of two registers
    assert sum(grants) > 6 * SEEDS  # leases lapse, and are taken over


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(SEEDS, SWEPT, BLOCK), ids=lambda n: f"from_{n}")
def test_no_swept_seed_breaks_an_invariant(first: int) -> None:
    _hold(range(first, first + BLOCK))


def test_where_nothing_goes_wrong_no_lease_is_lost() -> None:
    for seed in range(CALM):
        outcome = run(seed, RIGHT, is_calm=True)
        assert not outcome.fault, f"seed {seed}: {outcome.fault}"


def test_an_owner_that_is_asked_past_its_lease_is_seen_to_lose_it() -> None:
    faults = [run(seed, READS_AS_OWNER, is_calm=True).fault for seed in range(CALM)]
    assert any("nothing had gone wrong" in fault for fault in faults)


def test_one_seed_gives_one_outcome() -> None:
    assert [run(seed, RIGHT) for seed in range(4)] == [run(seed, RIGHT) for seed in range(4)]


def _seen(name: str, seeds_max: int) -> None:
    habits = OFTEN.get(name) or SELDOM[name]
    faults = ((seed, run(seed, habits).fault) for seed in range(seeds_max))
    seed, fault = next(((seed, fault) for seed, fault in faults if fault), (seeds_max, ""))
    print(f"\n{name}: seen after {seed + 1} seeds: {fault}")
    assert fault


@pytest.mark.parametrize("name", OFTEN)
def test_a_dropped_rule_is_seen(name: str) -> None:
    _seen(name, 60)


@pytest.mark.sweep
@pytest.mark.parametrize("name", SELDOM)
def test_a_dropped_rule_that_shows_seldom_is_seen(name: str) -> None:
    _seen(name, 1000)
