"""A working directory that cannot be looked at: its task fails, with one sentence, and nothing else happens."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import TypeAlias

import pytest

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess

Mesh: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

LONG = "/" + "x" * 300
"""ENAMETOOLONG, for root too; a directory without permission does it for everybody else."""

TERMINAL = {"done", "failed", "cancelled"}


@pytest.fixture
def node(fleet: Fleet) -> NodeProcess:
    return fleet.start("n", slots=1)


def test_it_fails_its_task_and_gives_the_slot_back(mesh: Mesh, node: NodeProcess) -> None:
    where = ("--data", str(node.data))
    found = mesh("submit", "--wait", "--id", "p", "--cwd", LONG, *where, "--", "true")
    assert found.returncode == 126, found.stderr
    assert "name too long" in found.stderr
    assert node.call("task", id="p")["state"] == "failed"
    assert mesh("submit", "--wait", *where, "--", "true", timeout_s=10).returncode == 0


def test_a_task_that_waited_for_the_slot_kills_no_node(node: NodeProcess) -> None:
    first = node.call("submit", argv=["sleep", "0.5"])["id"]
    node.call("submit", id="p", argv=["true"], cwd=LONG)

    def ended() -> str | None:
        state: str = node.call("task", id="p")["state"]
        return state if state in TERMINAL else None

    state = wait_until(ended, 10.0, lambda: AssertionError("it waits for ever"))
    assert state == "failed"
    assert node.call("task", id="p")["ended"] >= node.call("task", id=first)["ended"]
    assert node.is_running
