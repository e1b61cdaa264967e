"""The floors hold, every package stands on one, and a planted import from above is found out."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.tidy.source import ROOT

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = SETTINGS["tool"]["importlinter"]["contracts"]
PURE = next(item for item in CONTRACTS if item["name"].startswith("Pure floors"))
FLOORS = [
    name.strip() for floor in CONTRACTS[0]["layers"] for name in floor.replace(":", "|").split("|")
]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    lint = Path(sys.executable).parent / "lint-imports"
    return subprocess.run(
        [lint, "--no-cache"],
        cwd=folder,
        env={"PATH": "", "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_package_stands_on_a_floor() -> None:
    beside = {"mesh.__main__", "mesh.version"}  # these import no floor but the topmost, and none
    packages = {
        f"mesh.{path.stem}"
        for path in (ROOT / "mesh").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert packages - beside - set(FLOORS) - {"mesh.__init__"} == set()


def test_every_floor_below_the_drivers_is_pure() -> None:
    below = FLOORS[FLOORS.index("mesh.node") :]
    assert set(PURE["source_modules"]) == set(below)


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("core/wrong.py", "import mesh.wire.packet"),
        ("placement/wrong.py", "import mesh.membership.table"),
        ("tasks/wrong.py", "import socket"),
        ("node/wrong.py", "import time"),
        ("sim/wrong.py", "import mesh.wire.packet"),
    ],
)
def test_an_import_from_above_is_found_out(tmp_path: Path, place: str, line: str) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "mesh", tmp_path / "mesh", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "mesh" / place).write_text(f"{line}\n", encoding="utf-8")
    found = lint_imports(tmp_path)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "mesh." + place.removesuffix(".py").replace("/", ".") in found.stdout


def test_the_floors_hold() -> None:
    found = lint_imports(ROOT)
    assert found.returncode == 0, found.stdout + found.stderr
