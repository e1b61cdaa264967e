"""`mesh doctor`: its words, its JSON and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mesh.cli.doctor import as_text
from mesh.cli.main import main
from mesh.runtime.doctor import Finding


def test_a_line_says_what_was_found_and_the_next_what_to_do() -> None:
    findings = [Finding("room", "ok", "much"), Finding("store", "bad", "a\x1bb", "start anew")]
    assert as_text(findings).splitlines() == [
        "ok    room   much",
        "bad   store  a?b",
        "             start anew",
    ]


def test_what_is_bad_fails_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "identity").write_text("{")
    assert main(["doctor", "--data", str(tmp_path)]) == 1
    assert "bad   identity" in capsys.readouterr().out


@pytest.fixture
def no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has never started a node."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("MESH_DATA", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_node")
def test_a_warning_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert "warn  directory" in capsys.readouterr().out


@pytest.mark.parametrize("is_by_flag", [True, False])
def test_a_directory_that_was_named_must_be_there(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    is_by_flag: bool,
) -> None:
    named = str(tmp_path / "nowhere")
    monkeypatch.setenv("MESH_DATA", named)
    assert main(["doctor", "--data", named] if is_by_flag else ["doctor"]) == 1
    assert "bad   directory" in capsys.readouterr().out


@pytest.mark.usefixtures("no_node")
def test_programs_read_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["worst"] == "warn"
    assert found["findings"][0].keys() == {"name", "level", "text", "advice"}
    assert {finding["name"] for finding in found["findings"]} >= {"directory", "error queue"}
