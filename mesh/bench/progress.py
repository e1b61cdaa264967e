"""How a benchmark is watched: a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """What a benchmark tells whoever watches."""

    def say(self, text: str) -> None:
        """Tell one line that stays."""

    def task(self, text: str) -> None:
        """Tell what is being done now; cheap."""

    def advance(self) -> None:
        """One more round is done."""


class Lines:
    """Plain lines, each flushed; what passes is not told."""

    def say(self, text: str) -> None:
        """Print the line."""
        print(text, flush=True)

    def task(self, text: str) -> None:
        """Do nothing: there is no bar."""

    def advance(self) -> None:
        """Do nothing: there is no bar."""


@contextmanager
def open_progress(total: int) -> Iterator[Progress]:
    """Return a bar of `total` rounds on a terminal, else plain lines; closed on leaving."""
    if not sys.stdout.isatty():
        yield Lines()
        return
    from mesh.bench.bar import open_bar  # noqa: PLC0415 - rich is for terminals only

    with open_bar(total) as bar:
        yield bar
