"""What must never be seen of a mesh of desks: for each register what its judge sees, and of each host two things.

Nothing that it sends tells of more than its disk holds at that moment: no promise, no acceptance, no number. And
who does the work of a lease is told in time that it may do so no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mesh.core.ballot import Ballot
from mesh.registers.asker import SET_ASIDE
from mesh.registers.outbox import PURGED, Changed, Message
from mesh.registers.record import Record
from mesh.wire.register_messages import Accept, Accepted, Held, Outbid, Prepare, Promised
from tests.sim.registers.judge import Judge, Who

if TYPE_CHECKING:
    from tests.sim.registers.desk_disk import DeskDisk


class DeskJudge:
    """Sees disks, messages and words; remembers the first thing that was wrong."""

    def __init__(
        self, majorities: dict[bytes, int], *, minds_clocks: bool, minds_losses: bool = False
    ) -> None:
        """Judge these registers, each kept by as many voters as make that a majority.

        `minds_losses`: nothing goes wrong in this world, so nobody loses what it was granted.
        """
        self.of = {
            key: Judge(majority, minds_clocks=minds_clocks) for key, majority in majorities.items()
        }
        self._minds_losses = minds_losses
        self._fault = ""
        self._boots: dict[Ballot, int] = {}

    @property
    def fault(self) -> str:
        faults = (f"{key!r}: {judge.fault}" for key, judge in self.of.items() if judge.fault)
        return self._fault or next(faults, "")

    @property
    def is_over(self) -> bool:
        """Say whether something is wrong, or every register has come to its end."""
        return bool(self.fault) or all(judge.final is not None for judge in self.of.values())

    def committed(self, disk: DeskDisk, key: bytes, record: Record) -> None:
        """Take that a disk is about to hold this."""
        before = disk.record(key)
        if record.promised < before.promised or _write(record) < _write(before):
            self.blame(f"the record of {key!r} at {disk.own} went back: {record} after {before}")
        self.of[key].committed(disk.own, record)

    def forgot(self, disk: DeskDisk, key: bytes) -> None:
        """Take that a disk is about to hold nothing of a register any more."""
        self.blame(f"{disk.own} forgot {key!r}, which nobody purges here")

    def set_aside(self, disk: DeskDisk, name: str, number: int) -> None:
        """Take that a disk is about to hold this number."""
        if number < disk.numbers.get(name, 0):
            self.blame(f"{name} at {disk.own} went back to {number}")

    def leaves(self, disk: DeskDisk, message: Message) -> None:
        """Take that a message leaves the host of a disk."""
        if isinstance(message, Prepare):
            is_true = message.ballot.n <= disk.numbers.get(SET_ASIDE, 0)
            if self._boots.setdefault(message.ballot, message.boot) != message.boot:
                self.blame(f"two sessions asked under {message.ballot}")
        elif isinstance(message, Accept):
            is_own = message.ballot.n == 0 and message.ballot.node_id == disk.own
            is_true = not is_own or _write(disk.record(message.key)) >= (message.ballot, 0)
        elif isinstance(message, Promised):
            record = disk.record(message.key)
            accepted = (message.accepted, message.seq)
            is_true = record.promised >= message.ballot and _write(record) >= accepted
        elif isinstance(message, Accepted | Held):
            is_true = _write(disk.record(message.key)) >= (message.ballot, message.seq)
        elif isinstance(message, Outbid):
            promised = message.promised
            is_of_all = (
                promised.node_id == 0
            )  # of no register by itself: of old epochs, and of what is purged
            is_true = disk.record(message.key).promised >= promised or (
                is_of_all
                and promised.epoch == disk.epoch[0]
                and promised.n <= disk.numbers.get(PURGED, 0) + 1
            )
        else:
            is_true = True  # of no record, or of nothing but time
        if not is_true:
            self.blame(f"{message} left {disk.own}, whose disk holds less")

    def changed(self, disk: DeskDisk, changed: Changed) -> None:
        """Take that a host says that this is durable."""
        if disk.record(changed.key) != changed.record:
            self.blame(f"{disk.own} says that {changed} is durable, and it is not")

    def working(self, who: Who, key: bytes, now: float, until: float | None) -> None:
        """Take that somebody works on, who trusts the lease until then, by one clock."""
        if until is None or now > until + 1e-6:
            self.blame(f"{who} works on {key!r} at {now:.6f}, its lease was trusted until {until}")

    def lost(self, who: Who, key: bytes) -> None:
        """Take that somebody has lost what it was granted."""
        if self._minds_losses:
            self.blame(f"{who} lost {key!r}, and nothing had gone wrong")

    def blame(self, text: str) -> None:
        self._fault = self._fault or text


def _write(record: Record) -> tuple[Ballot, int]:
    return record.ballot, record.seq
