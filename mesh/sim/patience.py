"""No suspect is buried in haste: judged from the events alone.

    observer:  SUSPECT about M ------ at least pause_tolerance_s ------ DEAD (silent) about M
    or         DEAD (silent) "declared dead by A", and A itself kept to that

The tolerance is by the observer's own clock, which may be 1 % fast, and its rate may change on the way.
"""

from __future__ import annotations

from typing import Final

from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId
from mesh.node.config import SwimConfig
from mesh.sim.checkers import Violation
from mesh.sim.world import Observed, World

_CLOCKS: Final = 0.97
_ENDS: Final = frozenset({EventKind.REFUTE, EventKind.RETURN, EventKind.LEAVE})
_BELIEVED: Final = "declared dead by "


class Patience:
    """Remembers who suspects whom since when, and who has rightly declared whom dead."""

    def __init__(self, world: World, swim: SwimConfig) -> None:
        self.violations: list[Violation] = []
        self._world = world
        self._tolerance_s = _CLOCKS * swim.pause_tolerance_s
        self._since_s: dict[tuple[int, int, NodeId], float] = {}  # by host, session, member
        self._judged: set[tuple[str, NodeId]] = set()  # by the observer's name
        world.watchers.append(self.observe)

    def observe(self, observed: Observed) -> None:
        """Judge one event."""
        event, host = observed.event, observed.observer
        if event.member_id is None or event.member_id == host.node_id:
            return
        key = (host.index, host.session, event.member_id)
        if event.kind is EventKind.SUSPECT:
            self._since_s[key] = observed.at_s
        elif event.kind in _ENDS:
            self._since_s.pop(key, None)
        elif event.kind is EventKind.DEAD and event.cause == "silent":
            self._judge(observed, event.member_id, self._since_s.pop(key, None))

    def _judge(self, observed: Observed, member: NodeId, since_s: float | None) -> None:
        name = observed.observer.spec.name
        accuser = _believed(observed.event)
        has_waited = since_s is not None and observed.at_s - since_s >= self._tolerance_s
        if has_waited or (accuser, member) in self._judged:
            self._judged.add((name, member))
            return
        waited = "no suspicion at all" if since_s is None else f"{observed.at_s - since_s:.3f} s"
        whom = f", nor was {accuser} before it" if accuser else ""
        text = f"{self._tolerance_s:.2f} s of suspicion are expected before death, found {waited}{whom}"
        about = self._world.census.name_of(member)
        self.violations.append(Violation("9c", observed.at_s, name, about, text))


def _believed(event: Event) -> str:
    """Return whose verdict the observer believed; "" if it judged itself."""
    found = [text for text in event.evidence if text.startswith(_BELIEVED)]
    return found[0].removeprefix(_BELIEVED) if found else ""
