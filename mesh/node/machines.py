"""The machines of a node, put together, and what is seen of them.

Each knows only what it is handed here. What they are told, and what becomes of what they say, is
`mesh.node.node`'s.
"""

from __future__ import annotations

import math
from typing import Any, Final

from mesh.contest.known import Known
from mesh.core.address import Address
from mesh.core.ids import NodeId
from mesh.core.rng import stream
from mesh.core.stored import Kept
from mesh.membership.identity import Identity
from mesh.membership.swim import Swim
from mesh.node.availability import OwnAvailability
from mesh.node.budget import Budget
from mesh.node.config import NodeConfig
from mesh.node.departure import Departure
from mesh.node.exchanges import Exchanges
from mesh.node.mail import Mail
from mesh.node.obituary import Obituary
from mesh.node.roll import Roll
from mesh.node.standstill import Standstill
from mesh.node.view import View, build_view
from mesh.node.work import Work
from mesh.placement.demand import Demand, demand_of
from mesh.placement.live_view import LiveView
from mesh.tasks.config import TasksConfig
from mesh.tasks.surroundings import Surroundings
from mesh.wire.records import Card

FRESH_S: Final = 10.0
"""Vitals of a member that are older, in seconds, say nothing of the load now, where there are fresher ones."""


class Machines:
    """All that a node is made of. `counters` says what was dropped, and why; `identity` who it is just now."""

    def __init__(self, config: NodeConfig, seed: int, kept: Kept | None = None) -> None:
        """Build a session of a node that begins with what was kept of those before it.

        Raises:
            DecodeError: a record that was kept is none that this version can read.
        """
        self.config = config
        self._started_at = 0.0
        self._is_stopped = False
        card = Card(
            node_id=config.node_id,
            boot=config.boot,
            incarnation=0,
            name=config.name,
            address=config.address,
            meta=config.meta,
        )
        self.identity = Identity(card, config.mesh_id)
        self._mail = Mail(self.identity)
        self.counters = self._mail.counters
        self._swim = Swim(
            config=config.swim,
            identity=self.identity,
            rng=stream(seed, "membership"),
            seeds=config.seeds,
            expect=config.expect,
            is_name_given=config.is_name_given,
            remembered=config.remembered,
        )
        self._lag_ms = 0
        self._live = LiveView()
        self._roll = Roll(self._swim.table, self._live)
        self._work = Work(
            config,
            address_of=self._address_of,
            around=Surroundings(
                card=lambda: self.identity.card,
                view=self._live,
                name_of=self._swim.rumours.name_of,
                known_of=self._known_of,
                busy_pct=lambda: self.identity.vitals.busy_pct,
                lag_ms=lambda: self._lag_ms,
            ),
            seed=seed,
            kept=kept or Kept(),
        )
        self._availability = OwnAvailability(config.meta)
        self._departure = Departure(TasksConfig().stop_grace_s)
        self._obituary = Obituary(
            self._swim,
            self._mail,
            lambda: self._work.voters,
            is_wanted=config.swim.lifeguard.has_lifelines,
        )
        self._standstill = Standstill()
        self._has_founded = False
        self._exchanges = Exchanges()
        self._budget = Budget()

    def take_watch(self, watcher_id: int) -> tuple[list[tuple[int, bytes]], dict[str, Any] | None]:
        """Return what a watcher has not taken of a task's output, and the task once it has ended."""
        return self._work.take_watch(watcher_id)

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` is wanted next; None: not before another input."""
        if self._is_stopped:
            return None
        deadlines = (
            self._swim.next_timeout(),
            self._work.next_timeout(),
            self._departure.next_deadline(),
            self._obituary.next_deadline(),
            self._standstill.next_deadline(),
            self._availability.next_deadline(),
            self._budget.next_deadline(),
        )
        return min((at for at in deadlines if at is not None), default=None)

    def view(self, now: float) -> View:
        """Return what people and programs see of this node and its mesh."""
        counters = {
            **self.counters,
            **self._work.counters,
            **self._swim.counters,
            "dropped_tells": self._budget.dropped,
            "held_tells": self._budget.held,
            "refused_exchanges": self._exchanges.refused,
        }
        return build_view(
            config=self.config,
            swim=self._swim,
            work=self._work,
            counters=counters,
            started_at=self._started_at,
            is_departing=self._departure.is_under_way,
            is_looking=self._swim.glances.is_waiting(now),
        )

    def demand(self, now: float) -> Demand | None:
        """Return how much of its pool is in use, by those that were heard of in the last seconds; None: it is in no mesh. O(members)."""
        if self._live.get(self.identity.node_id) is None:
            return None
        pool = self.identity.card.meta.pool
        members = [one for one in self._live.members() if one.meta.pool == pool]
        # In a large mesh most were heard of minutes ago; those that were just now are a fair sample of all.
        fresh = [one for one in members if self._known_of(one.node_id).age_s(now) <= FRESH_S]
        found = demand_of(fresh)
        return found if found.slots else demand_of(members)

    def check_invariants(self) -> None:
        """Raise AssertionError if the machines contradict themselves or each other."""
        self._swim.check_invariants()
        self._swim.rumours.history.check_invariants()
        self._work.check_invariants()
        self._roll.check_invariants()
        self._exchanges.check_invariants()
        self._budget.check_invariants()

    # Inside.

    def _known_of(self, node_id: NodeId) -> Known:
        if node_id == self.identity.node_id:
            return Known(0.0, 0.0, math.inf)  # its own vitals are of this moment
        member = self._swim.table.get(node_id)
        if member is None:
            return Known()
        trip = member.round_trip
        high_s = None if trip is None else trip.patience_s
        return Known(member.rtt_s, high_s, member.vitals_at)

    def _address_of(self, node_id: NodeId) -> Address | None:
        member = self._swim.table.get(node_id)
        return None if member is None else member.address
