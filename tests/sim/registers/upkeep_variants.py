"""Wrong variants of repair and purge: each drops one rule, and has to be seen within some seeds.

Rules that guard against what takes many chances at once (the first voter is last, what is dropped is asked for again)
show too seldom here; each has a test of its own among those of one voter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.registers.desk import Desk
from mesh.registers.keeping import Keeping
from mesh.registers.record import Record
from mesh.registers.repair import Repair
from mesh.registers.retention import Retention, _Batch
from mesh.registers.upkeep import UpkeepMove
from mesh.registers.voter import Forget, Step, Voter
from mesh.wire.register_messages import Value
from mesh.wire.repair_messages import Compare, Lack, Ship, Shipped, Sums
from tests.sim.registers.upkeep_world import UpkeepHabits

RIGHT: Final = UpkeepHabits()


class AsksMajority(Retention):
    """Purges what a majority of its voters agree to."""

    def _is_agreed(self, batch: _Batch) -> bool:
        return 2 * (1 + len(batch.answers)) > 1 + len(batch.others)


class ForgetsInMemory(Desk):
    """Purges in the voter's memory, and not on its disk."""

    def _store(self, now: float, steps: Iterable[Step]) -> list[Any]:
        kept = list(steps)
        forgotten = [step for step in kept if isinstance(step, Forget)]
        if self.keeping is not None:
            for step in forgotten:
                self.keeping.note(now, [(key, Record()) for key in step.keys])
        return super()._store(now, [step for step in kept if not isinstance(step, Forget)])


class KnowsNoOld(Voter):
    """Takes what an owner or asker of long ago sends for a purged register."""

    def _is_of_old(self, ballot: Ballot) -> bool:
        return False


class ShipsNothing(Repair):
    """Compares, and leaves it at that."""

    def _take(self, entries: Iterable[Shipped]) -> list[UpkeepMove]:
        return []


class ShipsLeasesOverAndOver(Repair):
    """Ships what is leased whenever it compares, held or not."""

    def handle(
        self, now: float, sender: NodeId, message: Compare | Sums | Lack | Ship
    ) -> list[UpkeepMove]:
        moves = super().handle(now, sender, message)
        if isinstance(message, Compare) and self._votes():
            leased = [(key, one) for key, one in self._voter if one.is_leased]
            entries = tuple(
                Shipped(key, one.ballot, one.seq, one.value)
                for key, one in leased
                if one.value is not None
            )
            moves.append((sender, Ship(message.epoch, 0, entries, is_last=True)))
        if isinstance(message, Ship) and not message.tag:
            moves += self._take(message.entries)
        return moves

    def _is_more(self, entry: Shipped) -> bool:
        record = self._voter.record(entry.key)
        return (entry.ballot, entry.seq) >= (record.ballot, record.seq)


class ArmsWhatIsShipped(Voter):
    """Takes what is shipped as if its owner had sent it."""

    _latest = 0.0
    """When the latest request came."""

    def handle(self, now: float, request: Any) -> list[Step]:  # noqa: ANN401 - any request
        self._latest = now
        return super().handle(now, request)

    def fill(self, key: bytes, ballot: Ballot, seq: int, value: Value) -> list[Step]:
        steps = super().fill(key, ballot, seq, value)
        record = self.record(key)
        if record.is_leased and (record.ballot, record.seq) == (ballot, seq):
            self._arm(self._latest, key)
        return steps


def _with(
    *, repair: type[Repair] = Repair, retention: type[Retention] = Retention
) -> type[Keeping]:
    return type("Wrong", (Keeping,), {"repair_of": repair, "retention_of": retention})


DESK: Final = RIGHT.desk
PURGING: Final = {
    "a majority may purge": replace(RIGHT, keeping=_with(retention=AsksMajority)),
    "a purge is not on disk": replace(RIGHT, desk=replace(DESK, desk=ForgetsInMemory)),
    "what is old is taken": replace(RIGHT, desk=replace(DESK, voter=KnowsNoOld)),
}
"""Seen where registers are purged, in one seed of twenty or more."""

KEEPING: Final = {
    "nothing is shipped": replace(RIGHT, keeping=_with(repair=ShipsNothing)),
    "leases are shipped over and over": replace(
        RIGHT,
        keeping=_with(repair=ShipsLeasesOverAndOver),
        desk=replace(DESK, voter=ArmsWhatIsShipped),
    ),
}
"""Seen where everything is kept, in one seed of twenty or more."""
