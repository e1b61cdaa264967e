"""The control socket: where every `mesh` command on this host reaches the node.

A Unix socket in the data directory, for its owner only. Each client is a task of its own with one
request at a time, so a client that stops reading holds up itself and nobody else; what may pile up
for it is bounded. Requests are maps from programs that may be of any version or none: whatever is
wrong with one, its sender hears it as {"error", "code"}, and the node goes on.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgpack
import trio

from mesh.client import REQUEST_BYTES_MAX, SOCKET_NAME, socket_address
from mesh.errors import (
    CommandRefused,
    ConfigError,
    DataDirectoryError,
    DecodeError,
    LocalProtocolError,
)
from mesh.wire.frames import FrameReader, frame

CLIENTS_MAX: Final = 64
STREAMS_MAX: Final = 56
"""Clients that are answered by a stream; the other places are for short requests, such as `leave`."""

STUCK_S: Final = 10.0
"""A client that has not read for this long may lose its place when all are taken."""

SHORT_REQUEST_BYTES_MAX: Final = 1024 * 1024
"""For every request but those of `_LONG_REQUESTS`."""

_LONG_REQUESTS: Final = frozenset({"submit", "submit_many"})
"""They may carry long arguments."""

_FRESH_NAME: Final = "control.new"  # no longer than the socket's own: the system takes no long path
_READ_BYTES: Final = 65_536
_BACKLOG: Final = 64

Request: TypeAlias = dict[str, Any]
Service: TypeAlias = Callable[[Request, "ControlClient"], Awaitable[None]]


class HungUp(Exception):  # noqa: N818 - what happened, and no fault of anybody's
    """The client has gone: there is nobody to answer any more. Ends its task and nothing else."""


@dataclass(slots=True, eq=False)
class ControlClient:
    """One connected client. Services answer it with any number of `item` and then one `ok`.

    Only this class touches its socket, so that a service's own OSError is never taken for a client
    that hung up.
    """

    stream: trio.SocketStream
    take_place: Callable[[], None] = lambda: None
    """Raises CommandRefused if no more streams are served just now."""

    is_streaming: bool = False
    is_asking: bool = False
    since: float = 0.0  # when it last became idle, or the write under way began
    is_writing: bool = False
    is_gone: bool = False
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    _streaming: trio.CancelScope | None = None

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """While a request is answered by a stream, the client's going away ends it (HungUp).

        Raises:
            CommandRefused: as many streams are open as there may be.
        """
        self.take_place()
        self.is_streaming = True
        try:
            if not self.is_gone:
                with trio.CancelScope() as self._streaming:
                    yield
                self._streaming = None
        finally:
            self.is_streaming = False
        if self.is_gone:
            raise HungUp

    def leave(self) -> None:
        """Note that the client sends no more, and end what is being streamed to it."""
        self.is_gone = True
        if self._streaming is not None:
            self._streaming.cancel()

    async def item(self, data: Any) -> None:  # noqa: ANN401 - JSON goes out
        """Send one item of a stream; waits while the client does not read."""
        await self._send({"item": data})

    async def ok(self, data: Any) -> None:  # noqa: ANN401 - JSON goes out
        """Send the answer that ends a request."""
        await self._send({"ok": data})

    async def error(self, text: str, code: str) -> None:
        """Send the error that ends a request: `code` is refused, usage or internal."""
        await self._send({"error": text, "code": code})

    async def _send(self, answer: dict[str, Any]) -> None:
        data = frame(msgpack.packb(answer))
        self.since, self.is_writing = trio.current_time(), True
        try:
            await self.stream.send_all(data)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise HungUp from error
        self.is_writing = False

    async def receive(self) -> bytes:
        """Return what the client sent next; b"" at the end."""
        try:
            return bytes(await self.stream.receive_some(_READ_BYTES))
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise HungUp from error


class ControlServer:
    """Serves `services` on the control socket of `data_dir`. The caller holds the directory's lock."""

    def __init__(
        self, data_dir: Path, services: Mapping[str, Service], say: Callable[[str], None]
    ) -> None:
        self.counters = {"control_requests": 0, "control_refused": 0, "control_errors": 0}
        self._data_dir = data_dir
        self._services = services
        self._say = say
        self._clients: dict[ControlClient, None] = {}
        self._socket, self._bound = _listen(data_dir)

    async def run(self) -> None:
        """Accept and serve, for ever."""
        listener = trio.socket.from_stdlib_socket(self._socket)
        async with trio.open_nursery() as nursery:
            while True:
                try:
                    sock, _ = await listener.accept()
                except OSError:  # no descriptor left, or the client hung up first
                    self.counters["control_errors"] += 1
                    await trio.sleep(0.2)
                    continue
                if len(self._clients) >= CLIENTS_MAX and not self._make_room():
                    self.counters["control_refused"] += 1
                    _turn_away(sock)
                    continue
                client = ControlClient(
                    trio.SocketStream(sock), self._take_place, since=trio.current_time()
                )
                self._clients[client] = None
                nursery.start_soon(self._serve, client)

    def close(self) -> None:
        """Close the socket and remove it from the directory, unless that is another node's by now."""
        path = self._data_dir / SOCKET_NAME
        with suppress(OSError):
            if os.path.samestat(path.lstat(), self._bound):
                path.unlink()
        self._socket.close()

    def _make_room(self) -> bool:
        """Let the client go that has been idle, or stuck, for longest."""
        idle = [client for client in self._clients if not client.is_asking]
        return self._end_oldest(idle or self._stuck())

    def _stuck(self) -> list[ControlClient]:
        now = trio.current_time()
        return [c for c in self._clients if c.is_writing and now - c.since > STUCK_S]

    def _end_oldest(self, among: list[ControlClient]) -> bool:
        if not among:
            return False
        oldest = min(among, key=lambda client: client.since)
        oldest.scope.cancel()
        self._clients.pop(oldest, None)
        return True

    async def _serve(self, client: ControlClient) -> None:
        send, receive = trio.open_memory_channel[bytes](1)
        try:
            with client.scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_read, client, send)
                    async for body in receive:
                        client.is_asking = True
                        await self._answer(client, body)
                        client.is_asking, client.since = False, trio.current_time()
        except* (DecodeError, HungUp) as group:
            self.counters["control_errors"] += group.subgroup(DecodeError) is not None
        except* Exception as group:  # noqa: BLE001 - a client kills no node
            self._meet_bug(group)
        finally:
            client.stream.socket.close()
            self._clients.pop(client, None)

    async def _answer(self, client: ControlClient, body: bytes) -> None:
        self.counters["control_requests"] += 1
        try:
            request = _decode(body)
            await self._service(request["do"])(request, client)
        except ConfigError as error:
            await client.error(str(error), "usage")
        except CommandRefused as error:
            await client.error(str(error), "refused")
        except LocalProtocolError as error:  # a bug that was said and counted where it was met
            await client.error(str(error), "internal")
        except HungUp:
            raise
        except Exception as error:  # noqa: BLE001 - a client's request kills no node
            self._meet_bug(error)
            await client.error(f"{type(error).__name__}: {error}", "internal")

    def _meet_bug(self, error: BaseException) -> None:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        self.counters["control_errors"] += 1
        self._say(f"a request met a bug: {type(error).__name__}: {error}; please report it")

    def _take_place(self) -> None:
        """Refuse one more stream when only the places for short requests are left."""
        if sum(client.is_streaming for client in self._clients) < STREAMS_MAX:
            return
        if not self._end_oldest([client for client in self._stuck() if client.is_streaming]):
            raise CommandRefused(
                f"{STREAMS_MAX} clients follow this node already (events, views, waits); end one, or try again"
            )

    def _service(self, name: str) -> Service:
        service = self._services.get(name)
        if service is None:
            raise ConfigError(
                f"a request is one of {', '.join(self._services)}, found {name[:40]!r}; "
                "are the node and this command of one release?"
            )
        return service


