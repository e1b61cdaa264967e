"""A disk under a desk: records, named numbers, and the epoch that its node votes in."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from mesh.core.ids import NodeId
from mesh.registers.outbox import Commit
from mesh.registers.record import NOTHING, Record
from tests.sim.registers.desk_judge import DeskJudge
from tests.sim.registers.slow_disk import SlowDisk


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


class Writing(SlowDisk):
    """One session's way to the disk of its desk, under the judge's eyes."""

    def __init__(
        self,
        disk: DeskDisk,
        judge: DeskJudge,
        rng: random.Random,
        later: Callable[[float, Callable[[], None]], None],
        committed: Callable[[int], None],
    ) -> None:
        super().__init__(rng, later, committed)
        self._disk = disk
        self._judge = judge

    def _apply(self, commit: Commit) -> None:
        disk = self._disk
        for key, record in commit.records:
            self._judge.committed(disk, key, record)
            disk.records[key] = record
        for key in commit.forget:
            self._judge.forgot(disk, key)
            disk.records.pop(key, None)
        for name, number in commit.numbers.items():
            self._judge.set_aside(disk, name, number)
            disk.numbers[name] = number
        if commit.epoch is not None:
            disk.epoch = commit.epoch
