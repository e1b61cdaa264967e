"""Tests on a network of their own; where none can be had they are skipped, and say why."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.net.ground import why_not
from tests.net.scenarios import QUICK, SHORT, Outcome, Scenario

_ROWS = pytest.StashKey[list[str]]()
_HEAD = "| what befell the network | healed | median, s | worst, s | accused |"
_RULE = "| --- | --- | --- | --- | --- |"


@pytest.fixture(scope="session")
def has_ground() -> None:
    """Skip the test unless this machine lets us make network namespaces with iptables."""
    reason = why_not()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def short_runs(request: pytest.FixtureRequest) -> Iterator[dict[Scenario, Future[Outcome]]]:
    """Play the quick scenarios that are asked for, all at once and beside the other tests: they mostly wait."""
    names = {item.name for item in request.session.items}
    asked = [scenario for scenario in QUICK if f"test_the_mesh_heals[{scenario.__name__}]" in names]
    with ThreadPoolExecutor(len(QUICK)) as pool:
        yield {s: pool.submit(s, SHORT) for s in asked if not why_not()}


@pytest.fixture
def table(request: pytest.FixtureRequest) -> list[str]:
    """Rows of the table that is printed when all tests are over."""
    return request.config.stash.setdefault(_ROWS, [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    rows = config.stash.get(_ROWS, [])
    if rows:
        terminalreporter.section("after the network was cut")
        for line in (_HEAD, _RULE, *rows):
            terminalreporter.write_line(line)