async def _read(client: ControlClient, send: trio.MemorySendChannel[bytes]) -> None:
    """Cut requests out of what comes; at the end of the stream, end what was being streamed."""
    reader = FrameReader(REQUEST_BYTES_MAX)
    async with send:
        while data := await client.receive():
            try:
                bodies = reader.feed(data)
            except DecodeError as error:
                await client.error(str(error), "usage")
                raise
            for body in bodies:
                await send.send(body)
    client.leave()


def _decode(body: bytes) -> Request:
    try:
        request = msgpack.unpackb(body)
    except Exception as error:
        raise ConfigError(
            f"a request in msgpack is expected, found other bytes: {error}"
        ) from error
    if type(request) is not dict or type(request.get("do")) is not str:
        raise ConfigError("a map with a text under 'do' is expected, found something else")
    if len(body) > SHORT_REQUEST_BYTES_MAX and request["do"] not in _LONG_REQUESTS:
        raise ConfigError(
            f"a request of at most {SHORT_REQUEST_BYTES_MAX} bytes is expected, found {len(body)}"
        )
    return request


def _listen(data_dir: Path) -> tuple[socket.socket, os.stat_result]:
    """Bind the control socket for its owner only, in place of one that a dead node left; and what it is by name.

    It gets its name once it listens: whoever sees it can connect.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        sock.setblocking(False)
        fresh = data_dir / _FRESH_NAME
        fresh.unlink(missing_ok=True)
        with socket_address(data_dir) as address:
            sock.bind(address.removesuffix(SOCKET_NAME) + _FRESH_NAME)
        sock.listen(_BACKLOG)
        bound = fresh.lstat()
        fresh.replace(data_dir / SOCKET_NAME)
    except OSError as error:
        sock.close()
        raise DataDirectoryError(
            f"a directory that can hold a socket is expected, found {data_dir}: {error.strerror}; "
            "name a directory on a local disk, or a shorter path, with --data"
        ) from error
    finally:
        os.umask(mask)
    return sock, bound


def _turn_away(sock: trio.socket.SocketType) -> None:
    """Say why, as far as the socket takes it at once, and close."""
    text = f"{CLIENTS_MAX} clients are connected already; close one, or try again"
    with suppress(OSError):
        os.write(sock.fileno(), frame(msgpack.packb({"error": text, "code": "refused"})))
    sock.close()
