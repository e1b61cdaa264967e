"""Says once that too few voters are here for anything to be stored, and once that there are enough again.

Without it, whoever looks at tasks sees only that nothing happens. What lasts for a moment is not said: a suspicion
that is refuted, or the first moments of a node that has not met the others yet.
"""

from __future__ import annotations

from typing import Final

from mesh.core.effects import Emit
from mesh.core.events import Event, EventKind

LASTING_S: Final = 2.0
"""So long it has to be so before it is said."""


class Standstill:
    """What was said of it last. Call `step` after every input: it is cheap."""

    def __init__(self) -> None:
        self._since: float | None = None  # from when on it is otherwise than was said
        self._is_said = False

    def step(self, now: float, text: str) -> list[Emit]:
        """Take what is to be said of the voters now, "" if enough are here; return it if it is news."""
        if bool(text) == self._is_said:
            self._since = None
            return []
        if self._since is None:
            self._since = now
        if now < self._since + LASTING_S:
            return []
        self._is_said, self._since = bool(text), None
        detail = text or "enough voters are here again: what waited for them goes on"
        return [Emit(Event(kind=EventKind.WARN, detail=detail))]

    def next_deadline(self) -> float | None:
        """Return when something is said, unless it changes before."""
        return None if self._since is None else self._since + LASTING_S
