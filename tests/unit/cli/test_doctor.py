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


def test_a_warning_does_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--data", str(tmp_path / "nowhere")]) == 0
    assert "warn  directory" in capsys.readouterr().out


def test_programs_read_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "--data", str(tmp_path / "nowhere")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["worst"] == "warn"
    assert found["findings"][0].keys() == {"name", "level", "text", "advice"}
    assert {finding["name"] for finding in found["findings"]} >= {"directory", "error queue"}
