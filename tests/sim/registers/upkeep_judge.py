"""What must never be seen where registers are purged, and made anew under the same keys.

Each creation is one life of a register. A life that was purged anywhere is over: nothing of it that is not final
is ever held again, and once no voter holds it, nothing of it at all. A later life may begin only above what is
still held of an earlier one: else the earlier would be found, and taken for the register.
"""

from __future__ import annotations

from collections.abc import Mapping

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.registers.outbox import Message
from mesh.registers.record import Record
from mesh.wire.register_messages import Standing, Value
from tests.sim.registers.desk_disk import DeskDisk
from tests.sim.registers.desk_judge import DeskJudge
from tests.sim.registers.judge import Judge, Who, creation


class LivesJudge(Judge):
    """Judges one register through all its lives, by the disks of its voters."""

    def __init__(self, majority: int, disks: Mapping[NodeId, DeskDisk], key: bytes) -> None:
        super().__init__(majority, minds_clocks=True)
        self._disks = disks
        self._key = key
        self._over: set[bytes] = set()
        self._gone: set[bytes] = set()
        self._ends: dict[bytes, Value] = {}
        self._known_when_over = 0
        self.lives = 0

    @property
    def is_live(self) -> bool:
        """Say whether a disk holds something of it that is not final."""
        return any(
            record.value is not None and record.value.standing is not Standing.FINAL
            for record in self._records()
        )

    @property
    def is_gone(self) -> bool:
        return all(record.value is None for record in self._records())

    @property
    def is_equal(self) -> bool:
        """Say whether all voters hold the same, and it is final, or all hold nothing."""
        held = [(record.ballot, record.seq, record.value) for record in self._records()]
        return held.count(held[0]) == len(held) and not self.is_live

    def committed(self, voter: NodeId, record: Record) -> None:
        value = record.value
        if value is not None:
            life = creation(value)
            if life in self._gone:
                self._blame(f"{voter} holds {value} again, which was purged everywhere")
            elif life in self._over and value.standing is not Standing.FINAL:
                self._blame(f"{voter} holds {value}, whose life is over and was purged somewhere")
        count = len(self._chosen)
        super().committed(voter, record)
        if len(self._chosen) > count and value is not None:
            self._on_chosen(voter, record.ballot, value)

    def forgot(self, voter: NodeId) -> None:
        """Take that a voter's disk is about to hold nothing of it any more."""
        value = self._disks[voter].record(self._key).value
        if value is None:
            return
        if value.standing is not Standing.FINAL:
            self._blame(f"{voter} purges {value}")
        life = creation(value)
        if life not in self._over:
            self.lives += 1
        self._over.add(life)
        self._known_when_over = self.known_count
        others = (disk for node, disk in self._disks.items() if node != voter)
        held = (disk.record(self._key).value for disk in others)
        if not any(one is not None and creation(one) == life for one in held):
            self._gone.add(life)

    def told(self, who: Who, value: Value) -> None:
        if not any(value == chosen for _, _, chosen in self._chosen):
            self._blame(f"{who} was told of {value}, which is not chosen")
        if value.standing is Standing.FINAL:
            end = self._ends.setdefault(creation(value), value)
            if end != value:
                self._blame(f"{who} was told of another end: {value}, not {end}")
            self.final = value

    def exists(self) -> None:
        """Take nothing of it: the word may have been on its way while it was purged."""

    def absent(self, who: Who, asked_after: int) -> None:
        if asked_after > self._known_when_over:
            self._blame(f"{who} found nothing of what was chosen before it asked")

    # Inside.

    def _records(self) -> list[Record]:
        return [disk.record(self._key) for disk in self._disks.values()]

    def _on_chosen(self, voter: NodeId, ballot: Ballot, value: Value) -> None:
        for disk in self._disks.values():
            other = disk.record(self._key)
            if disk.own == voter or other.value is None or other.ballot < ballot:
                continue
            if creation(other.value) != creation(value):
                self._blame(f"{value} is chosen, below {other} that {disk.own} still holds")

    def _compare(self, lower: tuple[Ballot, int, Value], higher: tuple[Ballot, int, Value]) -> None:
        if creation(lower[2]) == creation(higher[2]):
            super()._compare(lower, higher)
        elif not {creation(lower[2]), creation(higher[2])} & self._over:
            self._blame(f"two creations: {lower} and {higher}")


class UpkeepJudge(DeskJudge):
    """Judges the registers of a world in which what is over is purged."""

    def __init__(
        self, majorities: dict[bytes, int], disks: dict[bytes, dict[NodeId, DeskDisk]]
    ) -> None:
        """Judge these registers, each with the disks of its voters."""
        super().__init__({}, minds_clocks=True)
        self.lives_of = {
            key: LivesJudge(majority, disks[key], key) for key, majority in majorities.items()
        }
        self.of = dict(self.lives_of)
        self.is_closing = False
        """Nothing is made anew any more."""

        self._forgot: set[tuple[NodeId, bytes]] = set()

    def forgot(self, disk: DeskDisk, key: bytes) -> None:
        self.lives_of[key].forgot(disk.own)
        self._forgot.add((disk.own, key))

    def leaves(self, disk: DeskDisk, message: Message) -> None:
        """Take that a message leaves the host of a disk; what it tells of may have been purged by the same commit."""
        key = getattr(message, "key", b"")
        if (disk.own, key) not in self._forgot or disk.record(key).value is not None:
            super().leaves(disk, message)
