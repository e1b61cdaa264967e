"""The map of a package names every room in it, and no room that is not there."""

import re
from pathlib import Path

import pytest

import mesh.membership
import mesh.runtime.store

MAPPED = [mesh.membership, mesh.runtime.store]


@pytest.mark.parametrize("package", MAPPED, ids=lambda package: str(package.__name__))
def test_the_map_of_a_package_is_complete(package: object) -> None:
    where = Path(str(getattr(package, "__file__", ""))).parent
    files = {path.stem for path in where.glob("*.py")} - {"__init__"}
    named = set(re.findall(r"`(\w+)`", str(package.__doc__)))
    assert named == files
