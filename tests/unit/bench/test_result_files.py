"""The files of results: refused before minutes are spent, and one that fails takes no other along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mesh.bench import detect as driver
from mesh.bench.records import Record
from mesh.cli.main import EXIT_FAILED, EXIT_USAGE, main


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Let nothing be measured; tell whether it was begun."""
    begun: list[bool] = []

    def detect(*_: object) -> list[Record]:
        begun.append(True)
        return [Record(name="mesh", about="Mesh, lan")]

    monkeypatch.setattr(driver, "detect", detect)
    return begun


@pytest.mark.parametrize("path", ["", "{}", "{}/none/x", "{}/file/x"])
@pytest.mark.parametrize("flag", ["--json", "--svg"])
def test_place_that_takes_no_file_is_refused_at_once(
    flag: str, path: str, tmp_path: Path, played: list[bool], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["bench", "detect", flag, path.format(tmp_path)]) == EXIT_USAGE
    assert "a file that can be written is expected" in capsys.readouterr().err
    assert not played
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_one_file_for_two_results_is_refused(
    tmp_path: Path, played: list[bool], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--json", str(tmp_path / "a"), "--svg", str(tmp_path / "." / "a"))
    assert main(["bench", "detect", *words]) == EXIT_USAGE
    assert "two files are expected" in capsys.readouterr().err
    assert not played


def test_old_results_stay_until_there_are_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old.json"
    old.write_text("old")

    def detect(*_: object) -> list[Record]:
        assert old.read_text() == "old"
        return [Record(name="mesh", about="Mesh, lan")]

    monkeypatch.setattr(driver, "detect", detect)
    assert main(["bench", "detect", "--json", str(old)]) == 0
    assert json.loads(old.read_text())["rounds"] == []


def test_full_disk_is_named_and_the_other_file_is_written(
    tmp_path: Path, played: list[bool], capsys: pytest.CaptureFixture[str]
) -> None:
    figure = tmp_path / "figure.svg"
    code = main(["bench", "detect", "--json", "/dev/full", "--svg", str(figure)])
    assert (code, played) == (EXIT_FAILED, [True])
    assert "/dev/full could not be written: No space left" in capsys.readouterr().err
    assert figure.read_text().startswith("<svg")
