"""Seeds that once broke an invariant: each stays here, with what it had found."""

from __future__ import annotations

import pytest

from mesh.sim.scenario import run

FALLEN = {
    13: "a member that was forgotten, and its forgetting too, was met as new: the checker took it for going back",
    25: "a disk and a clock set back, and nobody left who knew the higher number",
    848: "somebody whom no look had seen dead was forgotten, and met again",
    1040: "a node that had met a member took its death from a welcome without giving it time to refute",
    1080: "the same: its death from a welcome while it was only suspected",
    1164: "timers overdue after a pause were counted as a pause with each datagram that had waited",
    1543: "who left was forgotten and met again between two looks",
}


SLOW = {1080, 1543}
"""Of these one takes as long as all the others together."""


@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, marks=[pytest.mark.sweep] * (seed in SLOW)) for seed in FALLEN],
)
def test_invariants_hold_for_a_seed_that_fell(seed: int) -> None:
    result = run(seed)
    assert result.has_held, result.to_text()
