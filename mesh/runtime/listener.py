"""Exchanges on TCP, the answering half: many bounded connections, one reply per request.

A stranger can hold a connection, not the node: the first frame must be short and come soon, every
frame must end in time, and half-received bytes are bounded for all connections together. When all
places are taken, those go first that were never answered anything; of the others the one idle for
longest; then one that began a frame and got nowhere with it. So whoever only holds connections open
shuts out others of its kind, and no member. A broken frame costs its own connection only.
"""

from __future__ import annotations

import errno
import math
import os
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import trio

from mesh.core.address import Address, is_loopback, numeric_host
from mesh.core.pace import Pace
from mesh.errors import DecodeError
from mesh.runtime.clock import Clock
from mesh.runtime.deafness import Deafness
from mesh.runtime.door import HELLOS_MAX, SEAL_BYTES_MAX, Door, Passage, PlainDoor
from mesh.runtime.streams import FIRST_FRAME_BYTES_MAX
from mesh.wire.frames import (
    EMPTY_FRAME,
    FrameKind,
    FrameReader,
    exchange_body,
    frame,
    split_exchange,
)
from mesh.wire.packet import FRAME_BYTES_MAX

OnRequest: TypeAlias = Callable[[Address, bytes], bytes]
OnRing: TypeAlias = Callable[[bytes], bytes]

_READ_BYTES: Final = 65_536
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenLimits:
    """Bounds of the answering half."""

    first_frame_s: float = 10.0
    """A connection that has sent no whole frame by then is closed. 1 to 60."""

    frame_s: float = 30.0
    """A frame that was begun, or a reply that is being taken, must end by then. 5 to 120."""

    idle_s: float = 60.0
    """Longer than the asker's own idle time, so that it is the asker who closes. 10 to 600."""

    stalled_s: float = 5.0
    """A frame that was begun and has not ended for so long may cost its connection its place. 1 to 30."""

    connections_max: int = 512
    """At the limit another one is closed (the module says which); when there is none, the newcomer."""

    connections_per_host_max: int = 64
    """The same for one source host. Not for loopback: there every member has the same host."""

    opened_per_host_s: float = 50.0
    opened_per_host_burst: int = 200
    """New connections from one source host; more are closed at once. Not for loopback."""

    hosts_max: int = 4_096
    """Source hosts whose pace is remembered."""

    held_bytes_max: int = 64 * 1024 * 1024
    """Half-received frames of all connections together; beyond it the one that holds most is closed."""

    accept_pause_s: float = 0.5
    """The wait after the system had no descriptor for a new connection. 0.1 to 5."""


@dataclass(slots=True, eq=False)
class _Connection:
    source: Address
    stream: trio.SocketStream
    used_at: float  # when it was opened, or a frame last ended
    is_known: bool = False  # it was answered: whoever it is, it speaks our language
    is_busy: bool = False  # a frame was begun, or a reply is under way
    held_bytes: int = 0
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    passage: Passage | None = None
    is_kept: bool = False  # silent by intent: only its end means anything


