"""Whether this node takes work, by its class, the load of its pool and its health check; and why.

    leaves, once what runs here has ended ─► draining
    else its health check does not pass ─► unfit
    else of class emergency, and the load is not high enough ─► stands by
    else ─► open

What runs here goes on, whatever it says: it only takes nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from mesh.contest.standby import HOLD_S, JOIN_LOAD, LEAVE_LOAD, Standby
from mesh.placement.demand import Demand
from mesh.wire.records import EMERGENCY, WHY_CHARS_MAX, Availability, Metadata

PASSES: Final = "its health check passes"


_SENTENCES: Final = {
    Availability.DRAINING: "takes no more work",
    Availability.UNFIT: "takes no work",
    Availability.STANDBY: "stands by",
    Availability.OPEN: "takes work",
}


class Declared(NamedTuple):
    """What a node is to declare from now on, and why, for people."""

    availability: Availability
    why: str

    @property
    def sentence(self) -> str:
        """Both, without a subject."""
        return f"{_SENTENCES[self.availability]}: {self.why}"

    def on(self, meta: Metadata) -> Metadata:
        """Return what is told with it to other members, which hear why it takes nothing."""
        is_open = self.availability is Availability.OPEN
        why = "" if is_open else _printable(self.why)
        return replace(meta, availability=self.availability, why=why)


class OwnAvailability:
    """What this node says of itself. Begins with what it declares at its start."""

    def __init__(self, meta: Metadata) -> None:
        """`meta`: as declared. Who is unfit at first has a health check that is still to pass."""
        self._is_leaving = False
        self._is_fit = meta.availability is not Availability.UNFIT
        self._why = meta.why
        self._standby = Standby() if meta.node_class == EMERGENCY else None

    def begin(self, now: float) -> None:
        """Begin, before any `step`."""
        if self._standby is not None:
            self._standby.begin(now)

    def set_fitness(self, *, is_fit: bool, why: str) -> None:
        """Take what a health check says, and why."""
        self._is_fit, self._why = is_fit, why

    def leave(self) -> None:
        """Take nothing more, for good."""
        self._is_leaving = True

    def step(
        self, now: float, said: Metadata, demand: Callable[[], Demand | None]
    ) -> Declared | None:
        """Look at the load if it is time; return what is to be declared if that is something else than was `said` last.

        That of an unfit node is another reason too.

        `demand` returns None where nothing is known: of a node that has met nobody yet.
        """
        if self._standby is not None and self._standby.is_due(now):
            found = demand()
            self._standby.step(now, 0.0 if found is None else found.load)
        wanted, before = self._wanted(), said.availability
        if wanted is before and wanted is not Availability.UNFIT:
            return None  # nearly always, and this is asked at every turn
        declared = Declared(wanted, self._reason(wanted, before))
        return None if declared.on(said) == said else declared

    def is_due(self, now: float) -> bool:
        """Say whether the load is to be looked at."""
        return self._standby is not None and self._standby.is_due(now)

    def next_deadline(self) -> float | None:
        """Return when `step` has something to look at; None: nothing changes by time alone."""
        return None if self._standby is None else self._standby.next_deadline()

    def _wanted(self) -> Availability:
        if self._is_leaving:
            return Availability.DRAINING
        if not self._is_fit:
            return Availability.UNFIT
        is_needed = self._standby is None or self._standby.is_needed
        return Availability.OPEN if is_needed else Availability.STANDBY

    def _reason(self, wanted: Availability, before: Availability) -> str:
        if wanted is Availability.DRAINING:
            return "it leaves once what runs there has ended"
        if wanted is Availability.UNFIT:
            return self._why
        if self._standby is None:
            return PASSES
        load = f"the load of its pool is {self._standby.load:.2f}"
        if wanted is Availability.OPEN:
            return f"{load}, for {HOLD_S:g} s above {JOIN_LOAD:g}"
        if before is Availability.UNFIT:
            return f"{PASSES}, and {load}"
        return f"{load}, for {HOLD_S:g} s below {LEAVE_LOAD:g}"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)[:WHY_CHARS_MAX]
