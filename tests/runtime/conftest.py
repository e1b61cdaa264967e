"""What the tests of the runtime share."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Iterator
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


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    """A node leaves the signals that it heeded ignored, for its process ends with it; this one goes on."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
