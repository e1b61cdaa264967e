"""One UDP socket: wait once, then drain in batches; send without waiting.

Waiting for every packet is ten times slower than waiting once and reading until the socket is empty.
Sending never waits: a datagram that the kernel will not take now is dropped and counted, as the
network itself might have done. No error of a single packet ends the socket. What is said of datagrams that
could not be delivered is in the error queue (`mesh.runtime.errqueue`).
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Final

import trio

from mesh.core.address import Address, numeric_host
from mesh.runtime.deafness import Deafness
from mesh.runtime.errqueue import ErrorQueue
from mesh.runtime.reach import Reach

BATCH_MAX: Final = 64
RECEIVE_BUFFER_BYTES: Final = 4 * 1024 * 1024
SEND_TRIES_MAX: Final = 3
"""A report about an earlier datagram makes a send fail in its place, once: so often it is tried."""

_FULL: Final = frozenset({errno.EAGAIN, errno.ENOBUFS})
_READ_BYTES: Final = 2_048  # more than a valid datagram has: a longer one is seen as oversized


class UdpSocket:
    """Owns a bound, non-blocking datagram socket and counts what passes."""

    def __init__(
        self,
        sock: socket.socket,
        deafness: Deafness | None = None,
        *,
        reach: Reach | None = None,
        error_queue: ErrorQueue | None = None,
    ) -> None:
        self._reach = reach or Reach()
        self._sock = sock
        self._deafness = deafness or Deafness()
        self._error_queue = error_queue
        self._note_sent = None if error_queue is None else error_queue.note_sent
        self._is_v6 = sock.family == socket.AF_INET6
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self.counters = {
            "sent_datagrams": 0,
            "sent_datagram_bytes": 0,
            "received_datagrams": 0,
            "received_datagram_bytes": 0,
            "dropped_send_full": 0,
            "dropped_send_error": 0,
            "receive_errors": 0,
        }

    def send(self, to: Address, data: bytes) -> None:
        """Send now, or drop and count: also what would go beyond this node's reach."""
        host = to.host
        if not self._reach.admits(host):
            return
        if self._is_v6 and ":" not in host:
            host = "::ffff:" + host
        try:
            self._sock.sendto(data, (host, to.port))
        except OSError as error:
            if not self._send_again(error, data, (host, to.port)):
                return
        if self._note_sent is not None:
            self._note_sent((to, data))
        self.counters["sent_datagrams"] += 1
        self.counters["sent_datagram_bytes"] += len(data)

    def _send_again(self, error: OSError, data: bytes, to: tuple[str, int]) -> bool:
        """Try once more what failed perhaps in another's place; say whether it is sent, count it if not."""
        tries_left = 0 if self._error_queue is None else SEND_TRIES_MAX - 1
        while error.errno not in _FULL and tries_left:
            tries_left -= 1
            try:
                self._sock.sendto(data, to)
            except OSError as again:
                error = again
            else:
                return True
        is_full = error.errno in _FULL
        self.counters["dropped_send_full" if is_full else "dropped_send_error"] += 1
        return False

    async def receive(
        self,
        take: Callable[[Address, bytes], None],
        take_refusal: Callable[[Address], None] | None = None,
    ) -> None:
        """Hand every datagram that arrives to `take`, and who refuses one to `take_refusal`, for ever."""
        queue = self._error_queue
        while True:
            await trio.lowlevel.wait_readable(self._sock)
            refusing = queue.drain() if queue is not None else []
            if take_refusal is not None and not self._deafness.is_on:
                for address in refusing:
                    take_refusal(address)
            for source, data in self._drain():
                take(source, data)

    def _drain(self) -> list[tuple[Address, bytes]]:
        """Read what is there, at most BATCH_MAX datagrams, so that one flood cannot starve the rest."""
        batch = []
        for _ in range(BATCH_MAX):
            try:
                data, source = self._sock.recvfrom(_READ_BYTES)
            except BlockingIOError:
                break
            except OSError:  # a refusal or another report about an earlier send
                self.counters["receive_errors"] += 1
                continue
            host = numeric_host(source[0])
            if host is None:
                continue
            self.counters["received_datagrams"] += 1
            self.counters["received_datagram_bytes"] += len(data)
            if not self._deafness.is_on:
                batch.append((Address(host, source[1]), data))
        return batch

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()
