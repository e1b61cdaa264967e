"""How long a suspect has to refute before it is declared dead.

A suspicion is about one (boot, incarnation); a refutation or any newer word of the member ends it.
Every member that heard of the suspicion waits by itself, so that one lost message delays nobody.

Source: suspicion sub-protocol [SWIM §4.2]. How long it lasts: `SwimConfig.suspicion_s`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mesh.core.ids import NodeId
from mesh.core.timers import Timers


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspected:
    """What a suspicion is about, who raised it as far as this node heard, and on what evidence.

    It runs from `opened_at` to `deadline`. `accuser` is None where anti-entropy told of it.
    """

    node_id: NodeId
    boot: int
    incarnation: int
    accuser: NodeId | None
    opened_at: float
    deadline: float
    evidence: tuple[str, ...] = ()


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
        suspected = self._open.get(node_id)
        return suspected is not None and (suspected.boot, suspected.incarnation) == (
            boot,
            incarnation,
        )

    def open(self, suspected: Suspected) -> None:
        """Open a suspicion, in place of one of an older incarnation."""
        self._open[suspected.node_id] = suspected
        self._timers.set(suspected.node_id, suspected.deadline)

    def close(self, node_id: NodeId) -> None:
        """End a suspicion: refuted, dead or gone."""
        self._open.pop(node_id, None)
        self._timers.cancel(node_id)

    def next_deadline(self) -> float | None:
        """Return when the next suspicion runs out."""
        return self._timers.next_deadline()

    def take_due(self, now: float) -> list[Suspected]:
        """Close and return the suspicions that have run out."""
        return [self._open.pop(node_id) for node_id in self._timers.take_due(now)]
