"""Voters find what one of them lacks, and ship it: nobody has to propose anything for that.

    every while, the lower of two ids ──► Compare: one sum of all that both keep. Equal: silence
    not equal ──► Sums, one of each bucket, and the other's in answer
    of each bucket that differs ──► Lack: these I hold ──► Ship: these you lack, page by page ──► taken, or not

Shipped is what the other has accepted, and it is taken as an accept of that ballot would be: not below a promise,
never back. It is asked for, and an answer that comes late is dropped: so what was shipped was held a moment ago,
and what has been purged meanwhile is not brought back by a message that was long on its way.

What is leased is shipped too, once for each write, for then it is held. It arms nothing: the owner's renewals do.

Where more is promised than was shipped, somebody began to write and did not end. What is open or final is then
written back under a ballot of its own; what is leased will be claimed by somebody.

Source: anti-entropy [Demers §1.3]; buckets of sums are our own.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.registers.digests import OF_ROSTERS, Digests, bucket_of
from mesh.registers.handover import Propose
from mesh.registers.seating import Seating
from mesh.registers.upkeep import ANSWER_S, Fill, UpkeepMove, UpkeepTimes
from mesh.registers.voter import Voter
from mesh.wire.register_messages import Standing, Value
from mesh.wire.repair_messages import (
    BUCKETS,
    SHIP_MAX,
    SUM_BYTES,
    Compare,
    Lack,
    Ship,
    Shipped,
    Sums,
)

RESEND_S: Final = 1.0
TRIES: Final = 3
"""So often one page is asked for; then the rest is left to the next comparison."""

PAUSE_S: Final = 0.02
"""Between two pages: what is repaired leaves room for what is done."""

SHIP_BYTES_MAX: Final = 256 * 1024
"""About so much is shipped at once, and one record at least."""

WRITE_BACKS_MAX: Final = 8
"""So many of one page are written back; the rest after another comparison."""

WRITE_BACK_S: Final = 5.0


@dataclass(slots=True)
class _Pull:
    """What is asked of one other voter, one page after the other."""

    buckets: deque[int] = field(default_factory=deque)
    after: bytes = b""
    tag: int = 0
    asked_at: float | None = None
    tries: int = 0


class Repair:
    """One voter's side of it. It looks at the voter and never changes it."""

    def __init__(
        self,
        own_id: NodeId,
        *,
        voter: Voter,
        seating: Seating,
        digests: Digests,
        times: UpkeepTimes,
        rng: random.Random,
        now: float,
    ) -> None:
        self._own_id = own_id
        self._voter = voter
        self._seating = seating
        self._digests = digests
        self._times = times
        self._rng = rng
        self._tag = rng.getrandbits(48) << 15
        self._compares: Timers[NodeId] = Timers()
        self._pulls: dict[NodeId, _Pull] = {}
        self._asks: Timers[NodeId] = Timers()
        self.filled = 0
        """Records that were lacking and came."""

        self.adopt(now)

    def adopt(self, now: float) -> None:
        """Compare with the voters of the roster that is known now, soon."""
        roster = self._seating.roster
        for peer in [*self._compares]:
            self._compares.cancel(peer)
        for peer in [*self._asks]:
            self._asks.cancel(peer)
        self._pulls.clear()
        if roster is None or self._own_id not in roster.voters:
            return
        for peer in roster.voters:
            if peer > self._own_id:
                self._compares.set(peer, now + self._times.compare_s * self._rng.random())

    def handle(
        self, now: float, sender: NodeId, message: Compare | Sums | Lack | Ship
    ) -> list[UpkeepMove]:
        """Take a message of another voter of the epoch that this node votes in; all others' change nothing."""
        roster = self._seating.roster
        if not self._votes() or roster is None or sender not in roster.voters:
            return []
        if message.epoch != self._voter.epoch or sender == self._own_id:
            return []
        self._digests.settle(now)
        if isinstance(message, Compare):
            return self._on_compare(sender, message)
        if isinstance(message, Sums):
            return self._on_sums(now, sender, message)
        if isinstance(message, Lack):
            return self._on_lack(sender, message)
        return self._on_ship(now, sender, message)

    def next_deadline(self) -> float | None:
        """Return when something is due."""
        deadlines = (self._compares.next_deadline(), self._asks.next_deadline())
        return min((at for at in deadlines if at is not None), default=None)

    def handle_timeout(self, now: float) -> list[UpkeepMove]:
        """Compare and ask for what is due."""
        out: list[UpkeepMove] = []
        for peer in self._compares.take_due(now):
            self._compares.set(peer, now + self._times.compare_s * self._rng.uniform(0.75, 1.25))
            if self._votes():
                self._digests.settle(now)
                total = self._digests.sum(self._shared(peer))
                out.append((peer, Compare(self._voter.epoch, total)))
        for peer in self._asks.take_due(now):
            out += self._ask(now, peer, self._pulls[peer])
        return out

    def check_invariants(self) -> None:
        """Raise AssertionError if something is asked for that is not waited for."""
        assert set(self._asks) == set(self._pulls)
        assert all(pull.buckets for pull in self._pulls.values())

    # Comparing.

    def _votes(self) -> bool:
        roster = self._seating.roster
        return roster is not None and self._voter.epoch == roster.epoch

    def _shares(self, bucket: int, peer: NodeId) -> bool:
        if bucket == OF_ROSTERS:
            return True
        voters = self._seating.seats_of_cell(bucket).voters
        return peer in voters and self._own_id in voters

    def _shared(self, peer: NodeId) -> Callable[[int], bool]:
        return lambda bucket: self._shares(bucket, peer)

    def _on_compare(self, sender: NodeId, message: Compare) -> list[UpkeepMove]:
        shares = self._shared(sender)
        if message.sum == self._digests.sum(shares):
            return []
        return [(sender, Sums(message.epoch, self._digests.sums(shares), is_answer=False))]

    def _on_sums(self, now: float, sender: NodeId, message: Sums) -> list[UpkeepMove]:
        own = self._digests.sums(self._shared(sender))
        differing = [
            bucket
            for bucket, at in enumerate(range(0, BUCKETS * SUM_BYTES, SUM_BYTES))
            if own[at : at + SUM_BYTES] != message.sums[at : at + SUM_BYTES]
        ]
        if not differing:
            return []
        out: list[UpkeepMove] = []
        if not message.is_answer:
            out.append((sender, Sums(message.epoch, own, is_answer=True)))
        if sender not in self._pulls:
            pull = self._pulls[sender] = _Pull(deque(differing))
            out += self._ask(now, sender, pull)
        return out

    # Shipping.

    def _on_lack(self, sender: NodeId, message: Lack) -> list[UpkeepMove]:
        if not self._shares(message.bucket, sender):
            return []
        keys = self._digests.lacking(message.bucket, message.held, message.after)
        entries: list[Shipped] = []
        size = 0
        for key in keys[:SHIP_MAX]:
            record = self._voter.record(key)
            assert record.value is not None
            size += 100 + len(key) + len(record.value.body)
            if entries and size > SHIP_BYTES_MAX:
                break
            entries.append(Shipped(key, record.ballot, record.seq, record.value))
        is_last = len(entries) == len(keys)
        return [(sender, Ship(message.epoch, message.tag, tuple(entries), is_last))]

    def _ask(self, now: float, peer: NodeId, pull: _Pull) -> list[UpkeepMove]:
        pull.tries += 1
        if pull.tries > TRIES or not self._votes():
            self._end(peer)
            return []
        self._tag += 1
        pull.tag, pull.asked_at = self._tag, now
        self._asks.set(peer, now + RESEND_S * 2.0 ** (pull.tries - 1))
        bucket = pull.buckets[0]
        held = self._digests.held(bucket)
        return [(peer, Lack(self._voter.epoch, pull.tag, bucket, pull.after, held))]

    def _on_ship(self, now: float, sender: NodeId, message: Ship) -> list[UpkeepMove]:
        pull = self._pulls.get(sender)
        if pull is None or pull.tag != message.tag or pull.asked_at is None:
            return []
        if not self._is_fresh(now, pull.asked_at):
            return []
        bucket = pull.buckets[0]
        out = self._take(one for one in message.entries if bucket_of(one.key) == bucket)
        pull.asked_at, pull.tries = None, 0
        if message.entries and not message.is_last:
            pull.after = message.entries[-1].key
        else:
            pull.buckets.popleft()
            pull.after = b""
        if pull.buckets:
            self._asks.set(sender, now + PAUSE_S)
        else:
            self._end(sender)
        return out

    def _is_fresh(self, now: float, asked_at: float) -> bool:
        return now <= asked_at + ANSWER_S

    def _take(self, entries: Iterable[Shipped]) -> list[UpkeepMove]:
        out: list[UpkeepMove] = []
        written_back = 0
        for entry in entries:
            record = self._voter.record(entry.key)
            if not self._is_more(entry):
                continue
            if entry.ballot >= record.promised:
                self.filled += 1
                out.append(Fill(entry))
            elif entry.value.standing is not Standing.LEASED and written_back < WRITE_BACKS_MAX:
                written_back += 1
                out.append(Propose(entry.key, _written_back, WRITE_BACK_S))
        return out

    def _is_more(self, entry: Shipped) -> bool:
        record = self._voter.record(entry.key)
        return (entry.ballot, entry.seq) > (record.ballot, record.seq)

    def _end(self, peer: NodeId) -> None:
        del self._pulls[peer]
        self._asks.cancel(peer)


def _written_back(found: Value | None) -> Value | None:
    """Write what is open or final; what is leased by now is its owner's."""
    return None if found is None or found.standing is Standing.LEASED else found
