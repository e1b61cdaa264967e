"""After any fault of the network the mesh is one again within five seconds, and nobody had to ask for it.

The short form plays each scenario once, on a quick profile, all at the same time: they mostly wait. The
long form plays each ten times with the timings of a real site, and prints a table.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.net.scenarios import ALL, LONG, QUICK, SHORT, Form, Outcome, Scenario

RUNS = 10
AT_ONCE = 5

pytestmark = pytest.mark.usefixtures("has_ground")
by_scenario = functools.partial(
    pytest.mark.parametrize, "scenario", ids=lambda scenario: str(scenario.__name__)
)


@pytest.fixture(scope="module")
def short_runs(
    request: pytest.FixtureRequest, has_ground: None
) -> Iterator[dict[Scenario, Future[Outcome]]]:
    """All scenarios that are asked for, each on a network of its own."""
    names = {item.name for item in request.session.items}
    asked = [s for s in QUICK if f"{test_the_mesh_heals.__name__}[{s.__name__}]" in names]
    with ThreadPoolExecutor(len(QUICK)) as pool:
        yield {scenario: pool.submit(scenario, SHORT) for scenario in asked}


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
    accused = sum(outcome.accused for outcome in outcomes)
    table.append(
        f"| {scenario.__doc__} ({form.profile}) | {len(outcomes)} of {len(runs)} | "
        f"{statistics.median(healed_s):.1f} | {max(healed_s):.1f} | {accused} |"
    )
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(runs)} runs went wrong", errors)
