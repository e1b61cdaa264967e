"""An emergency member: when it takes part, and when it stands by.

    load   0 ──────────── 0.6 ─────────── 0.8 ────────────►
           stands by at last │ stays as it is │ takes part at last
                             └─ either only when it has lasted for HOLD_S

A moment's load says nothing: a batch begins, a minute is over. And where the two bounds were one, a member would
come and go with every task.

Source: our own.
"""

from __future__ import annotations

from typing import Final

from mesh.placement.demand import HIGH_LOAD, LOW_LOAD

JOIN_LOAD: Final = HIGH_LOAD
"""Above it, an emergency member is needed."""

LEAVE_LOAD: Final = LOW_LOAD
"""Below it, the regular members could bear all of it, and what comes next."""

HOLD_S: Final = 5.0
"""So long, in seconds, the load lies beyond a bound before that is believed: members are heard of every few seconds."""

GAP_S: Final = 5.0
"""After so long without a look, in seconds, nobody knows what was meanwhile: a load lasts from then on."""

LOOK_S: Final = 1.0
"""So often, in seconds, the load is looked at."""


class Standby:
    """One emergency member. It begins standing by. All of it O(1)."""

    __slots__ = ("_next", "_since", "is_needed", "load")

    def __init__(self) -> None:
        """Begin standing by."""
        self.is_needed = False
        """Whether it takes part."""

        self.load = 0.0
        """As it was looked at last."""

        self._since: float | None = None  # since when the load asks for the other
        self._next: float | None = None

    def begin(self, now: float) -> None:
        """Look from now on."""
        self._next = now

    def is_due(self, now: float) -> bool:
        """Say whether it is time to look at the load."""
        return self._next is not None and now >= self._next

    def next_deadline(self) -> float | None:
        """Return when `step` is wanted next; None: it has not begun."""
        return self._next

    def step(self, now: float, load: float) -> bool:
        """Take the load of the mesh, 0 or more; say whether `is_needed` has changed."""
        if self._next is not None and now > self._next - LOOK_S + GAP_S:
            self._since = None
        self._next, self.load = now + LOOK_S, load
        asks = load < LEAVE_LOAD if self.is_needed else load > JOIN_LOAD
        if not asks:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        if now < self._since + HOLD_S:
            return False
        self.is_needed, self._since = not self.is_needed, None
        return True
