"""`mesh keygen` and the words of `mesh key`: a key that nobody else can read, and never one over another."""

from __future__ import annotations

import argparse
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mesh.cli.key import run_key
from mesh.errors import ConfigError
from mesh.runtime.keystore import read_key_file

OPEN_UMASK = 0o022


def keygen(*arguments: str, to: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run it as a shell does, which opened `to` for it."""
    with Path(os.devnull if to is None else to).open("w") as out:
        if to is not None:
            to.chmod(0o666 & ~OPEN_UMASK)  # whatever the umask of the tests is
        return subprocess.run(
            [sys.executable, "-m", "mesh", "keygen", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if to is None else out,
            stderr=subprocess.PIPE,
            text=True,
            umask=OPEN_UMASK,
            timeout=30.0,
            check=False,
        )


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_key_redirected_to_a_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "mesh.key"
    found = keygen(to=path)
    assert (found.returncode, found.stderr) == (0, "")
    assert mode(path) == 0o600
    assert len(read_key_file(path)) == 1


def test_key_written_to_a_file_is_readable_by_its_owner_alone_and_never_overwritten(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mesh.key"
    assert keygen(str(path)).returncode == 0
    assert mode(path) == 0o600
    before = path.read_bytes()
    again = keygen(str(path))
    assert again.returncode in {1, 2}
    assert "a key is never overwritten" in again.stderr
    assert path.read_bytes() == before


def test_two_keys_differ_and_go_to_a_pipe_as_one_line() -> None:
    keys = [keygen().stdout for _ in range(2)]
    assert keys[0] != keys[1]
    assert all(len(key) == 45 and key.endswith("=\n") for key in keys)


def test_directory_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    found = keygen(str(tmp_path / "nowhere" / "mesh.key"))
    assert found.returncode != 0
    assert len(found.stderr.splitlines()) == 1
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("action", "which", "words"),
    [
        ("use", "", "needs the id of a key"),
        ("remove", "", "needs the id of a key"),
        ("list", "x", "takes nothing more"),
        ("add", "/nowhere/mesh.key", "a key file is expected"),
    ],
)
def test_wrong_use_of_key_is_told_before_a_node_is_asked(
    action: str, which: str, words: str
) -> None:
    options = argparse.Namespace(action=action, which=which, force=False, json=False, data=None)
    with pytest.raises(ConfigError, match=words):
        run_key(options)
