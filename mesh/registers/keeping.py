"""What a voter does so that what is kept stays kept, and what is over goes: one face of digests, repair, retention.

    all that the voter stores ──► digests, retention
    messages of other voters ───► repair, retention ──► moves, which the desk carries out

Source: our own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import ClassVar

from mesh.core.ids import NodeId
from mesh.registers.digests import Digests
from mesh.registers.record import Record
from mesh.registers.repair import Repair
from mesh.registers.retention import Retention
from mesh.registers.seating import Seating
from mesh.registers.upkeep import Expires, UpkeepMove, UpkeepTimes
from mesh.registers.voter import Voter
from mesh.wire.repair_messages import Purge, Purged, RepairMessage
from mesh.wire.roster_messages import Roster


class Keeping:
    """One session's. Built of the voter as its disk made it, before anything changes that."""

    repair_of: ClassVar[type[Repair]] = Repair
    retention_of: ClassVar[type[Retention]] = Retention

    def __init__(
        self,
        own_id: NodeId,
        *,
        voter: Voter,
        roster: Roster | None,
        times: UpkeepTimes,
        expires: Expires,
        rng: random.Random,
        now: float,
    ) -> None:
        """Begin a session with the latest roster that is known. O(records)."""
        self._voter, self._expires = voter, expires
        self._seating = seating = Seating(own_id, roster)
        self._digests = digests = Digests(times.settle_s, voter)
        self.repair = self.repair_of(
            own_id, voter=voter, seating=seating, digests=digests, times=times, rng=rng, now=now
        )
        self.retention = self.retention_of(
            own_id,
            voter=voter,
            seating=seating,
            digests=digests,
            times=times,
            expires=expires,
            rng=rng,
            now=now,
        )

    def note(self, now: float, changed: Iterable[tuple[bytes, Record]]) -> None:
        """Take what the voter holds from now on; NOTHING: it is gone."""
        for key, record in changed:
            self._digests.note(now, key, record)
            self.retention.note(now, key, record)

    def adopt(self, now: float, roster: Roster) -> None:
        """Take a later roster; one that is not later changes nothing."""
        if self._seating.adopt(roster):
            self.repair.adopt(now)
            self.retention.adopt(now)

    def handle(self, now: float, sender: NodeId, message: RepairMessage) -> list[UpkeepMove]:
        """Take a message of another voter; return what is to be done."""
        if isinstance(message, Purge | Purged):
            return self.retention.handle(now, sender, message)
        return self.repair.handle(now, sender, message)

    def handle_timeout(self, now: float) -> list[UpkeepMove]:
        """Do what is due; too early, twice or late does no harm."""
        return self.repair.handle_timeout(now) + self.retention.handle_timeout(now)

    def next_deadline(self) -> float | None:
        """Return when something is due."""
        deadlines = (self.repair.next_deadline(), self.retention.next_deadline())
        return min((at for at in deadlines if at is not None), default=None)

    def check_invariants(self) -> None:
        """Raise AssertionError if it contradicts itself."""
        self.repair.check_invariants()

    def check_sums(self) -> None:
        """Raise AssertionError if it contradicts the voter. O(records): for tests."""
        self._digests.check_invariants(self._voter)
        self.retention.check_invariants()
