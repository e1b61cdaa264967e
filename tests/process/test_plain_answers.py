"""What commands answer when something is not as their user thought: one plain line, and what to do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess

Mesh: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]
Start: TypeAlias = Callable[..., subprocess.Popen[bytes]]

TIMEOUT_S = 20.0
OUTPUT_BYTES = 1_500_000


@pytest.fixture(scope="module")
def pair(shared_fleet: Fleet) -> tuple[NodeProcess, NodeProcess]:
    """Two nodes; every command runs on the first."""
    first = shared_fleet.start("first", slots=2)
    second = shared_fleet.start("second", slots=0)
    shared_fleet.wait_whole()
    return first, second


def at(node: NodeProcess) -> tuple[str, str]:
    return "--data", str(node.data)


def submit(node: NodeProcess, task_id: str, script: str) -> None:
    node.call("submit", id=task_id, argv=["sh", "-c", script])


def finished(node: NodeProcess, task_id: str) -> dict[str, Any]:
    def task() -> dict[str, Any] | None:
        found: dict[str, Any] = node.call("task", id=task_id)
        return found if found["result"] else None

    return wait_until(task, TIMEOUT_S, lambda: AssertionError(f"{task_id} did not end"))


def test_output_of_a_task_is_printed_on_its_own_streams(
    mesh: Mesh, pair: tuple[NodeProcess, NodeProcess]
) -> None:
    submit(pair[0], "speaks", "echo out; echo err >&2; exit 3")
    finished(pair[0], "speaks")
    for node, given in ((pair[0], "spea"), (pair[1], "speaks")):  # the second one votes on nothing
        found = mesh("task", given, "--output", *at(node))
        assert (found.returncode, found.stdout, found.stderr) == (0, "out\n", "err\n")


def test_output_that_is_not_whole_says_so(
    mesh: Mesh, pair: tuple[NodeProcess, NodeProcess]
) -> None:
    submit(pair[0], "much", f"head -c {OUTPUT_BYTES} /dev/zero | tr '\\0' x")
    finished(pair[0], "much")
    kept = mesh("task", "much", "--output", *at(pair[0]))
    assert 0 < len(kept.stdout) < OUTPUT_BYTES
    missing = OUTPUT_BYTES - len(kept.stdout)
    assert f"{missing} bytes are missing before it: older output was dropped" in kept.stderr
    elsewhere = mesh("task", "much", "--output", *at(pair[1]))
    assert 4096 <= len(elsewhere.stdout) < OUTPUT_BYTES
    assert set(elsewhere.stdout) == {"x"}
    assert "bytes are missing before it: older output was dropped" in elsewhere.stderr


def test_task_that_has_ended_is_not_cancelled_any_more(
    mesh: Mesh, pair: tuple[NodeProcess, NodeProcess]
) -> None:
    pair[0].call("submit", id="over", argv=["true"])
    finished(pair[0], "over")
    assert mesh("cancel", "over", *at(pair[0])).stdout == "over had already ended: done\n"
    again = mesh("submit", "--id", "over", *at(pair[0]), "--", "true")
    assert (again.returncode, again.stdout) == (0, "over\n")
    assert again.stderr == "mesh: task over is already known, nothing started\n"
    other = mesh("submit", "--id", "over", *at(pair[0]), "--", "false")
    assert (other.returncode, other.stdout) == (0, "over\n")
    assert "known, as another command or with other options, nothing started" in other.stderr


def test_task_that_nobody_can_take_says_what_it_waits_for(
    start: Start, pair: tuple[NodeProcess, NodeProcess]
) -> None:
    arguments = ("--id", "picky", "--label", "gpu=yes", *at(pair[0]), "--", "true")
    waiting = start("submit", "--wait", *arguments)
    assert waiting.stderr is not None
    said = waiting.stderr.readline().decode()
    assert said.startswith("mesh: task picky is waiting for a member that can run it: ")
    assert said.endswith("no member that takes tasks has label gpu=yes\n")
    pair[0].call("cancel", id="picky")
    assert waiting.wait(TIMEOUT_S) == 125


def test_shell_line_in_one_word_is_explained(
    mesh: Mesh, pair: tuple[NodeProcess, NodeProcess]
) -> None:
    found = mesh("submit", "--wait", *at(pair[0]), "--", "echo hi | wc")
    assert found.returncode == 127
    assert "a shell line? mesh submit -- sh -c 'echo hi | wc'" in found.stderr


def test_leave_says_what_it_stops_and_that_nobody_is_left_to_run_it(
    mesh: Mesh, fleet: Fleet
) -> None:
    node = fleet.start("solo", slots=1)
    for task_id in ("t1", "t2"):
        submit(node, task_id, "sleep 60")
    wait_until(
        lambda: node.call("task", id="t1")["state"] == "leased" or None,
        TIMEOUT_S,
        lambda: AssertionError("it does not run"),
    )
    left = mesh("leave", *at(node))
    assert (left.returncode, left.stdout) == (0, "")
    assert "stopping 1 task that runs here: t1; others run them" in left.stderr
    assert f"no other member is left to run 2 unfinished tasks: kept in {node.data}" in left.stderr
    assert node.wait_ended() == 0


def test_stopped_node_is_named_within_seconds(mesh: Mesh, fleet: Fleet) -> None:
    node = fleet.start("still", slots=1)
    os.kill(node.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        found = mesh("members", *at(node))
        assert time.monotonic() - began < TIMEOUT_S
        assert found.returncode == 3
        said = f"process {node.pid} holds {node.data} but does not answer (stopped?)"
        assert said in found.stderr
        assert mesh("submit", "--id", "lost", *at(node), "--", "true").returncode == 3
    finally:
        os.kill(node.pid, signal.SIGCONT)
    assert mesh("task", "lost", *at(node)).returncode == 1


def test_seed_that_refuses_is_named_once_and_the_node_shows_that_it_seeks(
    mesh: Mesh, fleet: Fleet
) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        seed = f"127.0.0.1:{sock.getsockname()[1]}"
    node = fleet.launch("lost", seed)
    said = f"trying again: {seed} refused the connection (is a node running there?)\n"
    wait_until(
        lambda: said in node.log_text() or None, TIMEOUT_S, lambda: AssertionError(node.log_text())
    )
    assert node.log_text().count(seed) == 1
    assert "seeking" in mesh("members", *at(node)).stdout
    refused = mesh("submit", *at(node), "--", "true")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "belongs to no mesh yet" in refused.stderr


def test_dead_member_is_shown_with_the_cause(mesh: Mesh, fleet: Fleet) -> None:
    watcher, victim = fleet.start("watcher"), fleet.start("victim")
    fleet.wait_whole()
    victim.kill()

    def shown() -> str | None:
        found = mesh("members", *at(watcher)).stdout
        return found if "dead (" in found else None

    wait_until(shown, TIMEOUT_S, lambda: AssertionError("nobody is shown as dead"))
    assert "watcher saw victim dead (" in mesh("events", *at(watcher)).stdout


def test_second_node_of_a_host_is_told_the_whole_line(mesh: Mesh, tmp_path: Path) -> None:
    data = str(tmp_path / "d")
    with socket.socket(type=socket.SOCK_DGRAM) as holder:
        with suppress(OSError):  # a node of somebody else has it: just as well
            holder.bind(("127.0.0.1", 7946))
        found = mesh("join", "--data", data)
    line = f"mesh join --data {data} --bind 127.0.0.1:0 127.0.0.1:7946"
    assert found.returncode == 1
    assert line in found.stderr
