"""How the demo is watched: the live screen on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

PROGRESS_PAUSE_S: Final = 1.0


class Display(Protocol):
    """What the demo tells whoever watches."""

    def say(self, text: str) -> None:
        """Tell one line of the story."""

    def progress(self, done: int, total: int) -> None:
        """Show how many tasks are done; cheap, to be called often."""

    def watch(self, data_dirs: Sequence[Path]) -> None:
        """From now on show the mesh as the nodes with these data directories see it."""

    def close(self) -> None:
        """Leave the terminal as it was. Harmless when repeated."""


class Lines:
    """Plain lines, each flushed: for logs, pipes and slow terminals."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._shown_at = 0.0
        self._shown = (-1, -1)

    def say(self, text: str) -> None:
        """Print one line with the seconds since the start."""
        print(self.stamped(text), flush=True)

    def stamped(self, text: str) -> str:
        """Return a line with the seconds since the start."""
        return f"{time.monotonic() - self._started:6.1f} s  {text}"

    def progress(self, done: int, total: int) -> None:
        """Print a line when something changed, at most once a second, and at the end."""
        now = time.monotonic()
        is_due = now - self._shown_at >= PROGRESS_PAUSE_S or done == total
        if is_due and (done, total) != self._shown:
            self._shown_at, self._shown = now, (done, total)
            self.say(f"{done} of {total} tasks done")

    def watch(self, data_dirs: Sequence[Path]) -> None:
        """Do nothing: there is no screen."""

    def close(self) -> None:
        """Do nothing: there is no screen."""


@contextmanager
def open_display() -> Iterator[Display]:
    """Return the screen on a terminal, else plain lines; closed on leaving."""
    lines = Lines()
    display: Display = lines
    if sys.stdout.isatty() and sys.stdin.isatty():
        from mesh.demo.screen import LiveScreen  # noqa: PLC0415 - rich is for terminals only

        display = LiveScreen(lines)
    try:
        yield display
    finally:
        display.close()
