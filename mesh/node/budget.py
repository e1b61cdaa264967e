"""What leaves in datagrams beside membership: its share of each datagram, and of each second.

    a datagram   |-- up to three quarters: messages to one peer --|-- up to a quarter: rumours --|
    a second     membership probes and answers as it must, whatever waits here;
                 the rest has tokens of its own, whatever rumours there are

Messages to one peer that come up together share a datagram. While there are tokens nothing waits.
Past that, messages wait here in order, and past a bound the oldest is given up and counted: what goes
by datagram may be lost anyway. So neither side can starve the other: a flood becomes one bounded stream
beside the probes, and a storm of rumours leaves three quarters of each datagram alone.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final

from mesh.core.address import Address
from mesh.core.pace import Pace
from mesh.errors import LocalProtocolError
from mesh.wire.packet import HEADER, PACKET_BYTES_MAX

ROOM_BYTES: Final = PACKET_BYTES_MAX - HEADER.size
RUMOUR_BYTES_MAX: Final = ROOM_BYTES // 4
"""What rumours may take up in a datagram of other messages."""

SHARE_BYTES_MAX: Final = ROOM_BYTES - RUMOUR_BYTES_MAX
"""What other messages may take up in a datagram; the longest one there may be."""

MESSAGES_MAX: Final = 128  # of them in one datagram
DATAGRAMS_S: Final = 1_000.0
DATAGRAMS_BURST: Final = 250
"""A peer decodes some 20,000 small datagrams a second: twenty that flood it leave it deaf to nobody."""

WAITING_MAX: Final = 4_096
BREATH_S: Final = 0.01
"""Who waits for tokens waits for a few at once: a wake for each would cost more than the datagrams."""


class Budget:
    """Messages for peers on their way out, within their share. One token is one datagram.

    Invariant: `_waiting` holds every message by its number, the oldest first, and `_of` the same
    numbers by peer; neither holds more than `waiting_max`.
    """

    def __init__(
        self,
        *,
        rate_s: float = DATAGRAMS_S,
        burst: int = DATAGRAMS_BURST,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self._pace = Pace(rate_s=rate_s, burst=burst)
        self._waiting_max = waiting_max
        self._waiting: OrderedDict[int, tuple[Address, bytes]] = OrderedDict()
        self._of: dict[Address, deque[int]] = {}
        self._last = 0
        self._deadline: float | None = None
        self.dropped = 0
        """Messages given up because too many waited."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def held(self) -> int:
        """How often messages had to wait for tokens."""
        return self._pace.held

    def add(self, to: Address, message: bytes) -> None:
        """Queue an encoded message; the oldest of all is given up if too many wait.

        Raises:
            LocalProtocolError: it is longer than SHARE_BYTES_MAX; nothing changed.
        """
        if len(message) > SHARE_BYTES_MAX:
            raise LocalProtocolError(
                f"a message of at most {SHARE_BYTES_MAX} bytes travels by datagram, found "
                f"{len(message)}: ask on a stream instead"
            )
        if len(self._waiting) >= self._waiting_max:
            oldest = next(iter(self._waiting))
            self._take_first(self._waiting[oldest][0])
            self.dropped += 1
        self._last += 1
        self._waiting[self._last] = (to, message)
        self._of.setdefault(to, deque()).append(self._last)

    def take(self, now: float) -> list[tuple[Address, list[bytes]]]:
        """Return what may leave now: for each datagram its peer and messages, the oldest peer's first.

        A peer's messages stay in order. Each datagram takes a token; without one the rest waits until
        `next_deadline`.
        """
        taken: list[tuple[Address, list[bytes]]] = []
        while self._waiting and self._pace.allows(now):
            to = self._waiting[next(iter(self._waiting))][0]
            taken.append((to, self._fill(to)))
        self._deadline = self._pace.next_at(now + BREATH_S) if self._waiting else None
        return taken

    def next_deadline(self) -> float | None:
        """Return when tokens will be back for what waits; None: nothing waits."""
        return self._deadline

    def check_invariants(self) -> None:
        """Raise AssertionError if the two orders differ. O(messages that wait)."""
        assert len(self._waiting) <= self._waiting_max
        numbers = sorted(number for queue in self._of.values() for number in queue)
        assert numbers == list(self._waiting), "each message waits once, in order"
        assert all(self._of.values()), "no peer is kept for whom nothing waits"

    def _fill(self, to: Address) -> list[bytes]:
        """Take the messages of one datagram to a peer, who has some."""
        parts: list[bytes] = []
        room = SHARE_BYTES_MAX
        while len(parts) < MESSAGES_MAX:
            queue = self._of.get(to)
            if queue is None or len(self._waiting[queue[0]][1]) > room:
                break
            parts.append(self._take_first(to))
            room -= len(parts[-1])
        return parts

    def _take_first(self, to: Address) -> bytes:
        """Take a peer's oldest message."""
        queue = self._of[to]
        _, message = self._waiting.pop(queue.popleft())
        if not queue:
            del self._of[to]
        return message
