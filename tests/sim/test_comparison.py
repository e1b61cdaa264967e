"""Runs pooled over seeds: what is added up, what is left out, and what the intervals say."""

from __future__ import annotations

import json

import pytest

from mesh.sim.anomalies import Anomalies, Crash, Harm
from mesh.sim.comparison import Comparison, compare, estimate, student, to_text
from mesh.sim.variants import MODEL, OURS, VARIANTS, Job, Run, jobs_of, recall

WHERE = Anomalies(members=16, blocked=3, block_s=6.0, total_s=12.0)
ELSEWHERE = Anomalies(members=16, blocked=3, block_s=8.0, total_s=12.0)
NEVER = Crash(is_lost=True, first_s=None, median_s=None, last_s=None, missing=7)


def at(median_s: float, *, is_lost: bool = True) -> Crash:
    return Crash(
        is_lost=is_lost,
        first_s=median_s - 0.1,
        median_s=median_s,
        last_s=median_s + 0.1,
        missing=0,
    )


def killed(median_s: float) -> Crash:
    return at(median_s, is_lost=False)


def harm(*crashes: Crash, false: int = 0) -> Harm:
    return Harm(
        false_at_healthy=false,
        false_in_total=2 * false,
        blocked_accused=1,
        crashes=crashes,
        packets=10,
    )


def trial(seed: int, swim: Harm, model: Harm, ours: Harm, where: Anomalies = WHERE) -> list[Run]:
    found = {"SWIM": swim, MODEL: model, OURS: ours}
    return [Run(Job(seed, name, where), found[name]) for name in VARIANTS]


def compared(*trials: list[Run]) -> Comparison:
    return compare(run for runs in trials for run in runs)


def test_counts_of_all_seeds_are_added_and_each_crash_is_compared_with_itself() -> None:
    found = compared(
        trial(1, harm(at(5), at(9), false=4), harm(at(6), at(8), false=1), harm(at(5), at(7))),
        trial(2, harm(at(5), at(5), false=4), harm(at(9), at(5), false=2), harm(at(8), at(4))),
    )
    cell = found.cells[WHERE]
    assert found.seeds == (1, 2)
    assert cell == found.total
    assert (cell.crashes, cell.left_out) == (4, 0)
    sums = [(cell.sums[name].false_at_healthy, cell.sums[name].false_in_total) for name in VARIANTS]
    assert sums == [(8, 16), (3, 6), (0, 0)]
    assert cell.sums[MODEL].lost_s == pytest.approx(7.0)
    assert cell.sums[OURS].lost_last_s == pytest.approx(6.1)
    assert cell.lost is not None
    assert cell.lost.mean_s == pytest.approx(-1.0)
    assert (cell.lost.count, cell.lost.side) == (4, "below")
    assert cell.killed is None
    assert found.sides(is_lost=True) == {"above": 0, "below": 1, "around": 0}
    assert found.sides(is_lost=False) == {"above": 0, "below": 0, "around": 0}


def test_the_killed_and_the_lost_are_told_apart_and_the_killed_may_be_found_at_once() -> None:
    model = harm(killed(5), at(6), killed(7), at(8))
    ours = harm(killed(0.004), at(5), killed(0.006), at(9))
    cell = compared(trial(1, model, model, ours)).total
    assert cell.left_out == 0
    assert cell.killed is not None
    assert cell.lost is not None
    assert cell.killed.mean_s == pytest.approx(-5.995)
    assert cell.lost.mean_s == pytest.approx(0.0)
    assert cell.sums[OURS].killed_s == pytest.approx(0.005)
    assert cell.sums[OURS].lost_s == pytest.approx(7.0)


def test_who_was_held_dead_before_it_was_killed_is_left_out() -> None:
    model, ours = harm(killed(5), killed(5)), harm(killed(0.0), killed(0.004))
    cell = compared(trial(1, model, model, ours)).total
    assert (cell.crashes, cell.left_out) == (2, 1)


@pytest.mark.parametrize("variant", list(VARIANTS))
def test_a_crash_that_any_variant_found_too_soon_is_left_out_in_all(variant: str) -> None:
    soon, fair = WHERE.shortest_suspicion_s - 0.01, WHERE.shortest_suspicion_s
    harms = {name: harm(at(5), at(fair)) for name in VARIANTS} | {variant: harm(at(5), at(soon))}
    cell = compared(trial(1, harms["SWIM"], harms[MODEL], harms[OURS])).total
    assert (cell.crashes, cell.left_out) == (2, 1)
    assert cell.lost is not None
    assert cell.lost.count == 1
    assert [cell.sums[name].lost_s for name in VARIANTS] == [5, 5, 5]


