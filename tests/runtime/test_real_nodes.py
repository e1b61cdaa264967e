"""Whole nodes as processes of their own: how they start, meet, are told to end, are killed and come back."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mesh.client import Client
from mesh.errors import MeshError
from mesh.runtime.committing import LOOK_S
from mesh.wire.frames import frame

CODE = """
import sys
from pathlib import Path
from mesh.errors import MeshError
from mesh.runtime.agent import AgentSettings, run_agent
path, name, bind, drain_s, *seeds = sys.argv[1:]
try:
    sys.exit(run_agent(AgentSettings(data_dir=Path(path), name=name, bind=("127.0.0.1", int(bind)),
                                     profile="local", seeds=tuple(seeds), slots=2, drain_s=float(drain_s))))
except MeshError as error:
    print(type(error).__name__, error, file=sys.stderr)
    sys.exit(9)
"""


class Nodes:
    """Nodes as processes; every one is ended with the test, by its pid."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(
        self, name: str, *seeds: str, port: int = 0, drain_s: float = 0.0
    ) -> subprocess.Popen[bytes]:
        with (self.home / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    CODE,
                    str(self.home / name),
                    name,
                    str(port),
                    str(drain_s),
                    *seeds,
                ],
                stderr=log,
                stdout=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def log(self, name: str) -> str:
        return (self.home / f"{name}.log").read_text()

    def call(self, name: str, request: str, **args: Any) -> Any:  # noqa: ANN401 - JSON goes and comes
        with Client(self.home / name) as client:
            return client.call(request, **args)

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                if condition():
                    return
            except MeshError:
                pass
            time.sleep(0.01)
        logs = "\n".join(path.read_text() for path in self.home.glob("*.log"))
        pytest.fail(f"waited in vain: {what}\n{logs}")

    def wait_member(self, name: str) -> dict[str, Any]:
        self.wait(lambda: self.call(name, "status")["phase"] == "member", f"{name} is a member")
        status: dict[str, Any] = self.call(name, "status")
        return status

    def alive(self, name: str) -> set[str]:
        return {row["name"] for row in self.call(name, "members") if row["state"] == "alive"}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    made = Nodes(tmp_path)
    yield made
    for process in made.processes:
        process.kill()
        process.wait()


def test_two_nodes_meet_and_one_leaves_without_a_trace(nodes: Nodes) -> None:
    nodes.start("a")
    seed = nodes.wait_member("a")["address"]
    b = nodes.start("b", seed)
    nodes.wait_member("b")
    both = {"a", "b"}
    nodes.wait(lambda: nodes.alive("a") == nodes.alive("b") == both, "both see both")
    b.terminate()
    assert b.wait(10) == 0
    nodes.wait(lambda: nodes.alive("a") == {"a"}, "a knows that b left")
    assert sorted(path.name for path in (nodes.home / "b").iterdir()) == [
        "identity",
        "lock",
        "members",
        "store",
    ]
    assert "stopped: SIGTERM received" in nodes.log("b")
    assert "b left" in nodes.log("a")


def test_garbage_on_every_port_changes_nothing(nodes: Nodes) -> None:
    a = nodes.start("a")
    status = nodes.wait_member("a")
    host, port = "127.0.0.1", int(status["address"].rpartition(":")[2])
    garbage = [b"", b"\x00", b"M", b"M\x02" + b"\xff" * 40, b"M\x09" + b"\x01" * 16, os.urandom(1_400),
               b"x" * 9_000, b"GET / HTTP/1.1\r\n\r\n"]  # fmt: skip
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for data in garbage:
            sender.sendto(data, (host, port))
    for data in (*garbage, b"\xff\xff\xff\xff", frame(b"\x00\x00\x00\x01\x00" + b"garbage")):
        with socket.create_connection((host, port), timeout=10) as stream:
            stream.sendall(data)
    dropped = ("dropped_garbage", "dropped_version")
    nodes.wait(
        lambda: (
            sum(nodes.call("a", "status")["counters"].get(key, 0) for key in dropped)
            >= len(garbage)
        ),
        "every datagram is counted",
    )
    after = nodes.call("a", "status")
    assert after["counters"]["dropped_bad_frame"] >= 2
    assert (after["phase"], after["incarnation"]) == ("member", status["incarnation"])
    assert a.poll() is None


