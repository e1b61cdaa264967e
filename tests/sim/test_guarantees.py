"""What a mesh promises of tasks, of whole nodes under faults: no seed breaks it; a dropped rule is seen.

Acknowledged is not lost; no two runs of a task at one time; tokens rise; one end, and it stays; and once faults
stop, everything ends. The sweep's seeds come in blocks, each a test of its own: one that was stopped goes on with
`-k`.
"""

from __future__ import annotations

import pytest

from mesh.sim.faults import FaultKind
from mesh.wire.task_messages import AttemptCause
from tests.sim.guarantees.variants import HARMLESS, WRONG
from tests.sim.guarantees.world import KINDS, GuaranteesWorld, Outcome

SEEDS = 8
SWEPT = 1_000
BLOCK = 50
SEEN = (50, 56, 58, *range(12, 24))
"""Where each is seen within a few; a host without a guardian in one of about twenty, the first three among them."""


FELL = (21, 239)
"""Seeds that fell once: a leaving voter's timer was in the past for ever; voters changed while one named a task's owner."""


def _hold(seeds: range) -> list[Outcome]:
    outcomes = []
    for seed in seeds:
        outcome = GuaranteesWorld(seed).run()
        log = "\n".join(f"{at_s:9.4f}  {text}" for at_s, text, _ in outcome.log)
        assert not outcome.fault, f"seed {seed}: {outcome.fault}\n{log}"
        outcomes.append(outcome)
    return outcomes


def test_no_seed_breaks_a_promise_and_every_task_comes_to_its_end() -> None:
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
    begun = {text.split()[0] for o in outcomes for _, text, _ in o.log}
    drawn = {str(kind) for kind in (*KINDS, FaultKind.DISK)}
    print(f"not begun in these: {', '.join(sorted(drawn - begun)) or 'none'}")
    assert len(drawn - begun) <= 4, (
        "most kinds of trouble are met in every run, all of them in the sweep"
    )


@pytest.mark.parametrize("seed", FELL)
def test_seed_that_fell_holds(seed: int) -> None:
    _hold(range(seed, seed + 1))


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(SEEDS, SWEPT, BLOCK), ids=lambda n: f"from_{n}")
def test_no_swept_seed_breaks_a_promise(first: int) -> None:
    _hold(range(first, first + BLOCK))


@pytest.mark.parametrize("name", WRONG)
def test_a_dropped_rule_is_seen(name: str) -> None:
    faults = ((seed, WRONG[name](seed).run().fault) for seed in SEEN)
    seed, fault = next(((seed, fault) for seed, fault in faults if fault), (-1, ""))
    print(f"\n{name}: seen with seed {seed}: {fault}")
    assert fault


@pytest.mark.parametrize("seed", [50, *(pytest.param(n, marks=pytest.mark.sweep) for n in SEEN)])
@pytest.mark.parametrize("name", HARMLESS)
def test_what_the_other_voters_make_good_is_seen_by_nobody(name: str, seed: int) -> None:
    assert not HARMLESS[name](seed).run().fault
