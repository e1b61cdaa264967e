"""Tests on a network of their own; where none can be had they are skipped, and say why."""

from __future__ import annotations

import pytest

from tests.net.ground import why_not


@pytest.fixture(scope="session")
def has_ground() -> None:
    """Skip the test unless this machine lets us make network namespaces with iptables."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
