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

_SHOWN: Final = frozenset(
    {
        EventKind.FOUND,
        EventKind.ENTER,
        EventKind.JOIN,
        EventKind.RETURN,
        EventKind.DEAD,
        EventKind.LEAVE,
        EventKind.FORGET,
        EventKind.CONFLICT,
        EventKind.SEEK,
        EventKind.HOOK,
        EventKind.WARN,
    }
)
_WHOLE: Final = frozenset({EventKind.CONFLICT, EventKind.SEEK, EventKind.HOOK, EventKind.WARN})
"""Their details are sentences of their own; the others' begin with what the member did."""


class Console:
    """Writes lines to a file descriptor, never blocking and never raising."""

    def __init__(self, fd: int = 2, wall: Callable[[], float] = time.time) -> None:
        self.dropped = 0
        self._fd = fd
        self._wall = wall
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    def say(self, text: str) -> None:
        """Write one line with the local time, or drop it."""
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
        if event.kind in _SHOWN:
            self.say(event_line(event))


def event_line(event: Event) -> str:
    """Return one line: who, what, and the evidence for it."""
    detail = event.detail or event.kind.value
    if event.task_id:
        detail = f"task {event.task_id}: {detail}"
    parts = [detail if event.kind in _WHOLE else f"{event.member} {detail}"]
    if event.cause:
        parts.append(event.cause)
    parts += event.evidence[:1]
    prefix = "warning: " if event.kind is EventKind.WARN else ""
    return prefix + "; ".join(parts)
