"""`sim --experiment lifeguard`: its processes and its journal, with runs that cost nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mesh.cli import lifeguard
from mesh.cli import main as program
from mesh.sim.anomalies import Anomalies, Crash, Harm
from mesh.sim.variants import Job, Run

LINE = ["sim", "--experiment", "lifeguard", "--quick"]
RUNS = 6 * 3  # pairs of thresholds, and variants

done: list[Job] = []


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    done.clear()
    monkeypatch.setattr(lifeguard, "perform", perform)


def perform(job: Job) -> Run:
    done.append(job)
    first_s = 7.0 + job.seed
    crash = Crash(is_lost=True, first_s=first_s, median_s=7.5, last_s=8.0, missing=0)
    counts = {"false_at_healthy": job.seed, "false_in_total": job.seed, "blocked_accused": 0}
    return Run(job, Harm(crashes=(crash,), packets=1, **counts))


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert program.main([*LINE, *arguments]) == 0
    return capsys.readouterr().out


def test_every_seed_is_run_in_every_cell_for_every_variant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert json.loads(said(capsys, "--json"))["seeds"] == [1]
    assert json.loads(said(capsys, "--json", "--seed", "5"))["seeds"] == [5]
    data = json.loads(said(capsys, "--json", "--seeds", "3..4"))
    assert data["seeds"] == [3, 4]
    assert len(data["cells"]) == 6
    assert len(data["runs"]) == 2 * RUNS
    assert data["total"]["sums"]["Mesh"]["false_in_total"] == 6 * (3 + 4)


def test_what_the_journal_has_is_not_run_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "journal"
    one = ("--journal", str(path))
    first = said(capsys, *one)
    assert len(done) == len(path.read_text().splitlines()) == RUNS
    assert said(capsys, *one) == first == said(capsys)
    assert len(done) == 2 * RUNS
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:20])  # cut off in the middle of a line
    assert said(capsys, *one) == first
    assert path.read_text().splitlines(keepends=True) == lines
    done.clear()
    said(capsys, *one, "--seeds", "1..2")
    assert {job.seed for job in done} == {2}


@pytest.mark.parametrize("line", ["no JSON", "[1]", "{}", '{"seed": 1}'])
def test_a_file_that_is_no_journal_is_refused_and_left_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str
) -> None:
    path = tmp_path / "notes"
    path.write_text(f"{line}\n")
    assert program.main([*LINE, "--journal", str(path)]) == 2
    assert "name another file" in capsys.readouterr().err
    assert path.read_text() == f"{line}\n"
    assert not done


def test_several_processes_give_the_same_runs_in_the_same_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()  # a process of its own gets the real thing
    few = Anomalies(members=8, blocked=1, block_s=1.0, total_s=4.0, crashes=2)
    jobs = [Job(seed, "SWIM", few) for seed in (1, 2, 3)]
    alone = list(lifeguard.perform_all(jobs, 1))
    assert [run.job for run in alone] == jobs
    assert list(lifeguard.perform_all(jobs, 2)) == alone
