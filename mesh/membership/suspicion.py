"""How long a suspect has to refute before it is declared dead.

A suspicion is about one (boot, incarnation); a refutation or any newer word of the member ends it.
Every member that heard of the suspicion waits by itself, so that one lost message delays nobody.

    longest_s ─┐
               └── one more observer has no answer either ──┐
                                                            └── enough of them: shortest_s

A suspicion that only one observer has may be that observer's fault, so it gets the longest time; each
independent one that joins in shortens it, by less each time.

Source: suspicion [SWIM §4.2]; shrinking timeout [Lifeguard §IV.B].
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mesh.core.events import EvidenceKind as Kind
from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.membership.clues import Clue
from mesh.wire.records import Cause
from mesh.wire.swim_messages import Dead


@dataclass(slots=True, kw_only=True)
class Suspected:
    """One suspicion. `accusers` are those whom this node heard accuse, itself perhaps among them.

    `enough` others shorten it to `shortest_s`. `due` is when it runs out, pauses of this node included:
    by `ends_by` if somebody else (`told_by`) knows of the death, and of what cause, and not before
    `not_before` if this node could not hear one for a while.
    """

    node_id: NodeId
    boot: int
    incarnation: int
    opened_at: float
    shortest_s: float
    longest_s: float
    enough: int
    evidence: tuple[Clue, ...] = ()
    accusers: dict[NodeId, None] = field(default_factory=dict)
    slept_s: float = 0.0
    ends_by: float = math.inf
    not_before: float = -math.inf
    told_by: NodeId | None = None
    told_cause: Cause = Cause.SILENT
    is_doubted: bool = False  # this node held back the verdict, since it doubts itself

    @property
    def confirmations(self) -> int:
        """How many accusers there are beside the first."""
        return max(0, len(self.accusers) - 1)

    @property
    def due(self) -> float:
        """When the suspicion runs out, as far as is known now."""
        return max(self.not_before, min(self.ends_by, self.runs_out_at))

    @property
    def runs_out_at(self) -> float:
        """When it would run out by its own time alone."""
        return self.opened_at + self.slept_s + self.timeout_s

    @property
    def timeout_s(self) -> float:
        """How long the suspect has, given who shares the suspicion."""
        if self.enough == 0:
            return self.shortest_s
        shared = math.log(self.confirmations + 1) / math.log(self.enough + 1)
        shrunk_s = self.longest_s - (self.longest_s - self.shortest_s) * shared
        return max(self.shortest_s, shrunk_s)


class Suspicions:
    """The open suspicions, each with its deadline."""

    __slots__ = ("_open", "_timers")

    def __init__(self) -> None:
        self._timers: Timers[NodeId] = Timers()
        self._open: dict[NodeId, Suspected] = {}

    def __len__(self) -> int:
        return len(self._open)

    def get(self, node_id: NodeId) -> Suspected | None:
        """Return the open suspicion of a member, or None."""
        return self._open.get(node_id)

    def is_open(self, node_id: NodeId, boot: int, incarnation: int) -> bool:
        """Say whether there is a suspicion of exactly this word of a member."""
        found = self._open.get(node_id)
        return found is not None and (found.boot, found.incarnation) == (boot, incarnation)

    def open(self, suspected: Suspected) -> None:
        """Open a suspicion, in place of one of an older incarnation."""
        self._open[suspected.node_id] = suspected
        self._timers.set(suspected.node_id, suspected.due)

    def confirm(self, node_id: NodeId, accuser: NodeId, evidence: tuple[Clue, ...] = ()) -> bool:
        """Note one more accuser, and what it found; say whether that one is new and still shortens the time."""
        suspected = self._open[node_id]
        if accuser in suspected.accusers or suspected.confirmations >= max(1, suspected.enough):
            return False
        suspected.accusers[accuser] = None
        known = suspected.evidence
        found = (one for one in evidence if one.kinds != (Kind.SUSPECTED,) and one not in known)
        suspected.evidence = (*known, *found)  # that it accuses is known without
        self._timers.set(node_id, suspected.due)
        return True

    def alone(self, observer: NodeId) -> int:
        """Return how many suspicions `observer` raised and nobody shares. O(suspicions)."""
        return sum(list(found.accusers) == [observer] for found in self._open.values())

    def sleep(self, seconds: float) -> None:
        """Give every suspect the time in which this node could not hear it."""
        for node_id, suspected in self._open.items():
            suspected.slept_s += seconds
            self._timers.set(node_id, suspected.due)

    def hold(self, until: float, *, patience_s: float) -> None:
        """Let no suspicion run out before `until`, nor hold one for `patience_s` more than it may last at most."""
        for node_id, suspected in self._open.items():
            limit = suspected.opened_at + suspected.slept_s + suspected.longest_s + patience_s
            suspected.not_before = max(suspected.not_before, min(until, limit))
            self._timers.set(node_id, suspected.due)

    def hurry(self, death: Dead, ends_by: float) -> None:
        """Let a suspicion run out by `ends_by`, since somebody declared the member dead; the first counts."""
        node_id = death.node_id
        suspected = self._open[node_id]
        if suspected.told_by is None:
            suspected.ends_by, suspected.told_by = ends_by, death.accuser
            suspected.told_cause = death.cause
        self._timers.set(node_id, suspected.due)

    def postpone(self, node_id: NodeId, until: float) -> None:
        """Look at a suspicion again at `until`."""
        self._timers.set(node_id, until)

    def close(self, node_id: NodeId) -> None:
        """End a suspicion: refuted, dead or gone."""
        self._open.pop(node_id, None)
        self._timers.cancel(node_id)

    def next_deadline(self) -> float | None:
        """Return when the next suspicion is to be looked at."""
        return self._timers.next_deadline()

    def take_due(self, now: float) -> list[Suspected]:
        """Return the suspicions that have run out; each stays open until it is closed or postponed."""
        return [self._open[node_id] for node_id in self._timers.take_due(now)]
