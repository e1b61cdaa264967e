"""Leave nothing behind: signals that unwind the stack, and processes that are found again by a mark."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

T = TypeVar("T")

MARK: Final = "MESH_FLEET"
POLL_S: Final = 0.02
END_TIMEOUT_S: Final = 10.0


def wait_until(
    ask: Callable[[], T | None], timeout_s: float, failure: Callable[[], Exception]
) -> T:
    """Ask until the answer is not None and return it; raise `failure()` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = ask()
        if answer is not None:
            return answer
        if time.monotonic() > deadline:
            raise failure()
        time.sleep(POLL_S)


@contextlib.contextmanager
def signals_as_exits() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the stack as Ctrl-C does, so that everything is cleared away."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = [(number, signal.signal(number, leave)) for number in (signal.SIGTERM, signal.SIGHUP)]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore SIGINT, SIGTERM and SIGHUP: what is being cleared away is cleared away.

    Outside the main thread, which alone receives signals, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def marked_pids(mark: str, variable: str = MARK) -> list[int]:
    """Return the processes that carry a mark in their environment (Linux; elsewhere none)."""
    wanted = f"{variable}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
    return found


def end_marked(mark: str) -> None:
    """End every process that carries the mark, and wait until they are gone."""
    deadline = time.monotonic() + END_TIMEOUT_S
    while (pids := marked_pids(mark)) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_S)
