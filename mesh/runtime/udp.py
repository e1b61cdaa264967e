"""One UDP socket: wait once, then drain in batches; send without waiting.

Waiting for every packet is ten times slower than waiting once and reading until the socket is empty.
Sending never waits: a datagram that the kernel will not take now is dropped and counted, as the
network itself might have done. No error of a single packet ends the socket.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Final

import trio

from mesh.core.address import Address, numeric_host
from mesh.runtime.deafness import Deafness
from mesh.runtime.reach import Reach

BATCH_MAX: Final = 64
RECEIVE_BUFFER_BYTES: Final = 4 * 1024 * 1024
_READ_BYTES: Final = 2_048  # more than a valid datagram has: a longer one is seen as oversized


class UdpSocket:
    """Owns a bound, non-blocking datagram socket and counts what passes."""

    def __init__(
        self,
        sock: socket.socket,
        deafness: Deafness | None = None,
        *,
        reach: Reach | None = None,
    ) -> None:
        self._reach = reach or Reach()
        self._sock = sock
        self._deafness = deafness or Deafness()
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
            is_full = error.errno in {errno.EAGAIN, errno.ENOBUFS}
            self.counters["dropped_send_full" if is_full else "dropped_send_error"] += 1
            return
        self.counters["sent_datagrams"] += 1
        self.counters["sent_datagram_bytes"] += len(data)

    async def receive(self, take: Callable[[Address, bytes], None]) -> None:
        """Hand every datagram that arrives to `take`, for ever."""
        while True:
            await trio.lowlevel.wait_readable(self._sock)
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
