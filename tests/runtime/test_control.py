"""The control socket itself: who may connect, what is refused, and clients that do not behave."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgpack
import pytest
import trio
import trio.testing

from mesh.client import Client
from mesh.errors import (
    CommandRefused,
    ConfigError,
    DataDirectoryError,
    MeshError,
    MeshUnreachable,
)
from mesh.runtime import control
from mesh.runtime.control import ControlClient, ControlServer, Request
from mesh.wire.frames import FrameReader, frame

P = ParamSpec("P")
R = TypeVar("R")


class Desk:
    """A control server with a few services made for the test."""

    def __init__(self, data_dir: Path) -> None:
        self.said: list[str] = []
        self.sent = 0
        self.ended = trio.Event()
        services = {
            "echo": self._on_echo,
            "count": self._on_count,
            "flood": self._on_flood,
            "forever": self._on_forever,
            "refuse": self._on_refuse,
            "misuse": self._on_misuse,
            "bug": self._on_bug,
            "broken file": self._on_broken_file,
        }
        self.server = ControlServer(data_dir, services, self.said.append)

    async def _on_echo(self, request: Request, client: ControlClient) -> None:
        await client.ok(request)

    async def _on_count(self, request: Request, client: ControlClient) -> None:
        for number in range(request["to"]):
            await client.item(number)
        await client.ok("counted")

    async def _on_flood(self, request: Request, client: ControlClient) -> None:
        with client.streaming():
            while True:
                await client.item(b"x" * 10_000)
                self.sent += 1

    async def _on_forever(self, request: Request, client: ControlClient) -> None:
        try:
            with client.streaming():
                await trio.sleep_forever()
        finally:
            self.ended.set()

    async def _on_refuse(self, request: Request, client: ControlClient) -> None:
        raise CommandRefused("not today")

    async def _on_misuse(self, request: Request, client: ControlClient) -> None:
        raise ConfigError("wrong shape")

    async def _on_bug(self, request: Request, client: ControlClient) -> None:
        raise ZeroDivisionError("by nothing")

    async def _on_broken_file(self, request: Request, client: ControlClient) -> None:
        raise OSError(errno.EIO, "input/output error")


@asynccontextmanager
async def desk(data_dir: Path) -> AsyncIterator[Desk]:
    made = Desk(data_dir)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.server.run)
            yield made
            nursery.cancel_scope.cancel()
    finally:
        made.server.close()


async def connect(data_dir: Path) -> trio.SocketStream:
    return await trio.open_unix_socket(str(data_dir / "control.sock"))


async def answers(stream: trio.SocketStream, count: int) -> list[Any]:
    reader = FrameReader(1 << 20)
    found: list[Any] = []
    with trio.fail_after(10):
        while len(found) < count:
            data = await stream.receive_some()
            assert data, "closed early"
            found += [msgpack.unpackb(body) for body in reader.feed(data)]
    return found


async def in_thread(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    with trio.fail_after(10):
        return await trio.to_thread.run_sync(partial(call, *args, **kwargs), abandon_on_cancel=True)


def test_the_socket_is_seen_only_once_it_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    listen = socket.socket.listen

    def watched(sock: socket.socket, backlog: int) -> None:
        seen.append((tmp_path / "control.sock").exists())
        listen(sock, backlog)

    monkeypatch.setattr(socket.socket, "listen", watched)
    for _ in range(2):  # in place of one that is left, too
        server = ControlServer(tmp_path, {}, print)
        server._socket.close()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["control.sock"]
    assert seen == [False, True], "the second time it is the one that was left"


async def test_only_the_owner_may_connect_and_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    async with desk(tmp_path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


async def test_the_socket_of_a_dead_node_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "control.sock"))
    async with desk(tmp_path):
        with Client(tmp_path) as client:
            assert (await in_thread(client.call, "echo", a=1))["a"] == 1


async def test_socket_of_another_node_in_a_replaced_directory_is_left_at_the_end(
    tmp_path: Path,
) -> None:
    path = tmp_path / "data"
    path.mkdir()
    first = Desk(path).server
    path.rename(tmp_path / "away")
    path.mkdir()
    async with desk(path):
        first.close()
        with Client(path) as client:
            assert (await in_thread(client.call, "echo", a=1))["a"] == 1


async def test_a_path_too_long_for_a_socket_is_bound_and_found(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    async with desk(deep):
        with Client(deep) as client:
            assert (await in_thread(client.call, "echo", a=1))["a"] == 1
    assert not (deep / "control.sock").exists()


async def test_a_directory_that_cannot_hold_a_socket_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError, match="can hold a socket"):
        Desk(tmp_path / "absent")


async def test_calls_and_streams_share_one_connection(tmp_path: Path) -> None:
    async with desk(tmp_path):
        with Client(tmp_path) as client:
            assert (await in_thread(client.call, "echo", text="ä", data=b"\x00"))["text"] == "ä"
            stream = await in_thread(client.stream, "count", to=1_000)
            assert await in_thread(list, stream) == list(range(1_000))
            assert stream.result == "counted"
            assert await in_thread(client.call, "echo") == {"do": "echo"}


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("refuse", "refused", "not today"),
        ("misuse", "usage", "wrong shape"),
        ("bug", "internal", "by nothing"),
        ("broken file", "internal", "input/output error"),  # not taken for a client that hung up
        ("no such request", "usage", "is one of echo"),
    ],
)
async def test_an_error_names_its_kind_and_the_connection_lives_on(
    tmp_path: Path, name: str, code: str, text: str
) -> None:
    async with desk(tmp_path):
        stream = await connect(tmp_path)
        for _ in range(2):
            await stream.send_all(frame(msgpack.packb({"do": name})))
            (answer,) = await answers(stream, 1)
            assert answer["code"] == code
            assert text in answer["error"]
        await stream.aclose()


@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", b"\x93\x01", msgpack.packb([1]), msgpack.packb({"do": 5}), b"\x81\x01\x02"],
)
async def test_a_request_that_is_no_map_is_answered_as_wrong_usage(
    tmp_path: Path, body: bytes
) -> None:
    async with desk(tmp_path):
        stream = await connect(tmp_path)
        await stream.send_all(frame(body) + frame(msgpack.packb({"do": "echo"})))
        wrong, right = await answers(stream, 2)
        assert wrong["code"] == "usage"
        assert right["ok"] == {"do": "echo"}
        await stream.aclose()


async def test_bytes_that_are_no_frame_close_their_connection_only(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        good, bad = await connect(tmp_path), await connect(tmp_path)
        await bad.send_all(b"GET / HTTP/1.1\r\n\r\n")
        (answer,) = await answers(bad, 1)
        assert answer["code"] == "usage"
        with trio.fail_after(5):
            assert await bad.receive_some() == b""
        await good.send_all(frame(msgpack.packb({"do": "echo"})))
        assert (await answers(good, 1))[0]["ok"]
        assert d.server.counters["control_errors"] == 1
        await good.aclose()
        await bad.aclose()


async def test_a_long_request_is_for_those_that_submit_only(tmp_path: Path) -> None:
    async with desk(tmp_path):
        with Client(tmp_path) as client, pytest.raises(ConfigError, match="at most 1048576"):
            await in_thread(client.call, "echo", data=b"x" * 2_000_000)
        for name in ("submit", "submit_many"):
            with (
                Client(tmp_path) as client,
                pytest.raises(ConfigError, match="a request is one of"),
            ):
                await in_thread(client.call, name, data=b"x" * 2_000_000)
        with Client(tmp_path) as client, pytest.raises(ConfigError, match="at most 4194304"):
            client.call("submit", data=b"x" * 5_000_000)


async def test_a_client_that_stops_reading_holds_up_itself_alone(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        deaf = await connect(tmp_path)
        await deaf.send_all(frame(msgpack.packb({"do": "flood"})))
        await trio.testing.wait_all_tasks_blocked(0.05)
        sent = d.sent
        with Client(tmp_path) as client:
            for _ in range(10):
                assert await in_thread(client.call, "echo")
        assert d.sent == sent  # what waits for it does not grow
        await deaf.aclose()


async def test_a_stream_ends_when_its_client_goes(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        stream = await connect(tmp_path)
        await stream.send_all(frame(msgpack.packb({"do": "forever"})))
        await stream.aclose()
        with trio.fail_after(5):
            await d.ended.wait()


async def test_an_idle_client_makes_room_and_without_one_the_newcomer_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "CLIENTS_MAX", 2)
    async with desk(tmp_path) as d:
        idle = await connect(tmp_path)
        await trio.testing.wait_all_tasks_blocked(0.01)
        busy = [await connect(tmp_path) for _ in range(2)]
        for stream in busy:
            await stream.send_all(frame(msgpack.packb({"do": "forever"})))
        with trio.fail_after(5):
            assert await idle.receive_some() == b""
        await trio.testing.wait_all_tasks_blocked(0.01)
        with Client(tmp_path) as client, pytest.raises(CommandRefused, match="2 clients"):
            await in_thread(client.call, "echo")
        assert d.server.counters["control_refused"] == 1
        for stream in (idle, *busy):
            await stream.aclose()


async def test_a_stuck_client_loses_its_place_when_all_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "CLIENTS_MAX", 1)
    monkeypatch.setattr(control, "STUCK_S", 0.0)
    async with desk(tmp_path):
        deaf = await connect(tmp_path)
        await deaf.send_all(frame(msgpack.packb({"do": "flood"})))
        await trio.testing.wait_all_tasks_blocked(0.05)
        with Client(tmp_path) as client:
            assert await in_thread(client.call, "echo")
        await deaf.aclose()


async def test_streams_leave_places_for_short_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "CLIENTS_MAX", 4)
    monkeypatch.setattr(control, "STREAMS_MAX", 2)
    async with desk(tmp_path):
        following = [await connect(tmp_path) for _ in range(2)]
        for stream in following:
            await stream.send_all(frame(msgpack.packb({"do": "forever"})))
        await trio.testing.wait_all_tasks_blocked(0.01)
        one_more = await connect(tmp_path)
        await one_more.send_all(frame(msgpack.packb({"do": "forever"})))
        (answer,) = await answers(one_more, 1)
        assert answer["code"] == "refused"
        assert "2 clients follow" in answer["error"]
        with Client(tmp_path) as client:
            assert await in_thread(client.call, "echo")
        await following[0].aclose()
        await trio.testing.wait_all_tasks_blocked(0.01)
        await one_more.send_all(frame(msgpack.packb({"do": "count", "to": 1})))
        assert [list(answer) for answer in await answers(one_more, 2)] == [["item"], ["ok"]]
        for stream in (following[1], one_more):
            await stream.aclose()


async def test_a_stuck_stream_gives_its_place_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "STREAMS_MAX", 1)
    monkeypatch.setattr(control, "STUCK_S", 0.0)
    async with desk(tmp_path) as d:
        deaf = await connect(tmp_path)
        await deaf.send_all(frame(msgpack.packb({"do": "flood"})))
        await trio.testing.wait_all_tasks_blocked(0.05)
        other = await connect(tmp_path)
        await other.send_all(frame(msgpack.packb({"do": "forever"})))
        await trio.testing.wait_all_tasks_blocked(0.01)
        await other.aclose()
        with trio.fail_after(5):
            await d.ended.wait()  # it was served
        await deaf.aclose()


@pytest.mark.parametrize(
    ("code", "kind"), [("usage", ConfigError), ("refused", CommandRefused), ("internal", MeshError)]
)
async def test_the_client_tells_wrong_usage_from_a_refusal(
    tmp_path: Path, code: str, kind: type[MeshError]
) -> None:
    name = {"usage": "misuse", "refused": "refuse", "internal": "bug"}[code]
    async with desk(tmp_path):
        with Client(tmp_path) as client, pytest.raises(MeshError) as caught:
            await in_thread(client.call, name)
    assert type(caught.value) is kind


def test_no_node_is_said_in_one_line_that_helps(tmp_path: Path) -> None:
    with Client(tmp_path / "absent") as client, pytest.raises(MeshUnreachable) as caught:
        client.call("status")
    assert "mesh join" in str(caught.value)
    assert "--data" in str(caught.value)


def test_a_dead_socket_means_no_node(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "control.sock"))
    with Client(tmp_path) as client, pytest.raises(MeshUnreachable, match="none runs there"):
        client.call("status")


def test_a_node_that_does_not_answer_is_unreachable_after_the_timeout(tmp_path: Path) -> None:
    with ExitStack() as stack:
        silent = stack.enter_context(socket.socket(socket.AF_UNIX))
        silent.bind(str(tmp_path / "control.sock"))
        silent.listen()
        client = stack.enter_context(Client(tmp_path, timeout_s=0.05))
        with pytest.raises(MeshUnreachable, match=r"within 0\.05 s"):
            client.call("status")
        assert client.fileno() == -1


def test_text_that_is_no_utf8_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    with Client(tmp_path) as client, pytest.raises(ConfigError, match="UTF-8"):
        client.call("submit", argv=["cat", os.fsdecode(b"\xff")])
