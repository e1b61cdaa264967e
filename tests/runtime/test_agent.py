"""Whole nodes: one in this process with every request, and several as real processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgpack
import pytest
import trio

from mesh.client import Client
from mesh.core.events import Event, EventKind
from mesh.core.stored import Kept
from mesh.errors import CommandRefused, ConfigError, MeshError
from mesh.node.node import Node
from mesh.runtime import services
from mesh.runtime.agent import Agent, AgentSettings, Disk, _node_config
from mesh.runtime.clock import system_clock
from mesh.runtime.committing import open_store
from mesh.runtime.console import Console
from mesh.runtime.datadir import open_data_dir
from mesh.runtime.endpoint import open_endpoint
from mesh.runtime.snapshot import Snapshot
from mesh.wire.frames import FrameReader, frame

P = ParamSpec("P")
R = TypeVar("R")


@asynccontextmanager
async def solo_agent(path: Path) -> AsyncIterator[tuple[Agent, Client]]:
    """Run a node that founds a mesh of its own; leave it by the control socket."""
    settings = AgentSettings(
        data_dir=path, name="solo", bind=("127.0.0.1", 0), profile="local", slots=2
    )
    data, endpoint, clock = (
        open_data_dir(path, time.time()),
        open_endpoint(settings.bind, settings.reach()),
        system_clock(print),
    )
    store = open_store(data)
    kept = Kept(store, store.numbers)
    node = Node(_node_config(settings, data, endpoint.address, clock), 1, kept)
    null = os.open(os.devnull, os.O_WRONLY)
    disk = Disk(data, store, None, Snapshot(data.path, print))
    agent = Agent(settings, disk, node, clock, Console(null))
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.run, endpoint)
            while not (path / "control.sock").exists():  # noqa: ASYNC110 - a file announces nothing
                await trio.sleep(0.01)
            with Client(path) as client:
                yield agent, client
                await do(client.call, "leave")
    endpoint.close()
    store.close()
    data.close()
    os.close(null)
    assert not (path / "control.sock").exists()


@asynccontextmanager
async def solo(path: Path) -> AsyncIterator[Client]:
    async with solo_agent(path) as (_, client):
        yield client


async def do(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    with trio.fail_after(10):
        return await trio.to_thread.run_sync(partial(call, *args, **kwargs), abandon_on_cancel=True)


async def finished(client: Client, task_id: str) -> tuple[list[Any], Any]:
    stream = await do(client.stream, "wait", id=task_id)
    return await do(list, stream), stream.result


async def test_status_and_members_say_who_this_is(tmp_path: Path) -> None:
    async with solo(tmp_path) as client:
        status = await do(client.call, "status")
        assert (status["name"], status["phase"], status["slots"]) == ("solo", "member", 2)
        assert (status["pid"], status["profile"]) == (os.getpid(), "local")
        assert status["data"] == str(tmp_path)
        assert set(status["sent"]) == {"datagrams", "datagram_bytes", "frames", "frame_bytes"}
        assert set(status["received"]) == set(status["sent"])
        (member,) = await do(client.call, "members")
        assert (member["name"], member["state"], member["self"]) == ("solo", "alive", True)


async def test_node_without_a_key_stays_on_loopback_though_a_key_file_has_come_since(
    tmp_path: Path,
) -> None:
    (tmp_path / "keys").touch(mode=0o600)
    async with solo_agent(tmp_path) as (agent, _):
        assert not agent._reach.covers("192.0.2.1")


async def test_work_is_submitted_followed_listed_and_cancelled(tmp_path: Path) -> None:
    async with solo(tmp_path) as client:
        submit = partial(client.call, "submit")
        script = "echo $GREETING; echo oops >&2; exit 4"
        task_id = (await do(submit, argv=["sh", "-c", script], env={"GREETING": "hi"}, id="one"))[
            "id"
        ]
        assert task_id == "one"
        items, task = await finished(client, "one")
        assert {"stream": 1, "data": b"hi\n"} in items
        assert {"stream": 2, "data": b"oops\n"} in items
        assert (task["state"], task["result"]["exit_code"]) == ("failed", 4)
        found = await do(client.call, "tasks")
        assert [entry["id"] for entry in found["tasks"]] == ["one"]
        assert "solo votes on" in found["local"]
        assert (await do(client.call, "task", id="one"))["state"] == "failed"
        sleeper = (await do(submit, argv=["sleep", "300"]))["id"]
        await do(client.call, "cancel", id=sleeper)
        assert (await finished(client, sleeper))[1]["state"] == "cancelled"
        with pytest.raises(CommandRefused):
            await do(client.call, "task", id="no such task")


@pytest.mark.parametrize(
    "request_",
    [
        {"do": "submit"},
        {"do": "submit", "argv": "echo"},
        {"do": "submit", "argv": ["x"], "env": [1]},
        {"do": "submit", "argv": ["x"], "wait": 1},
        {"do": "submit", "argv": ["x"], "env": {"A": "1", b"B": "2"}},
        {"do": "task"},
        {"do": "task", "id": 5},
        {"do": "cancel", "id": ""},
        {"do": "wait", "id": None},
        {"do": "leave", "reason": 5},
        {"do": "events", "follow": 1},
        {"do": "events", "last": "all"},
        {"do": "events", "last": -1},
        {"do": "views", "interval_s": 0},
        {"do": "views", "interval_s": float("nan")},
        {"do": "views", "interval_s": True},
    ],
)
async def test_every_wrong_shape_is_wrong_usage(tmp_path: Path, request_: dict[str, Any]) -> None:
    async with solo(tmp_path):
        stream = await trio.open_unix_socket(str(tmp_path / "control.sock"))
        await stream.send_all(frame(msgpack.packb(request_)))
        reader, bodies = FrameReader(1 << 20), list[bytes]()
        with trio.fail_after(5):
            while not bodies:
                bodies = reader.feed(await stream.receive_some())
        assert msgpack.unpackb(bodies[0])["code"] == "usage", bodies[0]
        await stream.aclose()


@pytest.mark.parametrize(
    "parts",
    [
        {"argv": []},
        {"argv": [1]},
        {"env": {"A": 1}},
        {"needs": {"gpu": "1"}},
        {"labels": {"k": "v" * 500}},
        {"id": 5},
        {"id": "x" * 500},
        {"cwd": {}},
        {"pool": [1]},
        {"id": [1], "wait": True},
    ],
)
async def test_task_that_is_described_wrongly_is_refused(
    tmp_path: Path, parts: dict[str, Any]
) -> None:
    async with solo(tmp_path) as client:
        request = {"argv": ["x"], **parts}
        with pytest.raises(ConfigError, match="described wrongly"):
            await do(list, await do(client.stream, "submit", **request))
        assert (await do(client.call, "tasks"))["tasks"] == []


async def test_submission_that_waits_gets_all_output_of_a_command_that_writes_at_once(
    tmp_path: Path,
) -> None:
    async with solo(tmp_path) as client:
        script = "head -c 5000000 /dev/zero"
        stream = await do(client.stream, "submit", argv=["sh", "-c", script], wait=True)
        first, *items = await do(list, stream)
        assert sum(len(item["data"]) for item in items) == 5_000_000
        task = stream.result
        assert (task["id"], task["state"]) == (first["id"], "done")
        assert task["result"]["output_bytes"] == 5_000_000


async def test_events_come_from_the_past_and_as_they_happen(tmp_path: Path) -> None:
    async with solo_agent(tmp_path) as (agent, client):
        past = await do(list, await do(client.stream, "events", follow=False, last=10))
        assert [event["kind"] for event in past] == ["found"]
        with Client(tmp_path) as other:
            stream = await do(other.stream, "events", follow=True, last=1)
            assert (await do(next, stream))["kind"] == "found"
            agent._log.publish(Event(kind=EventKind.WARN, detail="just now"))
            event = await do(next, stream)
            assert (event["kind"], event["detail"], event["observer"]) == (
                "warn",
                "just now",
                "solo",
            )


async def test_a_follower_that_does_not_keep_up_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "FOLLOWER_EVENTS_MAX", 3)
    async with solo_agent(tmp_path) as (agent, client):
        stream = await do(client.stream, "events", follow=True, last=1)
        assert (await do(next, stream))["kind"] == "found"
        for _ in range(5):
            agent._log.publish(Event(kind=EventKind.WARN))
        with pytest.raises(CommandRefused, match="fell too far behind"):
            await do(next, stream)


async def test_views_carry_the_whole_picture_and_events_between(tmp_path: Path) -> None:
    async with solo_agent(tmp_path) as (agent, _):
        with Client(tmp_path) as other:
            stream = await do(other.stream, "views", interval_s=0.2)
            view = (await do(next, stream))["view"]
            assert {"node", "members", "tasks", "task_counts", "running", "at", "rates"} <= set(
                view
            )
            agent._log.publish(Event(kind=EventKind.WARN))
            kinds: set[str] = set()
            rates: dict[str, float] = {}
            while "event" not in kinds or not rates:
                item = await do(next, stream)
                kinds |= set(item)
                rates = rates or item.get("view", {}).get("rates", {})
            assert "sent_datagrams_s" in rates


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
    garbage = [b"", b"\x00", b"M", b"M\x01" + b"\xff" * 40, b"M\x09" + b"\x01" * 16, os.urandom(1_400),
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
    nodes.wait(lambda: "leaving; what runs has 1m00s" in nodes.log("a"), "it is leaving")
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
