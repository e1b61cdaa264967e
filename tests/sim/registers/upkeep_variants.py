"""Wrong variants of repair and purge: each drops one rule, and has to be seen within some seeds."""

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
from mesh.registers.upkeep import Fill, UpkeepMove, UpkeepTimes
from mesh.registers.voter import Forget, Step, Voter
from mesh.wire.register_messages import Value
from mesh.wire.repair_messages import Compare, Lack, Purge, Ship, Shipped, Sums
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


class RefusesOldOnNothing(Voter):
    """Refuses what is old only where nothing is held: a register that was made anew takes it."""

    def _may_accept(self, record: Record, ballot: Ballot, seq: int) -> bool:
        if record.value is None:
            return super()._may_accept(record, ballot, seq)
        return ballot >= record.promised and (ballot, seq) >= (record.ballot, record.seq)


class ShipsNothing(Repair):
    """Compares, and leaves it at that."""

    def _take(self, entries: Iterable[Shipped]) -> list[UpkeepMove]:
        return []


class WritesNothingBack(Repair):
    """Leaves alone what it cannot take for a promise that nobody keeps."""

    def _take(self, entries: Iterable[Shipped]) -> list[UpkeepMove]:
        return [move for move in super()._take(entries) if not hasattr(move, "change")]


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

    def handle_shipped(self, key: bytes) -> None:
        """Arm it by the clock of the latest request."""
        self._arm(self._latest, key)

    _latest = 0.0

    def handle(self, now: float, request: Any) -> list[Step]:  # noqa: ANN401 - any request
        self._latest = now
        return super().handle(now, request)

    def fill(self, key: bytes, ballot: Ballot, seq: int, value: Value) -> list[Step]:
        steps = super().fill(key, ballot, seq, value)
        record = self.record(key)
        if record.is_leased and (record.ballot, record.seq) == (ballot, seq):
            self.handle_shipped(key)
        return steps


class FillsBelowItsPromise(Voter):
    """Takes what is shipped though it promised more."""

    def fill(self, key: bytes, ballot: Ballot, seq: int, value: Value) -> list[Step]:
        record = self.record(key)
        if record.ballot < ballot < record.promised:
            filled = Record(record.promised, ballot, seq, value)
            self._armed.pop(key, None)
            return [self._store(key, filled)]
        return super().fill(key, ballot, seq, value)


class TakesBelowPromise(Repair):
    """Takes what is shipped though more was promised."""

    def _take(self, entries: Iterable[Shipped]) -> list[UpkeepMove]:
        return [Fill(entry) for entry in entries if self._is_more(entry)]


class DropsFirst(Retention):
    """The first voter drops when the others were asked to, not last."""

    def _on_all(self, now: float, tag: int, batch: _Batch) -> list[UpkeepMove]:
        moves = super()._on_all(now, tag, batch)
        drops = [move[1] for move in moves if isinstance(move, tuple)]
        if drops and isinstance(drops[0], Purge) and drops[0].stage == 1:
            moves.append(Forget(tuple(item.key for item in drops[0].items), batch.n))
        return moves


def _with(
    *, repair: type[Repair] = Repair, retention: type[Retention] = Retention
) -> type[Keeping]:
    return type("Wrong", (Keeping,), {"repair_of": repair, "retention_of": retention})


def _soon() -> UpkeepTimes:
    times = UpkeepTimes(compare_s=2, settle_s=2, message_life_s=25)
    object.__setattr__(times, "message_life_s", 0.1)  # past its check
    return times


DESK: Final = RIGHT.desk
PURGING: Final = {
    "a majority may purge": replace(RIGHT, keeping=_with(retention=AsksMajority)),
    "a purge is not on disk": replace(RIGHT, desk=replace(DESK, desk=ForgetsInMemory)),
    "what is old is taken": replace(RIGHT, desk=replace(DESK, voter=KnowsNoOld)),
    "what is old is taken where something is held": replace(
        RIGHT, desk=replace(DESK, voter=RefusesOldOnNothing)
    ),
    "what is old is not known after a restart": replace(
        RIGHT, desk=replace(DESK, keeps_purges=False)
    ),
    "what was just final is purged": replace(RIGHT, times=_soon()),
    "the first voter drops first": replace(RIGHT, keeping=_with(retention=DropsFirst)),
}
KEEPING: Final = {
    "nothing is shipped": replace(RIGHT, keeping=_with(repair=ShipsNothing)),
    "nothing is written back": replace(RIGHT, keeping=_with(repair=WritesNothingBack)),
    "leases are shipped over and over": replace(
        RIGHT,
        keeping=_with(repair=ShipsLeasesOverAndOver),
        desk=replace(DESK, voter=ArmsWhatIsShipped),
    ),
    "what is shipped is taken below a promise": replace(
        RIGHT,
        keeping=_with(repair=TakesBelowPromise),
        desk=replace(DESK, voter=FillsBelowItsPromise),
    ),
}
