"""The examples run as they stand, and leave nothing behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def processes_that_name(place: str) -> list[str]:
    """The command lines of all processes that mention `place`."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if place.encode() in words:
            found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found


def test_every_example_is_tried() -> None:
    assert [path.name for path in EXAMPLES.glob("*.sh")] == ["three_nodes.sh"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (
            "three_nodes.sh",
            r"three +dead \((ended|crashed)\)(.*\n)*example-. +done .* (one|two) +2 +0 ",
        )
    ],
)
def test_an_example_shows_what_it_announces_and_leaves_nothing_behind(
    name: str, shown: str
) -> None:
    # Not tmp_path: the path of a Unix socket is short.
    with tempfile.TemporaryDirectory(prefix="mesh-example-") as place:
        done = subprocess.run(
            [EXAMPLES / name],
            env={
                **os.environ,
                "TMPDIR": place,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        assert re.search(shown, done.stdout), done.stdout
        assert list(Path(place).iterdir()) == []
        assert processes_that_name(place) == []
