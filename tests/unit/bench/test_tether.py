"""The prefix that ties a process to the benchmark: it runs the command, and only for a living parent."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from mesh.bench.contestant import tether

needs_setpriv = pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")


@needs_setpriv
def test_the_command_takes_the_place_of_its_prefix() -> None:
    done = subprocess.run(
        [*tether(), "sh", "-c", "echo $PPID a$1", "sh", "b c"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{os.getpid()} ab c\n"


@needs_setpriv
def test_whose_parent_is_gone_already_does_not_run() -> None:
    *prefix, parent = tether()
    assert parent == str(os.getpid())
    done = subprocess.run(
        [*prefix, "1", "echo", "ran"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert done.stdout == ""


def test_without_setpriv_there_is_no_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert tether() == ()