class Listener:
    """Accepts connections on a listening socket and answers each request by `on_request`.

    An empty answer closes the connection: that peer has nothing to say here.
    """

    def __init__(
        self,
        sock: socket.socket,
        clock: Clock,
        on_request: OnRequest,
        say: Callable[[str], None],
        limits: ListenLimits | None = None,
        *,
        deafness: Deafness | None = None,
        door: Door | None = None,
        on_ring: OnRing | None = None,
    ) -> None:
        """`on_ring` answers a ring offered on a sealed stream."""
        self.on_hang_up: Callable[[Address], None] | None = None
        """Hears of the end of a connection that is kept."""

        self.counters = {
            "sent_frames": 0,
            "sent_frame_bytes": 0,
            "received_frames": 0,
            "received_frame_bytes": 0,
            "dropped_bad_frame": 0,
            "dropped_slow": 0,
            "dropped_full": 0,
            "dropped_hasty": 0,
            "dropped_strangers": 0,
            "accept_errors": 0,
        }
        self._sock = trio.socket.from_stdlib_socket(sock)
        self._clock = clock
        self._on_request = on_request
        self._say = say
        self._limits = limits or ListenLimits()
        self._deafness = deafness or Deafness()
        self._door = door or PlainDoor()
        self._on_ring = on_ring
        self._kept: dict[Address, _Connection] = {}
        self._paces: dict[str, Pace] = {}
        self._connections: dict[_Connection, None] = {}  # in the order of arrival
        self._per_host: Counter[str] = Counter()
        self._held_bytes = 0

    async def run(self) -> None:
        """Accept and answer, for ever."""
        async with trio.open_nursery() as nursery:
            while True:
                try:
                    sock, name = await self._sock.accept()
                except OSError as error:
                    await self._endure(error)
                    continue
                source = Address(numeric_host(name[0]) or name[0], name[1])
                if self._is_hasty(source.host):
                    self.counters["dropped_hasty"] += 1
                    sock.close()
                elif self._make_room(source.host):
                    connection = _Connection(source, trio.SocketStream(sock), self._clock())
                    self._connections[connection] = None
                    self._per_host[source.host] += 1
                    nursery.start_soon(self._serve, connection)
                else:
                    self.counters["dropped_full"] += 1
                    sock.close()

    def _is_hasty(self, host: str) -> bool:
        """Say whether a host opens connections faster than it may."""
        if is_loopback(host):
            return False
        pace = self._paces.get(host)
        if pace is None:
            limits = self._limits
            while len(self._paces) >= limits.hosts_max:
                del self._paces[next(iter(self._paces))]
            pace = Pace(rate_s=limits.opened_per_host_s, burst=limits.opened_per_host_burst)
            self._paces[host] = pace
        return not pace.allows(self._clock())

    def keep(self, source: Address) -> None:
        """Keep the connection from `source` for as long as its other end does, however long it is silent."""
        for connection in self._connections:
            if connection.source == source:
                self._kept[source] = connection
                connection.is_kept = True

    def hang_up(self, source: Address) -> None:
        """Close a connection that was kept, without reporting it."""
        connection = self._kept.pop(source, None)
        if connection is not None:
            connection.scope.cancel()

    def try_line(self, source: Address) -> None:
        """Send an empty frame on a connection that is kept; if its other end is gone, that ends it."""
        connection = self._kept.get(source)
        if connection is None or connection.is_busy:
            return
        with suppress(OSError):  # its end is noticed by whoever reads from it
            os.write(connection.stream.socket.fileno(), EMPTY_FRAME)

    async def _endure(self, error: OSError) -> None:
        self.counters["accept_errors"] += 1
        if error.errno not in _EXHAUSTED:
            return  # that one peer hung up first
        if self.counters["accept_errors"] == 1:
            self._say(
                f"no new connection can be taken ({error.strerror}): fewer open files are expected, or a higher limit "
                "(ulimit -n); trying on"
            )
        self._close_one(list(self._connections))
        await trio.sleep(self._limits.accept_pause_s)

    def _make_room(self, host: str) -> bool:
        limits = self._limits
        if len(self._connections) - len(self._kept) >= limits.connections_max:
            return self._close_one(list(self._connections))
        if self._per_host[host] >= limits.connections_per_host_max and not is_loopback(host):
            return self._close_one([c for c in self._connections if c.source.host == host])
        return True

    def _close_one(self, among: list[_Connection]) -> bool:
        """Close the connection that can best be spared; False: none can."""
        among = [c for c in among if not c.is_kept]
        stalled_since = self._clock() - self._limits.stalled_s
        unknown = [c for c in among if not c.is_known]
        idle = [c for c in among if not c.is_busy]
        stalled = [c for c in among if c.used_at <= stalled_since]
        spare = unknown or idle or stalled
        if spare:
            self._close(min(spare, key=lambda connection: connection.used_at))
        return bool(spare)

    def _close(self, connection: _Connection) -> None:
        self.counters["dropped_full"] += 1
        connection.scope.cancel()
        self._forget(connection)

    def _forget(self, connection: _Connection) -> None:
        if connection in self._connections:
            del self._connections[connection]
            host = connection.source.host
            self._per_host[host] -= 1
            if not self._per_host[host]:
                del self._per_host[host]
            self._held_bytes -= connection.held_bytes

    async def _serve(self, connection: _Connection) -> None:
        try:
            with connection.scope:
                await self._answer_all(connection)
        except DecodeError:
            self.counters["dropped_bad_frame"] += 1
        except trio.TooSlowError:
            self.counters["dropped_slow"] += 1
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # it hung up
        finally:
            connection.stream.socket.close()
            self._forget(connection)
            if self._kept.pop(connection.source, None) is not None and self.on_hang_up is not None:
                self.on_hang_up(connection.source)

    async def _answer_all(self, connection: _Connection) -> None:
        limits = self._limits
        with trio.fail_after(limits.first_frame_s):
            first = await self._admit(connection)
        if first is None or not await self._answer(connection, first, is_first=True):
            return
        reader = FrameReader(FRAME_BYTES_MAX)
        deadline = trio.current_time() + limits.idle_s
        while True:
            with trio.CancelScope(deadline=math.inf if connection.is_kept else deadline) as waiting:
                data = await connection.stream.receive_some(_READ_BYTES)
            if waiting.cancelled_caught:
                if reader.is_empty:
                    return
                raise trio.TooSlowError
            if not data:
                return
            was_empty = reader.is_empty
            bodies = reader.feed(data)
            self._hold(connection, len(data) - sum(len(body) + 4 for body in bodies))
            connection.is_busy = not reader.is_empty
            if bodies:
                connection.used_at = self._clock()
            for body in bodies:
                if not await self._answer(connection, body):
                    return
            if reader.is_empty:
                deadline = trio.current_time() + limits.idle_s
            elif bodies or was_empty:
                deadline = trio.current_time() + limits.frame_s

    async def _admit(self, connection: _Connection) -> bytes | None:
        """Let a stranger in, which gives the connection its passage; return its first request, None if it gave up.

        A hello may be recorded and played back. So whoever sent it stays a stranger, held to the same time
        and length, until a frame of its own opens.
        """
        door = self._door
        most = FIRST_FRAME_BYTES_MAX if door.first_bytes_max is None else door.first_bytes_max
        for _ in range(HELLOS_MAX):
            first = await _read_first(connection.stream, most)
            if first is None:
                return None
            answer, connection.passage = door.admit(first)
            if answer:
                await connection.stream.send_all(frame(answer))
            if connection.passage is not None:
                if door.is_plain:
                    return first
                return await _read_first(connection.stream, FIRST_FRAME_BYTES_MAX + SEAL_BYTES_MAX)
        self.counters["dropped_strangers"] += 1
        return None

    def _hold(self, connection: _Connection, more_bytes: int) -> None:
        if connection not in self._connections:  # closed for another's sake, and about to notice
            return
        connection.held_bytes += more_bytes
        self._held_bytes += more_bytes
        while more_bytes > 0 and self._held_bytes > self._limits.held_bytes_max:
            # Whoever was never answered first: a stranger's bytes must not cost a member's.
            most = max(self._connections, key=lambda c: (not c.is_known, c.held_bytes))
            self._close(most)
            if most is connection:
                raise trio.TooSlowError

    async def _answer(
        self, connection: _Connection, body: bytes, *, is_first: bool = False
    ) -> bool:
        """Answer one request; False: the connection is to be closed."""
        counters = self.counters
        counters["received_frames"] += 1
        counters["received_frame_bytes"] += len(body) + 4
        passage = connection.passage
        if passage is None or not passage.is_current():
            return False  # the key that it came with was removed
        wire_id, kind, packet = split_exchange(passage.open(body))
        connection.is_known = connection.is_known or not self._door.is_plain  # it proved the key
        if kind is FrameKind.RING and self._on_ring is not None:
            ring = exchange_body(wire_id, FrameKind.RING, self._on_ring(packet))
            await self._send(connection, passage.seal(ring))
            return True
        if kind is not FrameKind.REQUEST:
            raise DecodeError("a request is expected on a connection accepted here, found a reply")
        if is_first and not packet:
            return True  # a greeting: a long request follows
        if self._deafness.is_on:
            return True
        reply = self._on_request(connection.source, packet)
        if not reply:
            return False
        connection.is_known = True
        await self._send(connection, passage.seal(exchange_body(wire_id, FrameKind.REPLY, reply)))
        return True

    async def _send(self, connection: _Connection, body: bytes) -> None:
        data = frame(body)
        was_busy, connection.is_busy = connection.is_busy, True
        with trio.fail_after(self._limits.frame_s):
            await connection.stream.send_all(data)
        connection.is_busy = was_busy
        connection.used_at = self._clock()
        self.counters["sent_frames"] += 1
        self.counters["sent_frame_bytes"] += len(data)


async def _read_first(stream: trio.SocketStream, bytes_max: int) -> bytes | None:
    """Read exactly the first frame, and not a byte of the next, whose limit is another; None at the end."""
    reader = FrameReader(bytes_max)
    got = b""
    while True:
        need = 4 - len(got) if len(got) < 4 else 4 + int.from_bytes(got[:4], "big") - len(got)
        piece = await stream.receive_some(need)
        if not piece:
            if not reader.is_empty:
                raise DecodeError(
                    "a whole frame is expected, found the end of the stream within it"
                )
            return None
        got += piece
        frames = reader.feed(piece)
        if frames:
            return frames[0]
