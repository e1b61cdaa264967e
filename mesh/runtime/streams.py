"""Exchanges on TCP, the asking half: one connection per peer, many questions on it at once.

A connection is opened by the first question and closed after half a minute without one. Every
question is answered to the node exactly once: by the reply, or by a TransportError for whatever
went wrong. A peer that breaks the framing loses its connection, nothing else.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import trio

from mesh.core.address import Address
from mesh.core.effects import StartExchange
from mesh.core.timers import Timers
from mesh.errors import DecodeError, ForeignStreamError, SealError, TransportError
from mesh.runtime.clock import Clock
from mesh.runtime.deafness import Deafness
from mesh.runtime.door import Door, Passage, PlainDoor
from mesh.runtime.reach import Reach
from mesh.wire.frames import FrameKind, FrameReader, exchange_body, frame, split_exchange
from mesh.wire.packet import FRAME_BYTES_MAX

FIRST_FRAME_BYTES_MAX: Final = 65_536
_GREETING: Final = exchange_body(0, FrameKind.REQUEST, b"")
GREETING: Final = frame(_GREETING)
"""Goes before a first request that is longer than a first frame may be. It is not answered."""

_READ_BYTES: Final = 65_536
_ENDED: Final[tuple[str, int | None]] = ("closed before it answered", errno.ECONNRESET)

OnReply: TypeAlias = Callable[[int, "bytes | TransportError"], None]
MakeOffer: TypeAlias = Callable[[], bytes]
OnOffered: TypeAlias = Callable[[bytes], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskLimits:
    """Bounds of the asking half."""

    idle_s: float = 30.0
    """A connection without a question for this long is closed. 5 to 300."""

    connections_max: int = 512
    """At the limit the one idle for longest is closed."""

    pending_max: int = 256
    """Unanswered questions to one peer; more are refused at once."""

    queued_bytes_max: int = 32 * 1024 * 1024
    """Bytes waiting to be sent to one peer; more are refused at once."""


@dataclass(slots=True, eq=False)
class _Connection:
    """One connection to a peer, from before it is open until it is closed."""

    peer: Address
    used_at: float
    pending: dict[int, int] = field(default_factory=dict)  # wire id -> exchange id
    queue: deque[bytes] = field(default_factory=deque)
    queued_bytes: int = 0
    last_wire_id: int = 0
    heard_at: float = -1.0
    passage: Passage | None = None  # None until the other end has let this one in
    has_work: trio.Event = field(default_factory=trio.Event)
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)


@dataclass(frozen=True, slots=True)
class _Pending:
    connection: _Connection
    wire_id: int
    asked_at: float
    timeout_s: float


class Asker:
    """Carries out `StartExchange`. All its tasks live in the nursery that it is given."""

    def __init__(
        self,
        nursery: trio.Nursery,
        clock: Clock,
        on_reply: OnReply,
        limits: AskLimits | None = None,
        *,
        deafness: Deafness | None = None,
        reach: Reach | None = None,
        door: Door | None = None,
        rings: tuple[MakeOffer, OnOffered] | None = None,
    ) -> None:
        """`rings` makes an offer of this node's key ring, and takes what is answered to it."""
        self.counters = {
            "sent_frames": 0,
            "sent_frame_bytes": 0,
            "received_frames": 0,
            "received_frame_bytes": 0,
            "dropped_bad_reply": 0,
        }
        self._nursery = nursery
        self._clock = clock
        self._on_reply = on_reply
        self._limits = limits or AskLimits()
        self._deafness = deafness or Deafness()
        self._reach = reach or Reach()
        self._door = door or PlainDoor()
        self._rings = rings
        self._by_peer: dict[Address, _Connection] = {}
        self._by_id: dict[int, _Pending] = {}
        self._timers: Timers[int | _Connection] = Timers()
        self._sleep = trio.CancelScope()

    async def run(self) -> None:
        """Keep the deadlines of questions and of idle connections, for ever."""
        while True:
            deadline = self._timers.next_deadline()
            with trio.CancelScope() as self._sleep:
                if deadline is not None:
                    self._sleep.deadline = trio.current_time() + deadline - self._clock()
                await trio.sleep_forever()
            for key in self._timers.take_due(self._clock()):
                if isinstance(key, _Connection):
                    self._close_idle(key)
                else:
                    self._time_out(key)

    def ask(self, effect: StartExchange) -> None:
        """Send a question; its answer comes by `on_reply`, perhaps before this returns."""
        if not self._reach.admits(effect.to.host):
            self._refuse(effect, "it is not on loopback, and without a key nothing is sent there")
            return
        connection = self._connection(effect.to)
        limits = self._limits
        if connection is None:
            self._refuse(effect, f"all {limits.connections_max} connections are busy")
            return
        if len(connection.pending) >= limits.pending_max:
            self._refuse(effect, f"{limits.pending_max} questions are unanswered already")
            return
        if connection.queued_bytes + len(effect.data) > limits.queued_bytes_max:
            self._refuse(effect, f"{connection.queued_bytes} bytes wait to be sent already")
            return
        now = self._clock()
        is_first = connection.last_wire_id == 0
        connection.last_wire_id = wire_id = (connection.last_wire_id & 0x7FFFFFFF) + 1
        connection.used_at = now
        connection.pending[wire_id] = effect.exchange_id
        self._timers.cancel(connection)
        self._by_id[effect.exchange_id] = _Pending(connection, wire_id, now, effect.timeout_s)
        body = exchange_body(wire_id, FrameKind.REQUEST, effect.data)
        if is_first and len(body) > FIRST_FRAME_BYTES_MAX:
            connection.queue.append(_GREETING)
            connection.queued_bytes += len(_GREETING)
        connection.queue.append(body)
        connection.queued_bytes += len(body)
        connection.has_work.set()
        self._arm(effect.exchange_id, now + effect.timeout_s)

    def begin_anew(self) -> None:
        """Open new connections for what is asked from now on: this host's address has changed, they hang there."""
        for connection in list(self._by_peer.values()):
            self._close_idle(connection)

    def _refuse(self, effect: StartExchange, reason: str) -> None:
        self._on_reply(effect.exchange_id, TransportError(f"was not asked: {reason}"))

    def _connection(self, peer: Address) -> _Connection | None:
        """Return the connection to a peer, a new one if there is none that was opened with the ring of now."""
        known = self._by_peer.get(peer)
        if known is not None and known.passage is not None and known.passage.is_ring_changed:
            self._close_idle(known)  # the next handshake shows whether the other end knows
            known = None
        return known or self._open(peer)

    def _open(self, peer: Address) -> _Connection | None:
        if len(self._by_peer) >= self._limits.connections_max:
            idle = [known for known in self._by_peer.values() if not known.pending]
            if not idle:
                return None
            self._close_idle(min(idle, key=lambda known: known.used_at))
        connection = _Connection(peer, self._clock())
        self._by_peer[peer] = connection
        self._nursery.start_soon(self._run_connection, connection)
        return connection

    def _close_idle(self, connection: _Connection) -> None:
        self._retire(connection)
        if not connection.pending:
            connection.scope.cancel()

    def _retire(self, connection: _Connection) -> None:
        """Take no more questions; the ones under way may still be answered."""
        if self._by_peer.get(connection.peer) is connection:
            del self._by_peer[connection.peer]

    def _time_out(self, exchange_id: int) -> None:
        pending = self._by_id.get(exchange_id)
        if pending is None:
            return
        connection = pending.connection
        if connection.heard_at < pending.asked_at:
            self._retire(connection)  # nothing at all came back: the next question tries afresh
        self._finish(
            exchange_id,
            TransportError(f"did not answer within {pending.timeout_s:g} s", errno.ETIMEDOUT),
        )

    def _finish(self, exchange_id: int, reply: bytes | TransportError) -> None:
        pending = self._by_id.pop(exchange_id)
        self._timers.cancel(exchange_id)
        connection = pending.connection
        del connection.pending[pending.wire_id]
        if not connection.pending:
            if self._by_peer.get(connection.peer) is connection:
                self._arm(connection, self._clock() + self._limits.idle_s)
            else:
                connection.scope.cancel()
        self._on_reply(exchange_id, reply)

    def _arm(self, key: int | _Connection, deadline: float) -> None:
        self._timers.set(key, deadline)
        earliest = self._timers.next_deadline()
        if earliest is not None:
            until = trio.current_time() + earliest - self._clock()
            self._sleep.deadline = min(self._sleep.deadline, until)

    async def _run_connection(self, connection: _Connection) -> None:
        reason, number = _ENDED
        kind: type[TransportError] = TransportError
        try:
            with connection.scope:
                stream = await connect(connection.peer)
                try:
                    passage = connection.passage = await self._door.enter(stream)
                    if not self._door.is_plain:
                        connection.heard_at = self._clock()
                    if passage.is_ring_other and self._rings is not None:
                        self._offer(connection, self._rings[0]())
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(self._write, connection, stream, passage)
                        await self._read(connection, stream, passage)
                        nursery.cancel_scope.cancel()
                finally:
                    stream.socket.close()
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as group:
            reason, number = _reason_of(group)
        except* SealError as group:
            reason, number = str(group.exceptions[0]), None
        except* DecodeError as group:
            self.counters["dropped_bad_reply"] += 1
            reason, number = f"broke the protocol: {group.exceptions[0]}", None
            kind = ForeignStreamError
        self._retire(connection)
        self._timers.cancel(connection)
        for exchange_id in list(connection.pending.values()):
            self._finish(exchange_id, kind(reason, number))

    def _offer(self, connection: _Connection, offer: bytes) -> None:
        """Let a ring go first, but after a greeting, which counts as such only as a first frame."""
        queue = connection.queue
        queue.insert(1 if queue and queue[0] is _GREETING else 0, offer)
        connection.queued_bytes += len(offer)

    async def _write(
        self, connection: _Connection, stream: trio.SocketStream, passage: Passage
    ) -> None:
        while True:
            while connection.queue:
                body = connection.queue.popleft()
                data = frame(passage.seal(body))
                await stream.send_all(data)
                connection.queued_bytes -= len(body)
                self.counters["sent_frames"] += 1
                self.counters["sent_frame_bytes"] += len(data)
            connection.has_work = trio.Event()
            await connection.has_work.wait()

    async def _read(
        self, connection: _Connection, stream: trio.SocketStream, passage: Passage
    ) -> None:
        reader = FrameReader(FRAME_BYTES_MAX)
        while data := await stream.receive_some(_READ_BYTES):
            if not self._deafness.is_on:
                connection.heard_at = self._clock()
            self.counters["received_frame_bytes"] += len(data)
            for body in reader.feed(data):
                wire_id, kind, packet = split_exchange(passage.open(body))
                self.counters["received_frames"] += 1
                if kind is FrameKind.RING and self._rings is not None:
                    if passage.is_current():  # with a removed key nobody brings it back
                        self._rings[1](packet)
                    continue
                if kind is not FrameKind.REPLY:
                    raise DecodeError(
                        "a reply is expected on a connection opened here, found a request"
                    )
                exchange_id = connection.pending.get(wire_id)
                # None: it timed out, and was answered then.
                if exchange_id is not None and not self._deafness.is_on:
                    self._finish(exchange_id, packet)


async def connect(peer: Address) -> trio.SocketStream:
    """Return a stream to a peer. Raises OSError."""
    family = trio.socket.AF_INET6 if ":" in peer.host else trio.socket.AF_INET
    sock = trio.socket.socket(family, trio.socket.SOCK_STREAM)
    try:
        await sock.connect((peer.host, peer.port))
        return trio.SocketStream(sock)
    except BaseException:
        sock.close()
        raise


def _reason_of(group: BaseExceptionGroup[BaseException]) -> tuple[str, int | None]:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, OSError) and isinstance(error.__cause__, OSError):
        error = error.__cause__  # trio's own error for a broken stream
    if isinstance(error, ConnectionRefusedError):
        return "refused the connection (is a node running there?)", error.errno
    if isinstance(error, OSError):
        return f"cannot be reached ({error.strerror or error})", error.errno
    return _ENDED
