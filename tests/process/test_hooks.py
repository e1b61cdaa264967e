"""The hooks of a real node: the command that it runs when there are no slots, and what is left of a check at kill -9."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet
from tests.process.guarded import is_alive

PATIENCE_S = 20.0


def is_written(path: Path) -> bool:
    return path.exists() and path.read_text().endswith("\n")


@pytest.mark.skipif(sys.platform != "linux", reason="the guardian is for Linux")
def test_a_full_node_runs_its_hook_and_a_killed_one_leaves_nothing_of_its_check(
    fleet: Fleet,
) -> None:
    bad, hang, pid, ran = (fleet.home / name for name in ("bad", "hang", "pid", "ran"))
    check = f"[ ! -e {bad} ] || {{ echo full >&2; exit 3; }}; [ ! -e {hang} ] || {{ echo $$ >{pid}; exec sleep 7003; }}"
    hook = f'echo "$MESH_POOL $MESH_NAME $MESH_USED of $MESH_SLOTS: $MESH_LOAD" >{ran}'
    shortage = ["--on-shortage", hook, "--short-after", "1s"]
    node = fleet.start("a", "--health-check", check, "--health-every", "1s", *shortage)

    def wait(is_so: Callable[[], bool]) -> None:
        wait_until(lambda: is_so() or None, PATIENCE_S, lambda: AssertionError(node.log_text()))

    node.call("submit", argv=["sleep", "7004"], cwd="/")
    wait(lambda: is_written(ran))
    assert ran.read_text() == "default a 1 of 1: 1.00\n"

    bad.touch()
    fails = "its health check fails: exit code 3: full"
    wait(lambda: node.call("members")[0]["availability_why"] == fails)
    bad.unlink()
    wait(lambda: node.call("members")[0]["availability"] == "open")

    hang.touch()
    wait(lambda: is_written(pid))
    os.kill(node.pid, signal.SIGKILL)
    wait(lambda: not is_alive(int(pid.read_text())))
    assert "Traceback" not in node.log_text()
