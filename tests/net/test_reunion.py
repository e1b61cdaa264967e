"""After any fault of the network the mesh is one again within five seconds, and nobody had to ask for it.

The short form plays some scenarios once, on a quick profile. The long form plays each ten times with the
timings of a real site. Both print a table when all tests are over.
"""

from __future__ import annotations

import functools
import statistics
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.net.scenarios import ALL, LONG, QUICK, SHORT, Form, Outcome, Scenario

RUNS = 10
AT_ONCE = 5

pytestmark = pytest.mark.usefixtures("has_ground")
by_scenario = functools.partial(
    pytest.mark.parametrize, "scenario", ids=lambda scenario: str(scenario.__name__)
)


@by_scenario(QUICK)
def test_the_mesh_heals(
    scenario: Scenario, short_runs: dict[Scenario, Future[Outcome]], table: list[str]
) -> None:
    assert_healed(scenario, SHORT, [short_runs[scenario]], table)


@pytest.mark.sweep
@by_scenario(ALL)
def test_the_mesh_heals_in_each_of_ten_runs(scenario: Scenario, table: list[str]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [pool.submit(scenario, LONG) for _ in range(RUNS)]
    assert_healed(scenario, LONG, runs, table)


def assert_healed(
    scenario: Scenario, form: Form, runs: list[Future[Outcome]], table: list[str]
) -> None:
    """Add what came of the runs to the table, and raise what went wrong."""
    errors = [error for run in runs if isinstance(error := run.exception(), Exception)]
    outcomes = [run.result() for run in runs if run.exception() is None]
    healed_s = [outcome.healed_s for outcome in outcomes] or [float("nan")]
    counts = [outcome.accused for outcome in outcomes if outcome.accused is not None]
    accused = sum(counts) if counts else "-"
    table.append(
        f"| {scenario.__doc__} ({form.profile}) | {len(outcomes)} of {len(runs)} | "
        f"{statistics.median(healed_s):.1f} | {max(healed_s):.1f} | {accused} |"
    )
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(runs)} runs went wrong", errors)
