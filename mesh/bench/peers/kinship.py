"""kinship: a Python package with a core in Rust, in a harness of ours, in an environment of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from mesh.bench.peers.harness import Harness

HOW: Final = (
    "python3 -m venv DIR && DIR/bin/pip install kinship, and name it: --kinship DIR/bin/python"
)
_ASK: Final = "import importlib.metadata as m; print(m.version('kinship'))"


class Kinship(Harness):
    """The harness `bench/peers/kinship_node.py`, run by the interpreter that has kinship."""

    name = "kinship"
    tells_refutations = True

    def __init__(self, python: str, harness: Path, version: str) -> None:
        self._python = python
        self._harness = harness
        self.about = f"kinship {version}"

    def command(self, member: str, address: str, seed: str, profile: str) -> list[str]:
        """Return the harness's command."""
        harness = str(self._harness)
        return [self._python, harness, profile, member, address, *([seed] if seed else [])]


def version_in(python: str) -> str:
    """Return the version of kinship that an interpreter has, "" if none."""
    try:
        said = subprocess.run(
            [python, "-c", _ASK], capture_output=True, text=True, check=False, timeout=30.0
        )
    except OSError:
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""
