"""The driver of the rounds: what it does when a contestant fails."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from mesh.bench import detect as driver
from mesh.bench.contestant import BenchError
from mesh.bench.detect import DetectSettings, detect
from mesh.bench.faults import FaultSettings
from mesh.bench.mesh_nodes import MeshNodes


class Told:
    """Remembers what a benchmark told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tasks: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def task(self, text: str) -> None:
        self.tasks.append(text)

    def advance(self) -> None:
        raise AssertionError("no round is to be played")


def test_no_round_is_played_when_nobody_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(self: MeshNodes, member: str, seed: str | None) -> None:
        raise BenchError(f"{member} does not start")

    monkeypatch.setattr(MeshNodes, "spawn", refuse)
    monkeypatch.setattr(driver, "SETTLE_S", {"local": 0.0})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    told = Told()
    settings = DetectSettings(
        nodes=2,
        rounds=3,
        faults=("kill", "burn"),
        profile="local",
        details=FaultSettings(burners=1, burn_s=0.1),
    )
    (record,) = detect(settings, told)
    assert record.failure == "n01 does not start"
    assert record.rounds == []
    assert told.tasks == ["mesh: starting 2 members"]
    assert list(tmp_path.iterdir()) == []
