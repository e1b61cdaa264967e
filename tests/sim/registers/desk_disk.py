"""A disk under a desk: records, named numbers, and the epoch that its node votes in."""

from __future__ import annotations

from dataclasses import dataclass, field

from mesh.core.ids import NodeId
from mesh.registers.outbox import Commit
from mesh.registers.record import NOTHING, Record
from tests.sim.registers.desk_judge import DeskJudge


@dataclass(slots=True)
class DeskDisk:
    """What survives a crash."""

    own: NodeId
    epoch: tuple[int, int]
    records: dict[bytes, Record] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    boot: int = 0

    def record(self, key: bytes) -> Record:
        return self.records.get(key, NOTHING)

    def apply(self, commit: Commit, judge: DeskJudge) -> None:
        """Hold a commit, under the judge's eyes."""
        for key, record in commit.records:
            judge.committed(self, key, record)
            self.records[key] = record
        for name, number in commit.numbers.items():
            judge.set_aside(self, name, number)
            self.numbers[name] = number
        if commit.epoch is not None:
            self.epoch = commit.epoch