def test_a_second_node_in_one_directory_or_on_one_port_says_so(nodes: Nodes) -> None:
    a = nodes.start("a")
    port = int(nodes.wait_member("a")["address"].rpartition(":")[2])
    (nodes.home / "copy").symlink_to(nodes.home / "a")
    assert nodes.start("copy").wait(10) == 9
    assert f"in use by process {a.pid}" in nodes.log("copy")
    assert nodes.start("b", port=port).wait(10) == 9
    assert f"port {port} on 127.0.0.1 is in use" in nodes.log("b")
    assert nodes.alive("a") == {"a"}


def test_a_socket_that_cannot_be_made_is_said_in_one_line(nodes: Nodes) -> None:
    (nodes.home / "a" / "control.sock").mkdir(parents=True)
    assert nodes.start("a").wait(10) == 9
    assert "DataDirectoryError a directory that can hold a socket is expected" in nodes.log("a")
    assert "Traceback" not in nodes.log("a")


def test_leaving_stops_the_work_and_a_second_signal_does_not_wait(nodes: Nodes) -> None:
    a = nodes.start("a")
    nodes.wait_member("a")
    script = "trap '' TERM; echo $$; while :; do sleep 0.05; done"
    nodes.call("a", "submit", argv=["sh", "-c", script], id="deaf")
    nodes.wait(lambda: bool(nodes.call("a", "status")["used"]), "the work runs")
    with Client(nodes.home / "a") as client:
        pid = int(next(client.stream("wait", id="deaf"))["data"])
    a.terminate()
    nodes.wait(lambda: "SIGTERM: leaving" in nodes.log("a"), "it is leaving")
    a.terminate()
    assert a.wait(10) == 1
    nodes.wait(lambda: not Path(f"/proc/{pid}").exists(), "its work is gone")
    assert not (nodes.home / "a" / "control.sock").exists()


def test_running_task_may_end_within_the_time_that_the_node_was_given(nodes: Nodes) -> None:
    a = nodes.start("a", drain_s=60)
    nodes.wait_member("a")
    begun, gate, done = (nodes.home / name for name in ("begun", "gate", "done"))
    script = f"touch {begun}; while [ ! -e {gate} ]; do sleep 0.02; done; echo over >{done}"
    nodes.call("a", "submit", argv=["sh", "-c", script], id="slow")
    nodes.wait(begun.exists, "the work runs")
    a.terminate()
    nodes.wait(
        lambda: "leaving; waiting up to 1m00s for 1 task that runs here" in nodes.log("a"),
        "it is leaving",
    )
    nodes.wait(lambda: bool(nodes.call("a", "status")["used"]), "the work goes on")
    gate.touch()
    assert a.wait(20) == 0
    assert done.read_text() == "over\n"


def test_tasks_outlive_the_only_node_that_keeps_them(nodes: Nodes) -> None:
    a = nodes.start("a")
    nodes.wait_member("a")
    nodes.wait(
        lambda: nodes.call("a", "submit", argv=["true"], id="kept")["id"] == "kept", "it is taken"
    )
    nodes.wait(lambda: nodes.call("a", "task", id="kept")["state"] == "done", "it is done")
    a.kill()
    a.wait()
    nodes.start("a")
    nodes.wait(lambda: nodes.call("a", "task", id="kept")["state"] == "done", "it is still known")
    store = nodes.call("a", "status")["store"]
    assert store["path"] == str(nodes.home / "a" / "store")
    assert store["commits"] > 0
    assert store["size_bytes"] > 0


def test_a_node_that_was_killed_comes_back_as_itself(nodes: Nodes) -> None:
    a = nodes.start("a")
    first = nodes.wait_member("a")
    a.kill()
    a.wait()
    nodes.start("a")
    second = nodes.wait_member("a")
    assert second["node_id"] == first["node_id"]
    assert second["mesh_id"] == first["mesh_id"]
    assert second["boot"] > first["boot"]


def test_node_whose_directory_another_took_ends_and_leaves_that_one_alone(nodes: Nodes) -> None:
    first = nodes.start("a")
    nodes.wait_member("a")
    first.send_signal(signal.SIGSTOP)  # it is to see nothing between
    shutil.rmtree(nodes.home / "a")
    nodes.start("a")
    nodes.wait_member("a")
    before = (nodes.home / "a" / "identity").read_bytes()
    first.send_signal(signal.SIGCONT)
    assert first.wait(LOOK_S + 20) == 1
    assert "look at who did so" in nodes.log("a")
    assert "the store has room again" not in nodes.log("a")
    assert (nodes.home / "a" / "identity").read_bytes() == before
    assert nodes.call("a", "submit", argv=["true"], id="one")["id"] == "one"
