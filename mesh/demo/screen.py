"""The demo's screen: the live screen of `mesh top`, with the demo's own two lines below it.

It shows the mesh as the surviving nodes tell it, their tasks together, and under it what the demo
did last and how far the work is. A thread draws; the demo itself never waits for the terminal.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.segment import Segment

from mesh.demo.display import Lines
from mesh.errors import CommandRefused, MeshUnreachable
from mesh.tui.board import Board
from mesh.tui.cells import Line, fit_line
from mesh.tui.feed import Feed
from mesh.tui.painter import Painter
from mesh.tui.palette import DIM, TITLE
from mesh.tui.screen import Screen
from mesh.tui.terminal import Terminal, Vanished

FRAME_INTERVAL_S: Final = 0.25
_OWN_LINES: Final = 2
_OURS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class LiveScreen:
    """Plain lines until there is a mesh to watch, then the whole terminal; the story is told again at the end."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._untold: list[str] = []
        self._done = (0, 0)
        self._board = Board()
        self._views: dict[int, Mapping[str, Any]] = {}
        self._over = threading.Event()
        self._terminal: Terminal | None = None
        self._thread: threading.Thread | None = None

    def say(self, text: str) -> None:
        """Show a line of the story, and keep it for the end."""
        if self._terminal is None:
            self._lines.say(text)
        else:
            self._untold.append(self._lines.stamped(text))

    def progress(self, done: int, total: int) -> None:
        """Show how many tasks have ended."""
        self._done = (done, total)

    def watch(self, data_dirs: Sequence[Path]) -> None:
        """Take the terminal and show the mesh as these nodes see it, the first one's events."""
        before = {number: signal.getsignal(number) for number in _OURS}
        terminal = Terminal(sys.stdin.fileno(), sys.stdout.fileno())
        try:
            terminal.__enter__()
        except Vanished:
            return
        self._terminal = terminal
        for number, handler in before.items():  # they end the demo, not only its screen
            signal.signal(number, handler)
        feeds = [Feed(path) for path in data_dirs]
        self._thread = threading.Thread(target=self._draw, args=(terminal, feeds), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Give the terminal back and tell what was said meanwhile."""
        terminal, self._terminal = self._terminal, None
        if terminal is None:
            return
        self._over.set()
        if self._thread is not None:
            self._thread.join(2.0)
        terminal.__exit__(None, None, None)
        with contextlib.suppress(BrokenPipeError):
            print("\n".join(self._untold), flush=True)

    def _draw(self, terminal: Terminal, feeds: list[Feed]) -> None:
        painter = Painter(
            getattr(sys.stdout, "encoding", "ascii"), is_colorful=not os.environ.get("NO_COLOR")
        )
        try:
            while not self._over.wait(FRAME_INTERVAL_S):
                for number, feed in enumerate(feeds):
                    self._listen(number, feed)
                terminal.write(painter.paint(self._frame(*terminal.size())))
        except Vanished:
            return
        finally:
            for feed in feeds:
                feed.close()

    def _listen(self, number: int, feed: Feed) -> None:
        try:
            if feed.fd is None:
                feed.connect()
            items = feed.take()
        except (MeshUnreachable, CommandRefused):
            return
        for item in items:
            view = item.get("view")
            if isinstance(view, Mapping):
                self._views[number] = view
            elif number == 0:
                self._board.fold(item)
        if 0 in self._views:
            self._board.fold({"view": merged(list(self._views.values()))})

    def _frame(self, width: int, height: int) -> list[Line]:
        lines = Screen(self._board, width, max(height - _OWN_LINES + 1, 1)).render()[:-1]
        done, total = self._done
        said = self._untold[-1] if self._untold else ""
        lines.append(fit_line([Segment(f" {said.strip()}", DIM)], width))
        count = f" {done} of {total} tasks done "
        cells = max(width - len(count) - 1, 0)
        full = cells * done // max(total, 1)
        bar = [Segment("█" * full, TITLE), Segment("░" * (cells - full), DIM)]
        lines.append(fit_line([Segment(count, TITLE), *bar], width))
        return lines[-height:]


def merged(views: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the first view with the tasks of all of them, each once: as if one node voted on every task."""
    tasks = {task["id"]: task for view in reversed(views) for task in view["tasks"]}
    counts = dict(Counter(task["state"] for task in tasks.values()))
    return {**views[0], "tasks": list(tasks.values()), "task_counts": counts}
