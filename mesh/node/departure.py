"""Leaving in order: stop the work, wait until it has ended, then tell everybody.

A farewell is proof that this session runs nothing any more: others may start the same tasks at once.
So it is said when the last run has ended, and not at all if one has not, SIGKILL notwithstanding
(a process that hangs in the kernel). Then the node stops in silence, and others find that out.
"""

from __future__ import annotations

from typing import Final

from mesh.core.effects import Emit, Stop
from mesh.core.events import Event, EventKind
from mesh.core.requests import Outgoing
from mesh.membership.swim import Swim
from mesh.node.work import Work

REAP_S: Final = 5.0
"""How long a run may take to be gone after SIGKILL, and its last output to be taken."""


class Departure:
    """One leave, at most. `is_under_way` from the first request on.

    `grace_s` is what runs have between SIGTERM and SIGKILL.
    """

    def __init__(self, grace_s: float) -> None:
        self._patience_s = grace_s + REAP_S
        self._reason = ""
        self._deadline: float | None = None
        self.is_told = False
        """Whether the farewell was said, or is not going to be."""

    @property
    def is_under_way(self) -> bool:
        """Say whether this node is leaving."""
        return self._deadline is not None

    def next_deadline(self) -> float | None:
        """Return when the farewell is due at the latest."""
        return None if self.is_told else self._deadline

    def begin(self, now: float, reason: str, within_s: float, work: Work) -> list[Outgoing]:
        """Let the work end within so long; a second request can only make that sooner."""
        deadline = now + within_s + self._patience_s
        if self._deadline is not None and self._deadline <= deadline:
            return []
        if self._deadline is None:
            self._reason = reason
        self._deadline = deadline
        return work.drain(now, now + within_s)

    def step(self, now: float, work: Work, swim: Swim) -> list[Outgoing]:
        """Say farewell once the work has ended; stop without one if it does not end."""
        if self._deadline is None or self.is_told:
            return []
        if work.used and now < self._deadline:
            return []
        self.is_told = True
        living = len(work.running)
        if not living:
            return swim.leave(now, self._reason)
        runs = "1 run has" if living == 1 else f"{living} runs have"
        text = (
            f"{runs} not ended {self._patience_s:g} s after being stopped: this node goes without a "
            "farewell, and others will find it silent"
        )
        return [
            Emit(Event(kind=EventKind.WARN, detail=text)),
            Stop(1, f"{self._reason}; {text}"),
        ]
