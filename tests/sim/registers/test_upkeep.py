"""Voters that compare, ship and purge in random worlds: all become equal, what is over goes, and nothing comes back.

The sweep's seeds come in blocks, each a test of its own: one that was stopped goes on with `-k`.
"""

from dataclasses import replace

import pytest

from tests.sim.registers import desk_variants, desk_world
from tests.sim.registers.upkeep_variants import KEEPING, PURGING, RIGHT
from tests.sim.registers.upkeep_world import TIMES, UpkeepHabits, UpkeepOutcome, keeping, run

SEEDS = 5
SWEPT = 2_000
BLOCK = 100


def _hold(seeds: range, *, purges: bool) -> list[UpkeepOutcome]:
    outcomes = []
    for seed in seeds:
        outcome = run(seed, RIGHT, purges=purges)
        assert not outcome.fault, f"seed {seed}: {outcome.fault}"
        outcomes.append(outcome)
    return outcomes


def test_what_is_over_goes_everywhere_and_nothing_of_it_comes_back() -> None:
    outcomes = _hold(range(SEEDS), purges=True)
    lives = sum(outcome.lives for outcome in outcomes)
    print(f"\n{SEEDS} seeds: {lives} lives, latest end {max(o.ended_s for o in outcomes):.0f} s")
    assert lives > 2 * SEEDS, "registers are made anew, and purged again"


def test_what_is_kept_becomes_equal_at_all_voters() -> None:
    outcomes = _hold(range(SEEDS), purges=False)
    filled = sum(outcome.filled for outcome in outcomes)
    print(f"\n{SEEDS} seeds: {filled} shipped, latest end {max(o.ended_s for o in outcomes):.0f} s")
    assert filled


def test_one_seed_gives_one_outcome() -> None:
    assert run(2, RIGHT) == run(2, RIGHT)


def test_desks_that_ship_break_no_invariant_of_desks() -> None:
    habits = replace(desk_variants.RIGHT, keeping=keeping(UpkeepHabits()))
    for seed in range(SEEDS):
        outcome = desk_world.run(seed, habits)
        assert not outcome.fault, f"seed {seed}: {outcome.fault}"


def test_where_nothing_goes_wrong_no_lease_is_lost_by_shipping() -> None:
    habits = replace(desk_variants.RIGHT, keeping=keeping(UpkeepHabits(times=TIMES)))
    for seed in range(5):
        outcome = desk_world.run(seed, habits, is_calm=True)
        assert not outcome.fault, f"seed {seed}: {outcome.fault}"


@pytest.mark.sweep
@pytest.mark.parametrize("purges", [True, False])
@pytest.mark.parametrize("first", range(SEEDS, SWEPT, BLOCK), ids=lambda n: f"from_{n}")
def test_no_swept_seed_brings_anything_back(first: int, purges: bool) -> None:
    _hold(range(first, first + BLOCK), purges=purges)


@pytest.mark.parametrize("name", [*PURGING, *KEEPING])
def test_a_dropped_rule_is_seen(name: str) -> None:
    purges = name in PURGING
    habits = PURGING[name] if purges else KEEPING[name]
    faults = ((seed, run(seed, habits, purges=purges).fault) for seed in range(100))
    seed, fault = next(((seed, fault) for seed, fault in faults if fault), (0, ""))
    print(f"\n{name}: seen after {seed + 1} seeds: {fault}")
    assert fault
