"""Seeds stay of use after the join: one that is no living member here is asked again, now and then.

Reconnection tries those that are remembered as dead, and a restarted node remembers nobody. So when a
whole mesh dies and its sides start again while they cannot reach each other, each side finds itself
through its own seeds and would never look for the other.
"""

from __future__ import annotations

import random

from mesh.core.address import Address
from mesh.core.effects import Resolve
from mesh.membership.identity import Identity
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.membership.table import MemberTable


class SeedWatch:
    """Resolves one seed at random every sync interval, and says which of its addresses to compare with."""

    def __init__(
        self,
        *,
        config: SwimConfig,
        identity: Identity,
        table: MemberTable,
        outbox: Outbox,
        rng: random.Random,
        seeds: tuple[str, ...],
    ) -> None:
        self._config = config
        self._identity = identity
        self._table = table
        self._outbox = outbox
        self._rng = rng
        self._seeds = seeds
        self._deadline: float | None = None

    def start(self, now: float) -> None:
        """Begin, at a random phase; without seeds there is nothing to watch."""
        if self._seeds:
            self._deadline = now + (0.5 + self._rng.random()) * self._config.sync_interval_s

    def stop(self) -> None:
        """Watch no more."""
        self._deadline = None

    def next_deadline(self) -> float | None:
        """Return when the next seed is looked at."""
        return self._deadline

    def handle_timeout(self, now: float) -> None:
        """Resolve a seed if one is due."""
        if self._deadline is None or now < self._deadline:
            return
        self.start(now)
        self._outbox.do(Resolve(self._rng.choice(self._seeds)))

    def strangers(self, addresses: tuple[Address, ...]) -> list[Address]:
        """Return which of a seed's addresses belong to no living member, this node included."""
        if self._deadline is None:
            return []
        known = {member.address for member in self._table if member.is_living}
        return [a for a in addresses if a not in known and a != self._identity.address]
