"""What all tests share: the `--sweep` option and the settings of the property tests.

Without `--sweep` a run draws the same examples every time, so that a red check is red for everybody.
With it, fresh ones and ten times as many: that is how new faults are found.
"""

from __future__ import annotations

import signal

import hypothesis
import pytest

# A shared machine may stall anywhere: how long one example took says nothing about the code.
_QUIET = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile(
    "check", derandomize=True, deadline=None, print_blob=True, suppress_health_check=_QUIET
)
hypothesis.settings.register_profile(
    "sweep", max_examples=1000, deadline=None, print_blob=True, suppress_health_check=_QUIET
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sweep", action="store_true", help="run the long sweeps too, and draw fresh examples"
    )


def pytest_configure(config: pytest.Config) -> None:
    # A shell that runs the tests in the background ignores Ctrl-C for them, and so would every child.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    hypothesis.settings.load_profile("sweep" if config.getoption("--sweep") else "check")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--sweep"):
        return
    skip = pytest.mark.skip(reason="long sweep: run with --sweep")
    for item in items:
        if item.get_closest_marker("sweep"):
            item.add_marker(skip)
