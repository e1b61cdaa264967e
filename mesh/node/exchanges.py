"""Exchanges under way: who asked, whom, and how many there may be.

Membership asks rarely, and must always be able to: to look for a silent member over TCP, to make up
what gossip missed. So work gets most of the room, all together and at each peer, but never all of it.
"""

from __future__ import annotations

from typing import Final

from mesh.core.address import Address
from mesh.core.requests import Ask
from mesh.node.delivery import Parcel

EXCHANGES_MAX: Final = 4_096
"""Exchanges under way at once. One more fails at once, as if nobody had answered."""

WORK_EXCHANGES_MAX: Final = 3_840
"""Of these, what work may take; membership has the rest to itself."""

WORK_EXCHANGES_PEER_MAX: Final = 192
"""What work may take at one peer: below what the runtime lets wait there."""


class Exchanges:
    """The exchanges that this node started and that have no outcome yet.

    Invariant: `_at` counts work's exchanges by peer, and no peer without any.
    """

    def __init__(
        self, *, count_max: int = EXCHANGES_MAX, work_max: int = WORK_EXCHANGES_MAX
    ) -> None:
        self._count_max = count_max
        self._work_max = work_max
        self._open: dict[int, Ask] = {}
        self._at: dict[Address, int] = {}
        self._work = 0
        self._last = 0
        self.refused = 0
        """Exchanges that were not started, for want of room."""

    def __len__(self) -> int:
        return len(self._open)

    def open(self, ask: Ask) -> int | None:
        """Note an exchange and return its number, or None: there is no room for it, which is counted."""
        is_work = is_of_work(ask)
        has_room = len(self._open) < self._count_max
        if is_work and has_room:
            has_room = self._work < self._work_max
            has_room = has_room and self._at.get(ask.to, 0) < WORK_EXCHANGES_PEER_MAX
        if not has_room:
            self.refused += 1
            return None
        self._last = (self._last + 1) & 0xFFFF_FFFF
        self._open[self._last] = ask
        if is_work:
            self._work += 1
            self._at[ask.to] = self._at.get(ask.to, 0) + 1
        return self._last

    def close(self, exchange_id: int) -> Ask | None:
        """Return who asked, once; None: there is no such exchange, or it had its outcome."""
        ask = self._open.pop(exchange_id, None)
        if ask is not None and is_of_work(ask):
            self._work -= 1
            self._at[ask.to] -= 1
            if not self._at[ask.to]:
                del self._at[ask.to]
        return ask

    def check_invariants(self) -> None:
        """Raise AssertionError if the counts are off. O(exchanges)."""
        assert len(self._open) <= self._count_max
        assert self._work == sum(map(is_of_work, self._open.values())) == sum(self._at.values())
        assert all(count > 0 for count in self._at.values())


def is_of_work(ask: Ask) -> bool:
    """Say whether an exchange is work's; else it is membership's."""
    return isinstance(ask.message, Parcel)
