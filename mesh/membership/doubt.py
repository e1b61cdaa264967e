"""Reasons for an observer to doubt itself before it declares a death alone.

    it hears nobody at all          it is deaf, or cut off: they cannot all have died in one moment
    it alone accuses much of the mesh   the same, seen from the other side

Either way a suspicion that nobody shares waits, for a bounded time: the members are suspects meanwhile,
and get no new work. With only one other member there is nobody to compare with, and no doubt.
Whether a node that hears nobody can hear at all is another question: see `echo`.
"""

from __future__ import annotations

from typing import Final

from mesh.membership.suspicion import Suspected

DEAF_PERIODS: Final = 2.5
"""Silence of everybody for so many periods is the observer's own: in each, others ask it about once.

By turns that is so on average alone: one of fifty observes nobody, and is asked by nobody. It asks one itself in
each, too, unless its health is bad: then it may hold itself deaf when only nobody
has asked it, which puts its verdicts off by a period at a time. Periods as long as its own are then
would be no better measure: deafness is what makes health bad, and a deaf node would notice too late.
"""

ACCUSED_SHARE: Final = 1 / 3
ACCUSED_MIN: Final = 3
PATIENCE_TOLERANCES: Final = 4
"""How many pause tolerances a doubtful verdict waits at most."""


class Doubt:
    """Remembers when this node heard anybody."""

    __slots__ = ("_period_s", "heard_at", "patience_s")

    def __init__(self, *, probe_interval_s: float, pause_tolerance_s: float) -> None:
        self._period_s = probe_interval_s
        self.patience_s = PATIENCE_TOLERANCES * pause_tolerance_s
        self.heard_at = float("-inf")

    def is_deaf(self, now: float, heard_at: float) -> bool:
        """Say whether this node hears nobody, if it last heard somebody at `heard_at`."""
        return now - heard_at > DEAF_PERIODS * self._period_s

    def until(self, now: float, suspected: Suspected, *, size: int, accused: int) -> float | None:
        """Return until when a verdict has to wait, or None if it may fall.

        `size` counts the mesh, `accused` the open suspicions that this node alone raised.
        """
        if size <= 2 or suspected.confirmations:
            return None
        is_deaf = self.is_deaf(now, self.heard_at)
        is_alone = accused >= max(ACCUSED_MIN, ACCUSED_SHARE * size)
        if not (is_deaf or is_alone):
            return None
        limit = suspected.runs_out_at + self.patience_s
        return min(limit, now + self._period_s) if now < limit else None
