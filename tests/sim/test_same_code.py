"""The simulator drives the very node of production and handles no message itself."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import mesh.sim
from mesh.node.node import Node
from mesh.runtime import agent
from mesh.sim import experiment, mixed

FORBIDDEN = ("mesh.wire", "mesh.membership", "mesh.registers", "mesh.tasks", "msgpack", "struct")
# The trace packs its own records; it unpacks nothing.
EXCEPTIONS = {("trace.py", "struct")}
FILES = sorted(Path(mesh.sim.__file__).parent.glob("*.py"))


def imported(source: str) -> Iterator[str]:
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.Import):
            yield from (name.name for name in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            yield statement.module or ""
            yield from (f"{statement.module}.{name.name}" for name in statement.names)


def violations(name: str, source: str) -> list[str]:
    return [
        module
        for module in imported(source)
        for forbidden in FORBIDDEN
        if (module == forbidden or module.startswith(f"{forbidden}."))
        and (name, module.partition(".")[0]) not in EXCEPTIONS
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.name))
def test_no_file_of_the_simulator_knows_a_message(path: Path) -> None:
    assert violations(path.name, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "import mesh.wire.packet",
        "from mesh.wire import packet",
        "from mesh import wire",
        "from mesh.membership.table import MemberTable",
        "def f():\n    from mesh.tasks.commands import Submit",
        "import msgpack",
        "import struct",
    ],
)
def test_knowing_a_message_is_found_out(line: str) -> None:
    assert violations("planted.py", line)


def test_both_drivers_drive_one_class() -> None:
    for function in (mixed.run_mixed, experiment.run_experiment):
        assert inspect.signature(function).parameters["make_node"].default is Node
    assert vars(agent)["Node"] is Node


def test_no_file_of_the_simulator_derives_from_the_node_or_changes_it() -> None:
    for path in FILES:
        for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(statement, ast.ClassDef):
                assert "Node" not in [ast.unparse(parent) for parent in statement.bases], path
            if isinstance(statement, ast.Call):
                assert ast.unparse(statement.func) not in {"setattr", "patch"}, path
