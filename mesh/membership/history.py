"""What this node remembers of each member: suspicions, refutations, deaths, returns.

The events that people follow roll on, and a member that comes and goes would push out the death that
somebody asks about later. So each member has a short past of its own here. When all pasts together
are too long, the longest gives up its oldest entry first: a noisy member pays before a quiet one.

Who joined, and what a member declares, is in the table and not here: most members have no past.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId

ENTRIES_MAX: Final = 32
"""Of one member."""

ALL_ENTRIES_MAX: Final = 8_192
"""Of all together. An entry is an event, whose sentences name a few members: about a KiB, so 8 MiB at most."""

KEPT: Final = frozenset(
    {
        EventKind.SUSPECT,
        EventKind.REFUTE,
        EventKind.DEAD,
        EventKind.RETURN,
        EventKind.LEAVE,
        EventKind.FORGET,
        EventKind.CONFLICT,
    }
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of a member's past. `is_confirmation`: one more member shares a suspicion that is open."""

    at: float
    event: Event
    rtt_s: float | None  # the member's smoothed round trip at that moment
    is_confirmation: bool = False


class History:
    """The past of every member that has one, each oldest first."""

    __slots__ = ("_by_length", "_count", "_entries_max", "_pasts")

    def __init__(self, entries_max: int = ALL_ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self._count = 0
        self._pasts: dict[NodeId, deque[Entry]] = {}
        # Who has a past of this length; of these, who was written about longest ago first.
        self._by_length: list[dict[NodeId, None]] = [{} for _ in range(ENTRIES_MAX + 1)]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self._pasts)

    def of(self, node_id: NodeId) -> tuple[Entry, ...]:
        """Return a member's past, oldest first."""
        return tuple(self._pasts.get(node_id, ()))

    def note(
        self, now: float, event: Event, rtt_s: float | None = None, *, is_confirmation: bool = False
    ) -> None:
        """Keep an event, if it is about a member and of a kind that is kept. O(1)."""
        if event.member_id is None or event.kind not in KEPT:
            return
        past = self._pasts.setdefault(event.member_id, deque())
        self._take_out(event.member_id, past)
        if len(past) >= ENTRIES_MAX:
            past.popleft()
        past.append(Entry(now, event, rtt_s, is_confirmation))
        self._put_in(event.member_id, past)
        if self._count > self._entries_max:
            self._shorten()

    def check_invariants(self) -> None:
        """Raise AssertionError if the index does not match the pasts."""
        assert self._count == sum(map(len, self._pasts.values())) <= self._entries_max
        indexed = {who: length for length, row in enumerate(self._by_length) for who in row}
        assert indexed == {who: len(past) for who, past in self._pasts.items()}

    def _shorten(self) -> None:
        longest = next(row for row in reversed(self._by_length) if row)
        node_id = next(iter(longest))
        past = self._pasts[node_id]
        self._take_out(node_id, past)
        past.popleft()
        if past:
            self._put_in(node_id, past)
        else:
            del self._pasts[node_id]

    def _take_out(self, node_id: NodeId, past: deque[Entry]) -> None:
        self._by_length[len(past)].pop(node_id, None)
        self._count -= len(past)

    def _put_in(self, node_id: NodeId, past: deque[Entry]) -> None:
        self._by_length[len(past)][node_id] = None
        self._count += len(past)
