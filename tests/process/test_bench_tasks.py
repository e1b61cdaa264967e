"""`mesh bench tasks` on real nodes, in small: every figure is there, and its parts fit together."""

from __future__ import annotations

import json
from pathlib import Path

from tests.process.conftest import Mesh


def test_tasks_are_measured_and_the_figures_fit_together(mesh: Mesh, tmp_path: Path) -> None:
    file = tmp_path / "tasks.json"
    words = ("--nodes", "3", "--tasks", "20", "--recoveries", "1", "--json", str(file))
    done = mesh("bench", "tasks", *words, timeout_s=120.0)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(file.read_text())
    assert found["failure"] == ""
    assert (found["settings"]["nodes"], found["settings"]["tasks"]) == (3, 20)
    rates, seconds = found["throughput"], found["throughput"]["seconds"]
    assert rates["enqueued_s"] > 0
    assert abs(rates["deferred_s"] * seconds["defer"] - 20) < 1
    assert abs(rates["end_to_end_s"] * seconds["end_to_end"] - 20) < 1
    assert abs(rates["drained_s"] * seconds["drain"] - 20) < 1
    assert found["acknowledged"]["median_ms"] < found["pickup"]["median_ms"]
    assert found["command"]["median_ms"] < found["pickup"]["median_ms"]
    assert found["recovery_s"] == found["recoveries_s"][0] > 0
    assert found["cpu_ms"] > 0
    assert found["status"]["p99_ms"] > 0
    assert "tasks/s" in done.stdout


def test_numbers_that_make_no_sense_are_refused(mesh: Mesh) -> None:
    for words in (("--nodes", "2"), ("--tasks", "0"), ("--profile", "moon")):
        done = mesh("bench", "tasks", *words)
        assert done.returncode == 2, done.stderr
        assert words[0] in done.stderr
