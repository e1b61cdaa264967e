"""A whole node in this process, with every request; `test_real_nodes.py` has several as processes."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable
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
from mesh.errors import CommandRefused, ConfigError
from mesh.node.node import Node
from mesh.runtime import services
from mesh.runtime.agent import Agent, AgentSettings, Disk, _node_config
from mesh.runtime.clock import system_clock
from mesh.runtime.committing import open_store
from mesh.runtime.console import Console
from mesh.runtime.datadir import open_data_dir
from mesh.runtime.endpoint import open_endpoint
from mesh.runtime.hook_settings import HookSettings
from mesh.runtime.snapshot import Snapshot
from mesh.wire.frames import FrameReader, frame

P = ParamSpec("P")
R = TypeVar("R")


@asynccontextmanager
async def solo_agent(
    path: Path, hooks: HookSettings | None = None
) -> AsyncIterator[tuple[Agent, Client]]:
    """Run a node that founds a mesh of its own; leave it by the control socket."""
    settings = AgentSettings(
        data_dir=path,
        name="solo",
        bind=("127.0.0.1", 0),
        profile="local",
        slots=2,
        hooks=hooks or HookSettings(),
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


async def test_a_node_whose_health_check_fails_takes_no_work_and_says_why(tmp_path: Path) -> None:
    check = HookSettings(health_check=f"[ -e {tmp_path}/fit ]", health_every_s=1.0)
    async with solo_agent(tmp_path, check) as (_, client):
        task_id = (await do(client.call, "submit", argv=["true"]))["id"]
        (member,) = await do(client.call, "members")
        assert member["availability"] == "unfit"
        with Client(tmp_path) as other:
            events = iter(await do(other.stream, "events", follow=True))
            while (event := await do(next, events))["kind"] != "update":
                pass
        assert event["detail"] == "takes no work: its health check fails: exit code 1"
        assert (await do(client.call, "task", id=task_id))["state"] == "ready"
        (tmp_path / "fit").touch()
        _, task = await finished(client, task_id)
        assert task["state"] == "done"


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
