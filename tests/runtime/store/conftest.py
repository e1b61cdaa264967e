"""A store for each test, closed after it: no thread is left."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.store.told import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """Give a place for a store."""
    with Shop(tmp_path / "store") as found:
        yield found
    assert "mesh-store" not in {thread.name for thread in threading.enumerate()}
