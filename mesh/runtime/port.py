"""Datagrams between the socket and the driver, where there is a key: sealed on the way out, opened on the way in."""

from __future__ import annotations

from collections.abc import Callable

from mesh.core.address import Address
from mesh.runtime.clock import Clock
from mesh.seal.datagrams import DatagramSeal


class SealedPort:
    """Joins a seal to a socket's `send` and to whoever takes plain packets."""

    def __init__(
        self,
        seal: DatagramSeal,
        clock: Clock,
        *,
        send: Callable[[Address, bytes], None],
        take: Callable[[Address, bytes], None],
    ) -> None:
        self._seal = seal
        self._clock = clock
        self._send = send
        self._take = take

    def send(self, to: Address, packet: bytes) -> None:
        """Seal a plain packet and send it."""
        self._send(to, self._seal.seal(self._clock(), to, packet))

    def take(self, source: Address, data: bytes) -> None:
        """Open a datagram, hand on what counts, and send what is to be answered at once."""
        familiar = self._seal.open_familiar(source, data)
        if familiar is not None:
            self._take(source, familiar)
            return
        packets, replies = self._seal.open_unfamiliar(self._clock(), source, data)
        for to, reply in replies:
            self._send(to, reply)
        for packet in packets:
            self._take(source, packet)
