"""The final registers of one voter: since when each is held here, and which may be purged now.

    final ──kept until it expires, and for as long as any message lives──► ready ──► under way ──► gone
            └─ too many: the oldest of those that no message can be about ──┘  ▲         │
                                                                               └─later───┘ a voter was away

Every voter knows since when it holds each; only the first voter of a register has it become ready.

Source: our own.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from mesh.core.ballot import Ballot
from mesh.core.timers import Timers
from mesh.registers.record import Record
from mesh.registers.roster import ROSTERS
from mesh.registers.seating import Seating
from mesh.registers.upkeep import Expires, UpkeepTimes
from mesh.registers.voter import Voter
from mesh.wire.register_messages import Standing
from mesh.wire.repair_messages import Item

LOOK_S: Final = 1.0
"""Between two looks whether there are too many."""


def is_over(key: bytes, record: Record) -> bool:
    """Say whether a register holds its last value, and is none that is kept for good."""
    is_final = record.value is not None and record.value.standing is Standing.FINAL
    return is_final and not key.startswith(ROSTERS)


class _Held(NamedTuple):
    since: float
    ballot: Ballot
    seq: int
    until: float


class Finals:
    """What is final at one voter."""

    def __init__(
        self, *, voter: Voter, seating: Seating, times: UpkeepTimes, expires: Expires, now: float
    ) -> None:
        """Begin with what the voter holds: for how long it has been final is not known, so it counts from now."""
        self._voter = voter
        self._seating = seating
        self._times = times
        self._expires = expires
        self._held: dict[bytes, _Held] = {}
        """Each that will be purged once."""

        self._first: dict[bytes, float] = {}
        """Those of which this node is the first voter, with the times at which they are due; about the oldest first."""

        self._due: Timers[bytes] = Timers()
        self._look_at: float | None = None
        self.ready: dict[bytes, None] = {}
        """Those that may be purged now, of which this node is the first voter."""

        found = [
            (self._kept_until(now, key, record), key, record)
            for key, record in voter
            if is_over(key, record)
        ]
        for until, key, record in sorted(found, key=lambda one: one[:2]):
            self._enter(now, key, record, until)

    def __len__(self) -> int:
        return len(self._held)

    def note(self, now: float, key: bytes, record: Record) -> bool:
        """Take what is held from now on; NOTHING: it is gone. Return whether what was known as final is no more."""
        known = self._held.get(key)
        if known is not None and (known.ballot, known.seq) == (record.ballot, record.seq):
            return False  # a promise alone
        if known is not None:
            del self._held[key]
            self._first.pop(key, None)
            self.ready.pop(key, None)
            self._due.cancel(key)
        if is_over(key, record):
            self._enter(now, key, record, self._kept_until(now, key, record))
        return known is not None

    def adopt(self, now: float) -> None:
        """Look at everything anew: it may be other voters' now. O(finals)."""
        self._first.clear()
        self.ready.clear()
        for key in [*self._due]:
            self._due.cancel(key)
        for key, held in self._held.items():
            self._seat(now, key, held.until)

    def item(self, key: bytes) -> Item:
        """Return the number of what is final."""
        held = self._held[key]
        return Item(key, held.ballot, held.seq)

    def has_stood(self, now: float, key: bytes) -> bool:
        """Say whether it has been held for so long that no message of before it is on its way."""
        known = self._held.get(key)
        return known is not None and now >= known.since + self._times.message_life_s

    def put_back(self, now: float, key: bytes) -> None:
        """Have it become ready later, after others."""
        at = now + self._times.message_life_s
        self._first.pop(key)
        self._first[key] = at
        self._due.set(key, at)

    def next_deadline(self) -> float | None:
        """Return when something may become ready."""
        at = self._due.next_deadline()
        return self._look_at if at is None or (self._look_at or at) < at else at

    def handle_timeout(self, now: float) -> None:
        """See what is ready by now."""
        for key in self._due.take_due(now):
            self.ready[key] = None
        if self._look_at is not None and now >= self._look_at:
            self._look_for_too_many(now)
            self._look_at = now + LOOK_S if self._has_too_many() else None

    def check_invariants(self, under_way: list[bytes]) -> None:
        """Raise AssertionError if one that this node is to purge is not due, ready or under way, once. O(finals)."""
        assert sorted([*self._due, *self.ready, *under_way]) == sorted(self._first)
        assert self._first.keys() <= self._held.keys()
        for key, held in self._held.items():
            record = self._voter.record(key)
            assert is_over(key, record), key
            assert (held.ballot, held.seq) == (record.ballot, record.seq), key

    # Inside.

    def _kept_until(self, now: float, key: bytes, record: Record) -> float:
        until = self._expires(key, record)
        return math.inf if until is None else max(until, now + self._times.message_life_s)

    def _enter(self, now: float, key: bytes, record: Record, until: float) -> None:
        if until == math.inf:
            return
        self._held[key] = _Held(now, record.ballot, record.seq, until)
        self._seat(now, key, until)
        if self._look_at is None and self._has_too_many():
            self._look_at = now + LOOK_S

    def _seat(self, now: float, key: bytes, due: float) -> None:
        if self._seating.place(key) == 0:
            self._first[key] = due
            self._due.set(key, max(now, due))

    def _has_too_many(self) -> bool:
        return bool(self._first) and len(self._held) > self._times.finals_max

    def _look_for_too_many(self, now: float) -> None:
        """Have the oldest be ready: as many as are this node's share of what is too much; the other voters do theirs."""
        too_many = len(self._held) - self._times.finals_max
        if too_many <= 0:
            return
        share = math.ceil(too_many * len(self._first) / len(self._held))
        wanted = share - (len(self._first) - len(self._due))
        chosen: list[bytes] = []
        for key in self._first:
            if len(chosen) >= wanted:
                break
            if key in self._due and self.has_stood(now, key):
                chosen.append(key)
        for key in chosen:
            self._due.cancel(key)
            self.ready[key] = None
