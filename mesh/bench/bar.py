"""A progress bar below the lines that stay, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text


class Bar:
    """Draws at most four times a second."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=total)

    def say(self, text: str) -> None:
        """Print the line above the bar."""
        self._progress.console.print(Text(text))

    def task(self, text: str) -> None:
        """Name what is being done beside the bar."""
        self._progress.update(self._task, description=text)

    def advance(self) -> None:
        """Move on by one round."""
        self._progress.advance(self._task)


@contextmanager
def open_bar(total: int) -> Iterator[Bar]:
    """Show a bar until the context is left; nothing of it stays."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = Console()
    with Progress(*columns, console=console, transient=True, refresh_per_second=4) as progress:
        yield Bar(progress, total)
