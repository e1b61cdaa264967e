"""Leaving in order: stop the work, wait until it has ended, then tell everybody.

A farewell is proof that this session runs nothing any more, so it must not come before the last run
has ended. Work that does not end in time is killed by the driver when the node stops.
"""

from __future__ import annotations

from typing import Final

from mesh.core.requests import Outgoing
from mesh.membership.swim import Swim
from mesh.work.work import Work

PATIENCE_S: Final = 10.0
"""How long the farewell waits for work that does not end: longer than the grace before SIGKILL."""


class Departure:
    """One leave, at most. `is_under_way` from the first request on."""

    def __init__(self) -> None:
        self._reason = ""
        self._deadline: float | None = None
        self._is_told = False

    @property
    def is_under_way(self) -> bool:
        """Say whether this node is leaving."""
        return self._deadline is not None

    def next_deadline(self) -> float | None:
        """Return when the farewell is due at the latest."""
        return None if self._is_told else self._deadline

    def begin(self, now: float, reason: str, work: Work) -> list[Outgoing]:
        """Stop the work; a second request changes nothing."""
        if self._deadline is not None:
            return []
        self._reason = reason
        self._deadline = now + PATIENCE_S
        return work.stop(now)

    def step(self, now: float, work: Work, swim: Swim) -> list[Outgoing]:
        """Say farewell once the work has ended, or patience has."""
        if self._deadline is None or self._is_told:
            return []
        if work.used and now < self._deadline:
            return []
        self._is_told = True
        return swim.leave(now, self._reason)
