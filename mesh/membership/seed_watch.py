"""Who may still be out there is looked for after the join too: seeds, and members remembered from before.

Reconnection tries those that are remembered as dead, and a restarted node has met nobody yet. So when a
whole mesh dies and its sides start again while they cannot reach each other, each side finds itself
through its own seeds and snapshots, and would never look for the other. One address in a sync interval,
seeds and remembered members in turn, for ever: a small share, whatever their number. While members of the
last session were not met in this one, a small side looks more often, since it may be a part cut off: the
mesh together tries each of them about once in `UNMET_INTERVALS` reconnect intervals.
"""

from __future__ import annotations

import random
from typing import Final

from mesh.core.address import Address
from mesh.core.effects import Resolve
from mesh.membership.identity import Identity
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.membership.remembered import Remembered
from mesh.membership.table import MemberTable

UNMET_INTERVALS: Final = 4
"""A look costs a connection, where reconnection costs a datagram: so many times rarer."""


class SeedWatch:
    """Now and then it resolves one seed, or names one remembered address; the owner compares notes there."""

    def __init__(
        self,
        *,
        config: SwimConfig,
        identity: Identity,
        table: MemberTable,
        outbox: Outbox,
        rng: random.Random,
        seeds: tuple[str, ...],
        remembered: Remembered,
    ) -> None:
        self._config = config
        self._identity = identity
        self._table = table
        self._outbox = outbox
        self._rng = rng
        self._seeds = seeds
        self._remembered = remembered
        self._deadline: float | None = None
        self._is_on = False
        self._was_seed = False

    def start(self, now: float) -> None:
        """Begin, at a random phase; without anybody to look for nothing is due."""
        self._is_on = True
        self.arm(now)

    def arm(self, now: float) -> None:
        """Begin to look, if there is somebody to look for and nothing is due yet."""
        if self._is_on and self._deadline is None and (self._seeds or self._remembered.has_any):
            self._deadline = now + (0.5 + self._rng.random()) * self._pause_s()

    def stop(self) -> None:
        """Watch no more."""
        self._is_on = False
        self._deadline = None

    def next_deadline(self) -> float | None:
        """Return when the next address is looked at."""
        return self._deadline

    def handle_timeout(self, now: float) -> Address | None:
        """Look at whatever is due: resolve a seed, or return a remembered member's address."""
        if self._deadline is None or now < self._deadline:
            return None
        self._deadline = None
        self.arm(now)
        members = self._remembered.next_strangers(self._rng, 1)
        if self._seeds and not (self._was_seed and members):
            self._was_seed = True
            self._outbox.do(Resolve(self._rng.choice(self._seeds)))
            return None
        self._was_seed = False
        return members[0].address if members else None

    def strangers(self, addresses: tuple[Address, ...]) -> list[Address]:
        """Return which of a seed's addresses belong to no living member, this node included."""
        if not self._is_on:
            return []
        known = {member.address for member in self._table if member.is_living}
        return [a for a in addresses if a not in known and a != self._identity.address]

    def _pause_s(self) -> float:
        share = len(self._remembered) / self._table.size
        if not share:
            return self._config.sync_interval_s
        unmet_s = UNMET_INTERVALS * self._config.reconnect_interval_s / min(1.0, share)
        return min(unmet_s, self._config.sync_interval_s)
