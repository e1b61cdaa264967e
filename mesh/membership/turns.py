"""Whom to ping next: this node's observers by turns, one a period, so that each knows when to expect it.

    period        1     2     3     4     5
    this node ──► a     b     c     d     a ...        its observers, in their rank
    a expects it  ^------- 4 periods ------^           else a asks at once what is wrong

A node that falls silent is missed by the observer whose turn is next, within about one period, whatever
the size of the mesh and however the clocks differ: no two observers need to agree on when. What travels
is one ping a period and its answer, as much as a random probe costs.

A suspect is looked at out of turn by those who observe it: all of them at once, rather than whoever's
turn comes, so that a suspicion is soon shared, or soon refuted.

Source: our own; a fixed number of observers for each member after [Rapid]. Without observers it is the
round of [SWIM §4.3].
"""

from __future__ import annotations

from typing import Final

from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.membership.member import Member
from mesh.membership.observers import Observers, rank_of
from mesh.membership.probe_order import ProbeOrder
from mesh.membership.profile import SwimConfig
from mesh.membership.table import MemberTable

GRACE_S_SHARE: Final = 0.1
"""A ping may come so much of a period late before the member is asked what is wrong."""

HEARD_PERIODS: Final = 1.5
"""Whoever has heard nobody for so long does not miss one member in particular: it may be deaf."""


class Turns:
    """The order of this node's pings, and whose pings it waits for."""

    def __init__(
        self,
        *,
        config: SwimConfig,
        own_id: NodeId,
        table: MemberTable,
        observers: Observers,
        order: ProbeOrder,
    ) -> None:
        self._config = config
        self._own_id = own_id
        self._table = table
        self._observers = observers
        self._order = order
        self._count = config.lifeguard.observers if config.lifeguard.has_turns else 0
        self._last: NodeId | None = None
        self._awaited: Timers[NodeId] = Timers()
        self._urgent: dict[NodeId, None] = {}
        self._urgent_at: float | None = None
        self._heard_at = float("-inf")

    def follow(self, node_id: NodeId, *, is_living: bool) -> None:
        """Take that a member came or went."""
        self._observers.follow(node_id, is_living=is_living)
        if is_living:
            self._order.insert(node_id)
        else:
            self._awaited.cancel(node_id)

    def next(self) -> Member | None:
        """Return whom to ping in this period; None if nobody lives."""
        if self._count <= 0:
            return self._order.next(self._table)
        observers = self._observers.among(self._table.living, self._count)
        if not observers:
            return None
        place = observers.index(self._last) + 1 if self._last in observers else 0
        self._last = observers[place % len(observers)]
        return self._table.get(self._last)

    def heard(self, now: float, *, pinged_by: NodeId | None = None) -> None:
        """Note that somebody was heard; whoever pinged is expected to do so again when its turn is back."""
        self._heard_at = now
        if pinged_by is not None and self._count > 0:
            self._awaited.set(pinged_by, now + self._turn_s)

    def hasten(self, now: float, node_id: NodeId) -> None:
        """Have a member looked at, at once, if this node is one of its observers."""
        if self._observes(node_id):
            self.look(now, node_id)

    def look(self, now: float, node_id: NodeId) -> None:
        """Have a member looked at, at once; SWIM's round comes to everybody anyway."""
        if self._count > 0:
            self._urgent[node_id] = None
            self._urgent_at = now

    def void(self, now: float) -> None:
        """This node was away: whoever it waits for may have pinged."""
        for node_id in list(self._awaited):
            self._awaited.set(node_id, now + self._turn_s)

    def next_deadline(self) -> float | None:
        """Return when somebody is to be looked at."""
        deadlines = (self._urgent_at, self._awaited.next_deadline())
        return min((at for at in deadlines if at is not None), default=None)

    def take_due(self, now: float, *, is_healthy: bool) -> list[Member]:
        """Return who is to be looked at now.

        A node in bad health, or that hears nobody, misses nobody yet: it may be its own fault. It looks at the
        clock again a period later, by when it may be well, and not when the member's turn is back.
        """
        looked = dict(self._urgent)
        self._urgent.clear()
        self._urgent_at = None
        is_hearing = now - self._heard_at <= HEARD_PERIODS * self._config.probe_interval_s
        for node_id in self._awaited.take_due(now):
            if not self._observes(node_id):
                continue  # it pinged for somebody else, or others observe it now
            if is_healthy and is_hearing:
                self._awaited.set(node_id, now + self._turn_s)
                looked[node_id] = None
            else:
                self._awaited.set(node_id, now + self._config.probe_interval_s)
        members = (self._table.get(node_id) for node_id in looked)
        return [member for member in members if member is not None and member.is_living]

    @property
    def _turn_s(self) -> float:
        """How long until a member's turn is back here."""
        turns = max(1, min(self._count, len(self._table.living)))
        return (turns + GRACE_S_SHARE) * self._config.probe_interval_s

    def _observes(self, node_id: NodeId) -> bool:
        """Say whether this node is among the observers of a member. O(mesh) if it is."""
        return rank_of(self._own_id, node_id, self._table.living, self._count) is not None
