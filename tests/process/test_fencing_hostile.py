"""The file guard of examples/fencing under keys and tokens that Mesh never gives out, called from Python too; and all of
them under arguments that are none.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.guarded_places import GUARDS

PROGRAM = GUARDS / "file_guard.py"


@pytest.mark.parametrize("key", ["", "."])
def test_a_key_that_names_no_file_puts_none_beside_the_directory(tmp_path: Path, key: str) -> None:
    place = tmp_path / "place"
    place.mkdir()
    found = subprocess.run(
        [sys.executable, PROGRAM, place, "begin"],
        env={**os.environ, "MESH_TOKEN": "5", "MESH_IDEMPOTENCY_KEY": key},
        capture_output=True,
        check=False,
    )
    assert (found.returncode, found.stdout, found.stderr.count(b"\n")) == (2, b"", 1)
    assert list(tmp_path.iterdir()) == [place]
    assert list(place.iterdir()) == []


def test_a_token_below_zero_is_not_the_one_that_nobody_has_installed(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("file_guard", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    guard = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(guard)
    with pytest.raises(ValueError, match="found -1"):
        guard.write(tmp_path, "k", -1, "stolen")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("program", sorted(GUARDS.glob("*.py")), ids=lambda path: str(path.stem))
def test_a_program_without_arguments_says_how_it_is_used(program: Path) -> None:
    words = [(), ("--help",), ("somewhere", "fly"), ("a", "b", "c", "d")]
    for arguments in words[:1] if program.stem == "http_service" else words:
        found = subprocess.run(
            [sys.executable, program, *arguments], capture_output=True, text=True, check=False
        )
        assert (found.returncode, found.stdout) == (2, "")
        assert f"\n    {program.name} " in found.stderr
