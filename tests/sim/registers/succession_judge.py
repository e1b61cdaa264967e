"""What must never be seen while one epoch follows another: the judge of desks, who knows which disks make a majority.

Chosen is what a majority of an epoch's voters hold while they vote in it: of the first, the founder alone.
"""

from __future__ import annotations

from collections.abc import Callable

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.registers.outbox import Commit, Message
from mesh.registers.proposal import majority
from mesh.registers.record import Record
from mesh.registers.roster import ROSTERS, chosen_roster
from mesh.wire.register_messages import Accepted, Promised, Value
from mesh.wire.roster_messages import Page, Sealed
from tests.sim.registers.desk_disk import DeskDisk
from tests.sim.registers.desk_judge import DeskJudge
from tests.sim.registers.judge import Judge


class EpochJudge(Judge):
    """Judges one register through all epochs."""

    def __init__(self, voters: Callable[[int], tuple[NodeId, ...]], *, minds_clocks: bool) -> None:
        super().__init__(1, minds_clocks=minds_clocks)
        self._voters = voters
        self._held_in: dict[tuple[int, Ballot, int, Value], set[NodeId]] = {}

    def held(self, voter: NodeId, epoch: int, record: Record) -> None:
        """Take that a disk holds this while its host votes in an epoch."""
        voters = self._voters(epoch)
        if record.value is None or voter not in voters:
            return
        write = (record.ballot, record.seq, record.value)
        holders = self._held_in.setdefault((epoch, *write), set())
        holders.add(voter)
        if len(holders) >= majority(len(voters)):
            super().committed(voter, record)  # one is enough there: it is chosen


class SuccessionJudge(DeskJudge):
    """Judges registers, rosters, and that nobody votes where it has installed nothing."""

    def __init__(self, keys: tuple[bytes, ...], *, minds_clocks: bool, minds_words: bool) -> None:
        """Judge these registers; `minds_words`: a voter's word that its disk does not bear out is a fault by itself."""
        super().__init__({}, minds_clocks=minds_clocks, minds_losses=False)
        self._minds_words = minds_words
        self.rosters: dict[int, tuple[NodeId, ...]] = {}
        self._epoch_judges = {
            key: EpochJudge(self._voters_of, minds_clocks=minds_clocks) for key in keys
        }
        self.of = dict(self._epoch_judges)

    def committing(self, disk: DeskDisk, commit: Commit) -> None:
        """Take that a disk is about to hold a commit: which epoch its records are of."""
        self._epoch = disk.epoch[0] or (0 if commit.epoch is None else commit.epoch[0])
        for key, record in commit.records:
            if key.startswith(ROSTERS):
                self._roster(key, record)

    def committed(self, disk: DeskDisk, key: bytes, record: Record) -> None:
        """Take that a disk is about to hold this."""
        before = disk.record(key)
        went_back = (record.ballot, record.seq) < (before.ballot, before.seq)
        if record.promised < before.promised or went_back:
            self.blame(f"the record of {key!r} at {disk.own} went back: {record} after {before}")
        if key in self._epoch_judges:
            self._epoch_judges[key].held(disk.own, self._epoch, record)

    def leaves(self, disk: DeskDisk, message: Message) -> None:
        """Take that a message leaves the host of a disk."""
        if not self._minds_words:
            return
        super().leaves(disk, message)
        installed, sealed = disk.epoch
        if isinstance(message, Promised | Accepted):
            epoch = message.ballot.epoch if isinstance(message, Promised) else message.epoch
            if epoch not in {installed, sealed}:
                self.blame(f"{disk.own} votes in {epoch}, its disk says {disk.epoch}: {message}")
        elif isinstance(message, Sealed | Page) and sealed < message.epoch:
            self.blame(f"{disk.own} tells of {message.epoch}, its disk says {disk.epoch}")

    # Inside.

    _epoch = 0

    def _voters_of(self, epoch: int) -> tuple[NodeId, ...]:
        return self.rosters.get(epoch, ())

    def _roster(self, key: bytes, record: Record) -> None:
        """Note a roster: with one voter, or three that hold what it chose, all that are ever held are chosen."""
        if record.value is None:
            return
        roster = chosen_roster(record.value)
        known = self.rosters.setdefault(roster.epoch, roster.voters)
        if known != roster.voters or key != ROSTERS + b"%d" % (roster.epoch - 1):
            self.blame(f"two rosters of one epoch: {known} and {roster} in {key!r}")
