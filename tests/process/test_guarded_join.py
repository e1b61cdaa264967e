"""`mesh join` as two processes: what is left of its work, whichever of them is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mesh.client import Client
from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess
from mesh.guardian import link
from mesh.runtime.guarded import go_under_guardian, guarded
from tests.process.conftest import Mesh
from tests.process.guarded import is_alive, is_frozen, until
from tests.process.seat import Seat

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guardian is for Linux")

SOON_S = 1.0
"""How long work may outlive its node."""

NOTICED_S = 1.0
PATIENCE_S = 20.0


class Job:
    """A task that starts a daemon, which leaves group, session and parent; both write down their pids."""

    def __init__(self, home: Path) -> None:
        self._place = home / "pids"
        self._place.mkdir()
        daemon = f"sleep 7001 >&- 2>&- & echo $! >{self._place}/new.daemon; exit"
        script = (
            f"setsid sh -c '{daemon}'; cd {self._place}; echo $$ >new.leader;"
            "for who in leader daemon; do mv new.$who $who.$MESH_ATTEMPT; done; exec sleep 7002"
        )
        self.argv = ["/bin/sh", "-c", script]

    def pids(self, attempt: int = 1) -> tuple[int, int]:
        """Return the pids of its leader and its daemon, once both run."""
        files = [self._place / f"{who}.{attempt}" for who in ("leader", "daemon")]
        wait_until(
            lambda: all(file.exists() for file in files) or None,
            PATIENCE_S,
            lambda: AssertionError("the task does not run"),
        )
        leader, daemon = (int(file.read_text()) for file in files)
        return leader, daemon


def start_job(fleet: Fleet, node: NodeProcess) -> tuple[int, int]:
    """Run a job at a node; return the pids of its leader and its daemon."""
    job = Job(fleet.home)
    node.call("submit", argv=job.argv, cwd="/")
    pids = job.pids()
    assert all(map(is_alive, pids))
    return pids


def wait_dead(pids: tuple[int, ...], within_s: float) -> None:
    wait_until(
        lambda: not any(map(is_alive, pids)) or None,
        within_s,
        lambda: AssertionError(f"still alive: {[pid for pid in pids if is_alive(pid)]}"),
    )


def test_status_names_both_processes(fleet: Fleet) -> None:
    node = fleet.start("a")
    status = node.call("status")
    assert (status["pid"], status["guardian_pid"]) == (node.pid, node.outer_pid)
    assert node.pid != node.outer_pid
    assert Path(f"/proc/{node.outer_pid}/comm").read_text() == "mesh-guardian\n"


def test_work_of_a_killed_node_is_dead_within_a_second_and_runs_elsewhere(fleet: Fleet) -> None:
    keeper = fleet.start("keeper", slots=0)
    fleet.start("b")
    fleet.start("c")
    fleet.wait_whole()
    job = Job(fleet.home)
    task_id = keeper.call("submit", argv=job.argv, cwd="/")["id"]
    pids = job.pids()
    owner = keeper.call("task", id=task_id)["attempts"][0]["node"]
    os.kill(fleet.nodes[owner].pid, signal.SIGKILL)
    wait_dead(pids, SOON_S)
    assert fleet.nodes[owner].wait_ended() == 128 + signal.SIGKILL
    again = job.pids(2)
    assert all(map(is_alive, again))
    assert keeper.call("task", id=task_id)["attempts"][1]["node"] not in {owner, "keeper"}


def test_a_node_whose_guardian_is_killed_ends_its_work_and_itself(fleet: Fleet) -> None:
    node = fleet.start("a")
    pids = (*start_job(fleet, node), node.pid)
    os.kill(node.outer_pid, signal.SIGKILL)
    wait_dead(pids, PATIENCE_S)
    assert (
        f"the guardian (process {node.outer_pid}) has died: the work here ends" in node.log_text()
    )
    assert "Traceback" not in node.log_text()


def kill_both(node: NodeProcess) -> None:
    """Kill a node and its guardian, so that neither can do anything about it."""
    node_pid, guardian = node.pid, node.outer_pid
    os.kill(guardian, signal.SIGSTOP)
    until(lambda: is_frozen(guardian), "the guardian stands still")
    os.kill(node_pid, signal.SIGKILL)
    os.kill(guardian, signal.SIGKILL)
    node.wait_ended()


def test_what_outlived_node_and_guardian_is_cleared_before_the_node_announces_itself(
    fleet: Fleet,
) -> None:
    node = fleet.start("a")
    leader, daemon = start_job(fleet, node)
    kill_both(node)
    wait_dead((leader,), SOON_S)
    assert is_alive(daemon)
    fleet.launch("a").wait_ready()
    assert not is_alive(daemon)
    _, cleared, after = node.log_text().rpartition(
        "the last session left 1 process running: killed"
    )
    assert cleared
    assert ") starts at " in after  # said before its first packet


def test_leaving_ends_both_and_their_exit_code_is_the_nodes(fleet: Fleet) -> None:
    node = fleet.start("a")
    pids = (*start_job(fleet, node), node.pid, node.outer_pid)
    node.call("leave", reason="test")
    assert node.wait_ended() == 0
    assert not any(map(is_alive, pids))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_guardian_makes_the_node_leave(
    fleet: Fleet, number: signal.Signals
) -> None:
    node = fleet.start("a")
    os.kill(node.outer_pid, number)
    assert node.wait_ended() == 0
    assert node.log_text().count(f"{number.name}: leaving") == 1


def test_a_signal_to_all_processes_of_a_group_counts_once(fleet: Fleet) -> None:
    node = fleet.start("a")
    start_stubborn(fleet, node)
    os.kill(node.outer_pid, signal.SIGSTOP)  # so that the two do not reach the node as one
    until(lambda: is_frozen(node.outer_pid), "the guardian stands still")
    os.killpg(node.outer_pid, signal.SIGTERM)
    wait_logged(node, "SIGTERM: leaving")
    os.kill(node.outer_pid, signal.SIGCONT)
    assert node.wait_ended() == 0
    assert node.log_text().count("SIGTERM: leaving") == 1
    assert "a second signal" not in node.log_text()


@pytest.mark.parametrize("to_all", [True, False])
def test_a_second_signal_ends_the_node_at_once(fleet: Fleet, *, to_all: bool) -> None:
    node = fleet.start("a")
    start_stubborn(fleet, node)
    send = os.killpg if to_all else os.kill
    send(node.outer_pid, signal.SIGTERM)
    wait_logged(node, "SIGTERM: leaving")
    send(node.outer_pid, signal.SIGTERM)
    assert node.wait_ended() == 1
    assert "a second signal (SIGTERM) before the leave was done" in node.log_text()


def test_signals_that_come_after_the_second_change_no_exit_code(fleet: Fleet) -> None:
    node = fleet.start("a")
    start_stubborn(fleet, node)
    os.kill(node.pid, signal.SIGTERM)
    wait_logged(node, "SIGTERM: leaving")

    ends_by = time.monotonic() + PATIENCE_S
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < ends_by:
            os.kill(node.pid, signal.SIGTERM)
            time.sleep(0.001)  # a pace that leaves it time to end
    assert node.wait_ended() == 1


def start_stubborn(fleet: Fleet, node: NodeProcess) -> None:
    """Run a task that does not heed SIGTERM, so that a leave takes long."""
    trapped = fleet.home / "trapped"
    script = f"trap '' TERM; touch {trapped}; while :; do sleep 0.1; done"
    node.call("submit", argv=["sh", "-c", script], cwd="/")
    until(trapped.exists, "the task runs")


def wait_logged(node: NodeProcess, text: str) -> None:
    until(lambda: text in node.log_text(), f"{text!r} is logged")


def test_exit_codes_and_last_words_are_the_nodes(fleet: Fleet, mesh: Mesh) -> None:
    wrong = mesh("join", "--profile", "none", "--data", str(fleet.home / "x"))
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("mesh: ")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        busy = mesh("join", "--bind", bind, "--data", str(fleet.home / "y"))
    assert busy.returncode == 1
    assert "is in use" in busy.stderr


def has_lifelines(node: NodeProcess) -> bool | None:
    return node.call("status")["lifelines"]["kept"] == 2 or None


def dead_event(witness: NodeProcess, name: str) -> dict[str, Any] | None:
    with witness.client() as client:
        events = list(client.stream("events", follow=False, last=1000))
    return next((e for e in events if e["kind"] == "dead" and e["member"] == name), None)


def test_a_killed_node_is_noticed_though_its_guardian_stands_still(fleet: Fleet) -> None:
    for name in ("a", "b", "c"):
        fleet.start(name)
    fleet.wait_whole()
    for node in fleet.nodes.values():
        wait_until(
            partial(has_lifelines, node),
            PATIENCE_S,
            lambda: AssertionError("each of three keeps a lifeline of each other"),
        )
    victim = fleet.nodes["c"]
    victim_pid, guardian = victim.pid, victim.outer_pid
    held = [str(fd.readlink()) for fd in Path(f"/proc/{guardian}/fd").iterdir()]
    assert sum(what.startswith("socket:") for what in held) == 1  # the link to its node
    assert not any(what.endswith(("/lock", "/control.sock")) for what in held)
    os.kill(guardian, signal.SIGSTOP)
    until(lambda: is_frozen(guardian), "the guardian stands still")
    began_ns = time.time_ns()
    os.kill(victim_pid, signal.SIGKILL)
    for witness in (fleet.nodes["a"], fleet.nodes["b"]):
        event = wait_until(
            partial(dead_event, witness, "c"),
            PATIENCE_S,
            lambda: AssertionError("nobody notices"),
        )
        assert event["cause"] == "crashed"
        assert event["at_ns"] - began_ns < NOTICED_S * 1e9
    os.kill(guardian, signal.SIGCONT)
    assert victim.wait_ended() == 128 + signal.SIGKILL


def test_ctrl_z_stops_work_node_and_guardian_and_fg_lets_them_go_on() -> None:
    script = 'set -m; "$@"; echo "in the shell"; read go; fg; echo "ended: $?"'
    with tempfile.TemporaryDirectory(prefix="mt-") as name:
        home = Path(name)
        arguments = ("--name", "here", "--bind", "127.0.0.1:0", "--data", str(home / "d"))
        with Seat(home, "join", "--headless", *arguments, shell=script) as seat:
            seat.read_until(b"founded")
            job = Job(home)
            with Client(home / "d") as client:
                client.call("submit", argv=job.argv, cwd="/")
                status = client.call("status")
            everybody = (*job.pids(), status["pid"], status["guardian_pid"])
            seat.press(b"\x1a")
            seat.read_until(b"in the shell")
            until(lambda: all(map(is_frozen, everybody)), "all stand still")
            seat.press(b"\n")
            until(lambda: not any(map(is_frozen, everybody)), "all go on")
            seat.press(b"\x03")
            seat.read_until(b"ended: 0")
            assert seat.wait() == 0
            assert seat.shown.count(b"SIGINT: leaving") == 1
            seat.assert_nothing_runs()


def test_a_node_that_is_to_have_no_guardian_says_what_is_lost(fleet: Fleet) -> None:
    node = fleet.launch("a", "--no-guardian")
    assert node.wait_ready()["guardian_pid"] is None
    assert node.pid == node.outer_pid
    assert node.log_text().count("no guardian: as asked; what commands have started") == 1


def test_a_guardian_that_cannot_be_one_lets_the_node_run_and_tells_it_why(tmp_path: Path) -> None:
    node = (
        "import os, signal; print(os.getpid(), os.environ['MESH_GUARDIAN_MISSING']);"
        "print(len(signal.pthread_sigmask(signal.SIG_BLOCK, ())), 'MESH_GUARDIAN_FD' in os.environ)"
    )
    command = guarded(tmp_path / "record", [sys.executable, "-I", "-c", node])
    at = command.index("-c") + 1
    command[at] = command[at].replace(
        "os._exit(main", "os.readlink = lambda _: 'elsewhere'; os._exit(main"
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert out.splitlines() == [
        f"{process.pid} it needs a /proc in which it finds itself: mount one",
        "0 False",
    ]


def test_a_guardian_that_cannot_be_started_is_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    reason = go_under_guardian(tmp_path / "record")
    assert reason == f"{tmp_path}/python cannot be started: No such file or directory"


def test_a_nested_node_has_a_guardian_of_its_own(fleet: Fleet) -> None:
    outer = fleet.start("outer")
    inner = fleet.home / "inner"
    join = [sys.executable, "-m", "mesh", "join", "--headless", "--data", str(inner)]
    outer.call("submit", argv=[*join, "--bind", "127.0.0.1:0"], cwd=str(Path.cwd()))

    def status() -> dict[str, Any] | None:
        if not (inner / "control.sock").exists():
            return None
        with Client(inner) as client:
            found: dict[str, Any] = client.call("status")
            return found

    found = wait_until(status, PATIENCE_S, lambda: AssertionError("no inner node"))
    assert found["guardian_pid"] not in {None, outer.outer_pid}
    os.kill(outer.pid, signal.SIGKILL)
    wait_dead((found["pid"], found["guardian_pid"]), PATIENCE_S)
    outer.wait_ended()


def test_a_variable_that_names_no_link_is_not_taken_for_a_guardian(fleet: Fleet) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(link.FD_VARIABLE, "987654")
        node = fleet.start("a")
    assert node.call("status")["guardian_pid"] == node.outer_pid
