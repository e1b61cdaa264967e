"""The log for people: one clear line on stderr for what matters.

Nothing that happens to stderr may harm the node: closed, full, on a full disk, or a pipe that
nobody reads. So a line is written only when the system says that it can be taken at once; else it
is dropped and counted, and the next line that gets through says how many are missing.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import Final

from mesh.core.events import Event, EventKind

LINE_BYTES_MAX: Final = 2_048  # below PIPE_BUF: a pipe that is ready takes it whole
SEEK_PAUSE_S: Final = 10.0

_WORDS: Final = {
    EventKind.FOUND: "founded a mesh",
    EventKind.ENTER: "entered the mesh",
    EventKind.JOIN: "joined",
    EventKind.RETURN: "is back",
    EventKind.DEAD: "is dead",
    EventKind.LEAVE: "left",
    EventKind.CONFLICT: "conflicts with another",
    EventKind.SEEK: "no seed answered yet, trying again",
    EventKind.WARN: "warning",
}


class Console:
    """Writes lines to a file descriptor, never blocking and never raising."""

    def __init__(
        self, fd: int = 2, wall: Callable[[], float] = time.time, *, is_quiet: bool = False
    ) -> None:
        self.dropped = 0
        self._fd = fd
        self._is_quiet = is_quiet
        self._wall = wall
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._sought = -SEEK_PAUSE_S

    def say(self, text: str) -> None:
        """Write one line with the local time, or drop it; when quiet, write nothing."""
        if self._is_quiet:
            return
        stamp = time.strftime("%H:%M:%S", time.localtime(self._wall()))
        line = f"{stamp} mesh: {' '.join(text.split())}"
        if self.dropped:
            line += f" ({self.dropped} lines before this one could not be written)"
        data = line.encode("utf-8", "backslashreplace")[: LINE_BYTES_MAX - 1] + b"\n"
        try:
            is_ready = any(events & select.POLLOUT for _, events in self._poll.poll(0))
            if is_ready and os.write(self._fd, data) > 0:
                self.dropped = 0
                return
        except OSError:  # closed, or a full disk
            pass
        self.dropped += 1

    def show(self, event: Event) -> None:
        """Write the line of an event that people wait for; others are left to `mesh events`."""
        words = _WORDS.get(event.kind)
        if words is None:
            return
        if event.kind is EventKind.SEEK:
            now = time.monotonic()
            if now - self._sought < SEEK_PAUSE_S:
                return
            self._sought = now
        self.say(event_line(event, words))


def event_line(event: Event, words: str) -> str:
    """Return one line: who, what, why."""
    cause = f" ({event.cause})" if event.cause else ""
    head = f"{event.member} {words}{cause}" if event.member else f"{words}{cause}"
    detail = event.detail or (event.evidence[0] if event.evidence else "")
    return f"{head}: {detail}" if detail else head
