"""Tasks in random worlds: no seed breaks an invariant, every task ends; dropped rules are seen.

The sweep's seeds come in blocks, each a test of its own: one that was stopped goes on with `-k`.
"""

import pytest

from mesh.wire.task_messages import AttemptCause
from tests.sim.tasks.variants import RIGHT, WRONG
from tests.sim.tasks.world import Outcome, run

SEEDS = 15
SWEPT = 3_000
BLOCK = 100
SEEN_WITHIN = 200
SEEN_FROM = {
    "who is named starts before a majority renewed its lease": 28,
    "a verdict is written without the token": 43,
}
"""Where looking begins for what few seeds show; the others begin with the first."""


def _hold(seeds: range) -> list[Outcome]:
    outcomes = []
    for seed in seeds:
        outcome = run(seed, RIGHT)
        assert not outcome.fault, f"seed {seed}: {outcome.fault}"
        outcomes.append(outcome)
    return outcomes


def test_no_seed_breaks_an_invariant_and_every_task_comes_to_its_end() -> None:
    outcomes = _hold(range(SEEDS))
    tasks, runs = (sum(each) for each in zip(*((o.tasks, o.runs) for o in outcomes), strict=True))
    causes = dict.fromkeys(AttemptCause, 0)
    for outcome in outcomes:
        for cause, count in outcome.causes:
            causes[cause] += count
    words = ", ".join(f"{count} {cause.word}" for cause, count in causes.items() if count)
    print(f"\n{SEEDS} seeds: {tasks} tasks, {runs} runs: {words}")
    assert all(
        causes[cause]
        for cause in (
            AttemptCause.FIRST,
            AttemptCause.RETRY,
            AttemptCause.LAPSE,
            AttemptCause.CRASH,
            AttemptCause.RELEASED,
        )
    )


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(SEEDS, SWEPT, BLOCK), ids=lambda n: f"from_{n}")
def test_no_swept_seed_breaks_an_invariant(first: int) -> None:
    _hold(range(first, first + BLOCK))


def test_one_seed_gives_one_outcome() -> None:
    assert [run(seed, RIGHT) for seed in range(3)] == [run(seed, RIGHT) for seed in range(3)]


@pytest.mark.parametrize("name", WRONG)
def test_a_dropped_rule_is_seen(name: str) -> None:
    first = SEEN_FROM.get(name, 0)
    faults = ((seed, run(seed, WRONG[name]).fault) for seed in range(first, SEEN_WITHIN))
    seed, fault = next(((seed, fault) for seed, fault in faults if fault), (SEEN_WITHIN, ""))
    print(f"\n{name}: seen with seed {seed}: {fault}")
    assert fault
