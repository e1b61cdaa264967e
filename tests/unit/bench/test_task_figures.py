"""The figures of `mesh bench tasks`: their JSON, their table, and the ledger that they come from."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from mesh.bench.contestant import BenchError
from mesh.bench.ledger import Ledger, percentile
from mesh.bench.records import Blame
from mesh.bench.task_figures import TaskFigures, Throughput, Times, times_of
from mesh.bench.tasks import TaskSettings

WHOLE = TaskFigures(
    about="Mesh, local, 3 nodes",
    throughput=Throughput(
        enqueued_s=400.0,
        end_to_end_s=50.0,
        deferred_s=900.0,
        drained_s=60.0,
        seconds={"enqueue": 2.5, "end_to_end": 20.0, "drain": 16.7},
    ),
    acknowledged=times_of([10.0, 12.0, 11.0]),
    pickup=times_of([30.0, 50.0]),
    cpu_ms=21.5,
    recovery_s=0.4,
    recoveries_s=(0.3, 0.4, 0.9),
)


def test_percentile_is_a_value_that_occurred() -> None:
    values = [float(number) for number in range(1, 101)]
    assert percentile(values, 0.99) == 100.0
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([7.0], 0.99) == 7.0
    assert percentile([], 0.99) is None


def test_times_are_their_median_their_p99_and_the_worst() -> None:
    assert times_of([3.0, 1.0, 2.0]) == Times(median_ms=2.0, p99_ms=3.0, worst_ms=3.0)
    assert times_of([]) == Times()


def test_json_has_the_keys_that_programs_rely_on() -> None:
    found = json.loads(json.dumps(WHOLE.to_json(TaskSettings(nodes=3, tasks=1_000).to_json())))
    assert found["settings"]["nodes"] == 3
    assert found["settings"]["tasks"] == 1_000
    assert {"enqueued_s", "drained_s", "end_to_end_s"} <= found["throughput"].keys()
    assert {"median_ms", "p99_ms"} <= found["pickup"].keys()
    assert found["recovery_s"] == 0.4
    assert found["peers"] == {}


def test_what_was_not_come_to_is_null_and_said() -> None:
    figures = TaskFigures(about="Mesh", failure="no voters", blame=Blame(suspicions=2))
    found = figures.to_json({})
    assert found["throughput"] is None
    assert found["recovery_s"] is None
    assert found["pickup"] == {"median_ms": None, "p99_ms": None, "worst_ms": None}
    text = figures.text()
    assert "no voters" in text
    assert "2 suspicions" in text
    assert "picked up" not in text


def test_the_table_tells_each_figure() -> None:
    text = WHOLE.text()
    for part in (
        "21.5 ms a task",
        "400 tasks/s",
        "50 tasks/s",
        "60 tasks/s",
        "median 40.0 ms",
        "worst 0.900 s of 3",
    ):
        assert part in text


def test_a_command_of_the_ledger_writes_its_start_and_who_started_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.of("t") == []
    for _ in range(2):
        subprocess.run(ledger.argv(), env={"MESH_TASK_ID": "t"}, check=True)
    first, second = ledger.of("t")
    assert first.at_ns < second.at_ns
    assert ledger.wait("t", 2, 5.0) == second
    assert ledger.of("other") == []
    with pytest.raises(BenchError, match="should have started 3 times"):
        ledger.wait("t", 3, 0.05)


def test_a_line_that_is_not_whole_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger(path)
    path.write_text("t 5 1\nt 9")
    assert [entry.at_ns for entry in ledger.of("t")] == [5]
    path.write_text("t 5 1\nt 99 1\n")
    assert [entry.at_ns for entry in ledger.of("t")] == [5, 99]


def test_the_commands_own_start_is_timed_without_a_mesh(tmp_path: Path) -> None:
    times_ms = Ledger(tmp_path / "ledger").alone_ms(2)
    assert len(times_ms) == 2
    assert all(0 < one < 10_000 for one in times_ms)


def test_a_rate_that_was_not_come_to_is_null_and_in_no_row() -> None:
    so_far = Throughput(enqueued_s=400.0, end_to_end_s=50.0, seconds={"enqueue": 2.5})
    figures = TaskFigures(about="Mesh", throughput=so_far, failure="a node died")
    assert figures.to_json({})["throughput"]["drained_s"] is None
    assert "400 tasks/s" in figures.text()
    assert "drained" not in figures.text()
