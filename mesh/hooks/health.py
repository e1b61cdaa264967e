"""A host's health, by the outcomes of its check: fit from the first pass, unfit after two failures in a row.

    not proved ──pass──► fit ──fail──► fit ──fail──► unfit
        └────fail────► unfit ◄──────────────────────────┘
                         └──pass──► fit

A node whose check has not passed yet takes no work: a host that is broken from the start would fail whatever it
takes. One failure of a fit host is a blip and harms nobody; a second one in a row is believed. One pass is enough to
be fit again: what is flaky passes now and then, and two failures in a row tell it as soon as it fails for good.

What is told changes when the fitness does, and while the host is unfit when the reason does: another exit code, or
too long instead of one. Another last line alone is no other reason: most checks write the time into theirs.

Source: our own.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mesh.hooks.outcome import Outcome

FAILURES: Final = 2
"""So many in a row make a fit host unfit."""

NOT_YET: Final = "its health check has not passed yet"


class Verdict(NamedTuple):
    """Whether a host is fit for work, and why, in words: of an unfit one, what its check said."""

    is_fit: bool
    why: str


class Health:
    """One host's health."""

    def __init__(self) -> None:
        self.verdict = Verdict(is_fit=False, why=NOT_YET)
        """What was told last; what it begins with is to be told first."""

        self._failures = 0
        self._how = ""

    def take(self, outcome: Outcome) -> Verdict | None:
        """Take how the latest run of the check ended; return what is to be told now, None: what was told holds."""
        self._failures = 0 if outcome.is_ok else self._failures + 1
        if outcome.is_ok:
            if self.verdict.is_fit:
                return None
            self.verdict = Verdict(is_fit=True, why="its health check passes")
            return self.verdict
        if self.verdict.is_fit and self._failures < FAILURES:
            return None
        if not self.verdict.is_fit and outcome.how == self._how:
            return None
        self._how = outcome.how
        self.verdict = Verdict(is_fit=False, why=f"its health check fails: {outcome.text}")
        return self.verdict
