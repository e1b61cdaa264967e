"""What the tests of the runtime share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest
import trio

Until: TypeAlias = Callable[[Callable[[], bool]], Awaitable[None]]


async def _until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - the kernel sets no trio.Event
            await trio.sleep(0.005)


@pytest.fixture
def until() -> Until:
    """Wait until a condition holds that nothing announces; fail after ten seconds."""
    return _until
