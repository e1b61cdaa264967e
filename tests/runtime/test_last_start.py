"""The command line that a node was started with last: kept for whoever finds the node gone."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mesh.client import how_to_start, last_start
from mesh.runtime.datadir import open_data_dir


def test_how_a_node_was_started_last_is_there_when_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, path = tmp_path / "it's here", tmp_path / "data"
    here.mkdir()
    monkeypatch.chdir(here)
    assert "start one with" in how_to_start(path)
    data = open_data_dir(path, 1_000)
    data.note_start("mesh join --name n1")
    data.note_start("mesh join --name n2")
    data.close()
    assert how_to_start(path) == "start it again: mesh join --name n2"
    monkeypatch.chdir(tmp_path)
    assert last_start(path) == f"cd {shlex.quote(str(here))} && mesh join --name n2"
    monkeypatch.chdir(here)
    shutil.rmtree(here)
    open_data_dir(path, 1_000).note_start("mesh join")  # in a directory that was removed
    assert last_start(path) == "mesh join"
    (path / "lock").unlink()
    open_data_dir(path, 1_000).note_start("")  # by a program that is no command line
    assert not (path / "start").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"command": ""}', "[" * 9000])
def test_a_record_of_the_start_that_says_nothing_is_no_hint(tmp_path: Path, text: str) -> None:
    (tmp_path / "start").write_text(text)
    assert last_start(tmp_path) == ""


def test_what_a_hook_runs_is_kept_and_not_shown(tmp_path: Path) -> None:
    data = open_data_dir(tmp_path / "data", 1_000)
    whole = "mesh join --on-shortage 'call --token SECRET' host1"
    data.note_start(whole)
    data.close()
    kept = tmp_path / "data" / "start"
    assert whole in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert last_start(data.path) == f"mesh join --on-shortage … host1  # …: see {kept}"


def test_a_start_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    """As an identity that is a pipe is not."""
    os.mkfifo(tmp_path / "start")
    code = f"from pathlib import Path; from mesh.client import last_start; print(last_start(Path({str(tmp_path)!r})))"
    found = subprocess.run([sys.executable, "-c", code], timeout=10, check=True)
    assert found.returncode == 0