def test_a_crash_that_is_never_noticed_is_counted_and_shown() -> None:
    found = compared(trial(1, harm(at(5), at(6)), harm(at(5), at(6)), harm(at(5), NEVER)))
    assert [found.total.sums[name].missing for name in VARIANTS] == [0, 0, 7]
    assert found.total.lost is not None
    assert found.total.lost.count == 1
    assert "| 7 | 10 |" in to_text(found).splitlines()[4]


def test_a_cell_of_a_seed_that_was_not_run_to_the_end_is_left_out() -> None:
    whole = trial(1, harm(at(5)), harm(at(5)), harm(at(5)))
    part = trial(2, harm(at(5)), harm(at(5)), harm(at(5)))[:2]
    elsewhere = trial(1, harm(at(5)), harm(at(5)), harm(at(5)), ELSEWHERE)[1:]
    found = compared(whole, part, elsewhere)
    assert found.seeds == (1,)
    assert list(found.cells) == [WHERE]
    assert found.total.crashes == 1


def test_ours_is_worse_where_it_accuses_more_often() -> None:
    few, many = harm(at(5), false=1), harm(at(5), false=2)
    found = compared(trial(1, few, few, many), trial(1, few, many, few, ELSEWHERE))
    assert found.worse() == 1
    assert f"more often than {MODEL} in 1 of 2" in to_text(found)


@pytest.mark.parametrize(
    ("freedom", "quantile", "error"), [(2, 4.303, 0.04), (5, 2.571, 0.002), (71, 1.994, 1e-3)]
)
def test_students_quantile_is_that_of_the_tables(
    freedom: int, quantile: float, error: float
) -> None:
    assert student(freedom) == pytest.approx(quantile, rel=error)


def test_the_interval_is_students() -> None:
    found = estimate([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert found is not None
    assert found.mean_s == 3.5
    assert found.low_s == pytest.approx(3.5 - 2.571 * 1.8708 / 6**0.5, abs=0.01)
    assert found.high_s == pytest.approx(3.5 + 2.571 * 1.8708 / 6**0.5, abs=0.01)
    assert found.side == "above"


def test_too_few_differences_have_no_interval_and_none_no_mean() -> None:
    assert estimate([]) is None
    found = estimate([1.0, 1.0])
    assert found is not None
    assert (found.mean_s, found.low_s, found.side) == (1.0, None, "around")


def test_the_text_has_a_line_for_each_variant_and_each_cell_and_the_json_has_all_of_it() -> None:
    same = harm(at(5), at(6), at(7))
    found = compared(trial(3, same, same, same), trial(3, same, same, same, ELSEWHERE))
    lines = to_text(found).splitlines()
    assert len(lines) == (2 + 3) + 1 + (2 + 2) + 1 + 3
    assert [line.split(" | ")[0] for line in lines[2:5]] == [f"| {name}" for name in VARIANTS]
    assert lines[8].startswith("| 6 s | 3 | 0 / 0 | 0 / 0 | 0 / 0 | 3 | 0 | - / 6.00 s |")
    assert lines[8].endswith("| - | +0.00 s (+0.00 to +0.00) |")
    data = json.loads(json.dumps(found.to_json()))
    assert data["seeds"] == [3]
    assert [cell["block_s"] for cell in data["cells"]] == [6.0, 8.0]
    assert data["cells"][0]["sums"][OURS]["lost_s"] == 6
    assert data["total"]["lost"]["side"] == "around"


def test_runs_are_found_again_in_their_json_and_those_of_other_jobs_are_not() -> None:
    jobs = jobs_of((1, 2), is_quick=True)
    assert len(set(jobs)) == 2 * 6 * len(VARIANTS)
    runs = [Run(job, harm(at(5 + place))) for place, job in enumerate(jobs)]
    lines = [json.loads(json.dumps(run.to_json())) for run in runs]
    assert recall(jobs, lines) == dict(zip(jobs, runs, strict=True))
    assert recall(jobs_of((2,), is_quick=True), lines).keys() == set(jobs[18:])
    assert recall(jobs_of((1,), is_quick=False), lines) == {}
    with pytest.raises(KeyError):
        recall(jobs, [{"seed": 1}])
