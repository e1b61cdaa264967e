"""No suspect is buried in haste: judged from events, and from the view at a death.

    observer:  SUSPECT about M ------ at least pause_tolerance_s ------ DEAD (silent) about M
    or         DEAD (silent), the evidence names A, and A itself kept to that about the same word of M

A word is M's session and incarnation: who refuted a death has its whole time again. The tolerance is by the observer's own clock, which may be 1 % fast, and its rate may change on the way.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from mesh.core.events import EventKind
from mesh.core.ids import NodeId, format_id
from mesh.node.config import SwimConfig
from mesh.sim.checkers import Violation
from mesh.sim.host import Host
from mesh.sim.world import Observed, World

_CLOCKS: Final = 0.97
_ENDS: Final = frozenset({EventKind.REFUTE, EventKind.RETURN, EventKind.LEAVE})
Word: TypeAlias = tuple[int, int]  # a member's session and incarnation


class Patience:
    """Remembers who suspects whom since when, and who has rightly declared whom dead."""

    def __init__(self, world: World, swim: SwimConfig) -> None:
        self.violations: list[Violation] = []
        self._world = world
        self._tolerance_s = _CLOCKS * swim.pause_tolerance_s
        self._since_s: dict[tuple[int, int, NodeId], float] = {}  # by host, session, member
        self._judged: dict[tuple[NodeId, Word], set[str]] = {}  # who judged a word, by name
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
        word, is_dead = self._word(observed.observer, member)
        has_waited = since_s is not None and observed.at_s - since_s >= self._tolerance_s
        if has_waited or self._is_believed(observed, member, word, is_dead=is_dead):
            self._judged.setdefault((member, word), set()).add(name)
            return
        waited = "no suspicion at all" if since_s is None else f"{observed.at_s - since_s:.3f} s"
        said = "; ".join(observed.event.evidence) or "no evidence"
        text = (
            f"{self._tolerance_s:.2f} s of suspicion are expected before death, found {waited}, and nobody "
            f"that the evidence names kept to that about session and incarnation {word}: {said}"
        )
        about = self._world.census.name_of(member)
        self.violations.append(Violation("9c", observed.at_s, name, about, text))

    def _word(self, observer: Host, member: NodeId) -> tuple[Word, bool]:
        """Return which word of the member the observer holds now, and whether still for dead."""
        key = format_id(member)
        view = (
            observer.node.view(observer.clock.read(self._world.loop.now_s))
            if observer.node
            else None
        )
        for seen in view.members if view else ():
            if seen["node_id"] == key:
                return (seen["boot"], seen["incarnation"]), seen["state"] == "dead"
        return (0, 0), False

    def _is_believed(
        self, observed: Observed, member: NodeId, word: Word, *, is_dead: bool
    ) -> bool:
        """Say whether the evidence names somebody who rightly judged this word.

        A later word of the member may have come along with the verdict: then an earlier one was meant.
        """
        named = {part.strip(",.:;()") for text in observed.event.evidence for part in text.split()}
        words = [
            known
            for whom, known in self._judged
            if whom == member and (known == word or (not is_dead and known <= word))
        ]
        return any(named & self._judged[member, known] for known in words)
