"""What `bench.contests` makes of what it measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.contests import __main__ as program
from bench.contests import emergency
from bench.contests.diary import Diary
from bench.contests.finding import Finding, chance_of_at_most, spread, table
from mesh.bench.contestant import BenchError


def test_so_few_hits_are_as_likely_as_the_binomial_says() -> None:
    assert chance_of_at_most(0, 10, 0.2) == pytest.approx(0.8**10)
    assert chance_of_at_most(1, 2, 0.5) == pytest.approx(0.75)
    assert chance_of_at_most(7, 7, 0.3) == pytest.approx(1.0)


def test_of_no_times_nothing_is_said() -> None:
    assert spread([])["median_ms"] is None
    assert spread([3.0, 1.0, 2.0]) == {
        "count": 3,
        "first_ms": 1.0,
        "median_ms": 2.0,
        "worst_ms": 3.0,
    }


def test_what_does_not_hold_is_not_overlooked() -> None:
    rows = table(
        [
            Finding(experiment="busy", asked="fewer", found="more", holds=False),
            Finding(experiment="declined", asked="20 ms", found="9 ms", holds=True),
        ]
    ).splitlines()
    assert rows[2].split() == ["DOES", "NOT", "HOLD"]
    assert rows[5].split() == ["holds"]


def test_a_diary_is_read_as_far_as_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "diary"
    path.write_text("begin a 1000 7\nbegin b 2000 8\nend a 30")
    diary = Diary(path)
    diary.read()
    assert [line.at_ns for line in diary.begins("a")] == [1000]
    assert diary.ends("a") == []
    with path.open("a") as file:
        file.write("00 7\n")
    (ended,) = diary.wait_ended(["a"], 1.0)
    assert (ended.at_ns, ended.node_pid) == (3000, 7)
    with pytest.raises(BenchError, match="2 tasks should have ended within 0 s, 1 have not"):
        diary.wait_ended(["a", "b"], 0.0)


def test_an_emergency_node_that_takes_no_task_or_one_too_soon_is_no_finding() -> None:
    assert emergency.first_after_s(100.0, [109.0, 106.5], "spare") == 6.5
    with pytest.raises(BenchError, match="found none"):
        emergency.first_after_s(100.0, [], "spare")
    with pytest.raises(BenchError, match=r"found one after 1\.0 s"):
        emergency.first_after_s(100.0, [106.0, 101.0], "spare")


def test_an_emergency_node_that_withdraws_too_late_does_not_hold() -> None:
    assert emergency.finding([5.0], [6.0], [5.0]).holds
    assert not emergency.finding([5.0], [6.0], [5.0, emergency.LEAVE_S_MAX]).holds
    assert not emergency.finding([5.0], [6.0, emergency.JOIN_S_MAX], [5.0, 5.0]).holds


def test_an_experiment_that_breaks_is_told_and_the_others_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = Finding(experiment="busy", asked="fewer", found="fewer", holds=True)

    def broken(_scale: float, _progress: object) -> list[Finding]:
        raise ZeroDivisionError("no rounds")

    experiments = {"declined": broken, "busy": lambda _scale, _progress: [kept]}
    monkeypatch.setattr(program, "EXPERIMENTS", experiments)
    path = tmp_path / "result.json"
    assert program.main(["--json", str(path)]) == 1
    result = json.loads(path.read_text())
    assert [one["experiment"] for one in result["findings"]] == ["busy"]
    assert result["failures"] == {"declined": "ZeroDivisionError: no rounds"}
    said = capsys.readouterr()
    assert "declined FAILED: ZeroDivisionError: no rounds" in said.out
    assert "Traceback" in said.err
