"""A voter: promises, accepts, renews and answers, one register apart from the other.

    prepare ── another's lease lives ──────► leased: nothing was promised, no trace is left
            ├─ promised or accepted more ──► outbid
            └─ else ───────────────────────► store, then promised with what was accepted
    accept  ── below the promise, or below what was accepted ► outbid
            ├─ a creation (n = 0), and anything is known ────► outbid
            └─ else ─────────────────────────────────────────► store, then accepted; a lease is armed,
                                                               but for one that a creation names
    renew   ── its token is what was accepted, and nothing higher was promised ► armed anew
            └─ a higher ballot was accepted ► lost

What changes a record is returned as `Store` before the answer that depends on it: the answer leaves when
the store is durable. So does every later answer, though it stores nothing itself: to a copy of what is being
stored, or to a renewal of it, it would tell of a record that a crash may still undo.

A refused claimant leaves nothing behind: else whoever asks and fails could keep an owner from renewing. A lease
that ran out revives by a late renewal, as long as nobody was promised since.

A creation may name an owner, who has not asked for it and may be gone. So it arms nothing: whoever is named asks
for a renewal, and as long as a majority gave none anybody else may be promised the register.

A voter that starts again arms every accepted lease in full: it cannot know how much of it was left.

What is over for good is purged, by all voters of a register in turn (retention.py). Then nothing is known of it, and
whatever an owner or an asker of long ago sends, when it wakes up, must find no way in: no number up to the highest
that was promised for anything purged (`purged_n`) begins anything here any more, nor does a ballot of an earlier
epoch, whose every grant was installed. Only what was promised or accepted here already goes on. A creation (n = 0)
is exempt: it is sent for seconds, and what is purged has been final here for longer than any message lives.

The voter of an epoch answers in that epoch alone. Clocks: `now` in seconds of this node's own clock.

Source: one single-decree Paxos acceptor per key [CASPaxos]; leases beside it are our own.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from mesh.core.ballot import NO_BALLOT, Ballot, first_ballot
from mesh.core.ids import NodeId
from mesh.registers.ended import EndedSessions
from mesh.registers.kinds import may_hold
from mesh.registers.leases import LeaseTimes
from mesh.registers.record import NOTHING, Record
from mesh.registers.roster import ROSTERS
from mesh.wire.register_messages import (
    Accept,
    Accepted,
    Answer,
    Held,
    Leased,
    Outbid,
    Owner,
    Prepare,
    Promised,
    Read,
    Renew,
    Renewed,
    Request,
    Value,
    WrongEpoch,
)
from mesh.wire.roster_messages import PAGE_MAX, Entry, Fetch, Page, SealAnswer, Sealed, SealRequest


@dataclass(frozen=True, slots=True)
class Store:
    """Make a record durable before anything after it leaves the process."""

    key: bytes
    record: Record


@dataclass(frozen=True, slots=True)
class StoreEpoch:
    """Make these records, and the epoch this node votes in from now on, durable in one commit; 0: in none.

    `sealed` is the last epoch that this node has sealed.
    """

    epoch: int
    sealed: int
    records: tuple[tuple[bytes, Record], ...] = ()
    forget: tuple[bytes, ...] = ()
    """In the same commit; none of these is among the records."""


@dataclass(frozen=True, slots=True)
class Forget:
    """Make it durable, in one commit, that these are gone, and that no number up to `n` begins anything any more."""

    keys: tuple[bytes, ...]
    n: int


Step: TypeAlias = Store | StoreEpoch | Forget | Answer | SealAnswer


class Voter:
    """The registers of one voter, and their leases' clocks."""

    def __init__(
        self,
        own_id: NodeId,
        times: LeaseTimes,
        *,
        epoch: int,
        sealed: int = 0,
        purged_n: int = 0,
        now: float,
        records: Iterable[tuple[bytes, Record]] = (),
    ) -> None:
        """Start, or start again with what was stored: leases are armed from `now` on; epoch 0: it votes in none."""
        self._own_id = own_id
        self._times = times
        self.epoch = epoch
        self.sealed = sealed
        """The last epoch that this node has sealed; it never votes in that, or an earlier one, again."""

        self.purged_n = purged_n
        """Up to here no number begins anything here any more; it never goes down."""

        self._sorted: list[bytes] = []  # the keys, of what is sealed
        self._records: dict[bytes, Record] = dict(records)
        self._armed: dict[bytes, float] = {}
        """When each lease's timer runs out, by this node's clock: of leased records alone."""

        self._ended = EndedSessions()
        for key, record in self._records.items():
            if record.is_leased and record.promised == record.ballot:
                self._arm(now, key)

    # What is asked.

    def handle(self, now: float, request: Request) -> list[Step]:
        """Take a request; return what to store, then what to answer."""
        if isinstance(request, Prepare):
            return self._on_prepare(now, request)
        if isinstance(request, Accept):
            return self._on_accept(now, request)
        if isinstance(request, Renew):
            return [self._on_renew(now, request)]
        return [self._on_read(request)]

    def create(self, now: float, key: bytes, domain: int, value: Value) -> list[Step] | None:
        """Create a register that nobody has asked about, as its first voter: without asking twice.

        Returns what to store and this voter's own acceptance, which is as good as another's; the same
        `Accept` then goes to the others. None: something is known of the register, or this node does not
        vote: it has to be prepared like any other.
        """
        if not self.epoch or key in self._records:
            return None
        ballot = first_ballot(domain, self.epoch, self._own_id)
        return self._on_accept(now, Accept(key, self.epoch, ballot, 0, value))

    def end(self, node_id: NodeId, boot: int) -> None:
        """Take the proof that a session runs nothing any more: its leases here are over at once."""
        self._ended.note(node_id, boot)
        for key in [key for key in self._armed if self._is_over(self._records[key])]:
            del self._armed[key]

    # Repair, and what is over.

    def fill(self, key: bytes, ballot: Ballot, seq: int, value: Value) -> list[Step]:
        """Take what another voter of this register has accepted in this epoch, as it was asked to ship it just now.

        Where as much is held, or more was promised, nothing changes. It arms no lease: nobody's trust rests on
        what was not here, and the owner renews. A lease that is armed under this ballot stays as it is.
        """
        record = self.record(key)
        if (ballot, seq) <= (record.ballot, record.seq) or ballot < record.promised:
            return []
        if not may_hold(key, value):
            return []
        filled = Record(max(record.promised, ballot), ballot, seq, value)
        if record.ballot != ballot or not filled.is_leased:
            self._armed.pop(key, None)
        return [self._store(key, filled)]

    def purge(self, keys: Iterable[bytes], n: int) -> list[Step]:
        """Drop what all voters hold as final, or held when they were asked; no promise of it was above `n`."""
        gone = tuple(key for key in keys if key in self._records)
        if not gone and n <= self.purged_n:
            return []
        self.purged_n = max(self.purged_n, n)
        self._drop(gone)
        return [Forget(gone, self.purged_n)]

    # From one epoch to the next.

    def seal(self, now: float, request: SealRequest) -> list[Step]:
        """Vote no more in an epoch that this node has installed, or tell what it held then."""
        if self._votes_in(request.epoch):
            if isinstance(request, Fetch):
                return []  # it has not sealed
            self.epoch, self.sealed = 0, request.epoch
            return [StoreEpoch(0, self.sealed), Sealed(request.epoch, len(self._records))]
        if request.epoch == self.sealed > 0:
            # It may vote in the next by now: what it holds has only risen since, and is as good.
            if isinstance(request, Fetch):
                return [self._page(now, request)]
            return [Sealed(request.epoch, len(self._records))]
        return []

    def install(
        self, now: float, epoch: int, records: Mapping[bytes, tuple[Record, bool]]
    ) -> list[Step]:
        """Vote in an epoch from now on, with what was held before it: by key the record, and whether a lease lives.

        What is held here beside that was never chosen, or is over and purged: it goes.
        """
        if epoch <= max(self.epoch, self.sealed):
            return []
        gone = self._strays(records)
        self._drop(gone)
        # What was the epoch's before is sealed here as well: this node may have been asked for neither.
        self.epoch, self.sealed = epoch, max(self.sealed, epoch - 1)
        changed: list[tuple[bytes, Record]] = []
        for key, (record, is_live) in records.items():
            held = self.record(key)
            latest = max(held, record, key=lambda one: (one.ballot, one.seq))
            was_live = latest is held and self.remaining_s(now, key) is not None
            promised = max(held.promised, record.promised, latest.ballot)
            merged = replace(latest, promised=promised)
            self._records[key] = merged
            changed.append((key, merged))
            self._armed.pop(key, None)
            is_armed = was_live or (is_live and latest.ballot == record.ballot)
            if is_armed and merged.is_leased and not self._is_over(merged):
                self._arm(now, key)
        return [StoreEpoch(epoch, self.sealed, tuple(changed), gone)]

    # What is known.

    def record(self, key: bytes) -> Record:
        """Return what is kept of a register."""
        return self._records.get(key, NOTHING)

    def holds(self, key: bytes) -> bool:
        """Say whether anything is kept of a register, be it a promise alone."""
        return key in self._records

    def remaining_s(self, now: float, key: bytes) -> float | None:
        """Return for how long a lease lives, unless it is renewed; None: none does."""
        armed = self._armed.get(key)
        if armed is None:
            return None
        left = armed + self._times.grace_s - now
        return left if left > 0 else None

    def __iter__(self) -> Iterator[tuple[bytes, Record]]:
        return iter(self._records.items())

    def __len__(self) -> int:
        return len(self._records)

    def check_invariants(self) -> None:
        """Raise AssertionError if a record contradicts itself, or a timer runs for what is not leased."""
        for key, record in self._records.items():
            assert record.promised >= record.ballot, (key, record)
            assert (record.value is None) == (record.ballot == NO_BALLOT), (key, record)
        for key in self._armed:
            record = self._records[key]
            assert record.is_leased, (key, record)

    # Inside: each rule by itself, so that a test can break one alone.

    def _votes_in(self, epoch: int) -> bool:
        return 0 < epoch == self.epoch

    def _on_prepare(self, now: float, request: Prepare) -> list[Step]:
        key, ballot = request.key, request.ballot
        if not self._votes_in(ballot.epoch):
            return [WrongEpoch(key, ballot, self.epoch)]
        record = self.record(key)
        if ballot <= record.promised or ballot <= record.ballot or self._is_of_old(ballot):
            return [Outbid(key, ballot, self._promised(record, ballot))]
        remaining = self._other_lease_s(now, key, Owner(ballot.node_id, request.boot))
        if remaining is not None:
            return [Leased(key, ballot, remaining)]
        return [
            self._store(key, replace(record, promised=ballot)),
            Promised(key, ballot, record.ballot, record.seq, record.value),
        ]

    def _on_accept(self, now: float, request: Accept) -> list[Step]:
        key, ballot, seq = request.key, request.ballot, request.seq
        if not self._votes_in(request.epoch) or (seq == 0 and ballot.epoch != self.epoch):
            return [WrongEpoch(key, ballot, self.epoch)]
        if not may_hold(key, request.value):
            return []
        record = self.record(key)
        if not self._may_accept(record, ballot, seq):
            return [Outbid(key, ballot, self._promised(record, ballot))]
        answer = Accepted(key, request.epoch, ballot, seq)
        held_seq = (
            0 if ballot.n == seq == 0 else record.seq
        )  # whoever it named may have gone on by now
        if (record.ballot, held_seq) == (ballot, seq):
            return [answer]  # it is there already: a copy, or the first answer was lost
        accepted = Record(max(record.promised, ballot), ballot, seq, request.value)
        stored = self._store(key, accepted)
        if accepted.is_leased and not accepted.is_named and not self._is_over(accepted):
            self._arm(now, key)
        else:
            self._armed.pop(key, None)
        return [stored, answer]

    def _may_accept(self, record: Record, ballot: Ballot, seq: int) -> bool:
        if ballot.n == 0 and seq == 0 and record is not NOTHING:
            return record.ballot == ballot and record.promised == ballot
        is_bare = ballot.n == 0 and (record.ballot, record.seq) == (ballot, 0)
        if is_bare and seq and not record.is_named:
            return False  # whom that ballot named was of a register that is purged, and made anew
        is_known = ballot in (record.promised, record.ballot)
        if not is_known and (ballot.n or seq) and self._is_of_old(ballot):
            return False
        return ballot >= record.promised and (ballot, seq) >= (record.ballot, record.seq)

    def _is_of_old(self, ballot: Ballot) -> bool:
        """Say whether a ballot may be one of something that is purged."""
        return 0 < self.purged_n >= ballot.n or ballot.epoch < self.epoch

    def _promised(self, record: Record, ballot: Ballot) -> Ballot:
        """Return what a ballot has to be above, to be told to whoever is refused."""
        if not self._is_of_old(ballot):
            return record.promised
        return max(record.promised, Ballot(ballot.domain, self.epoch, self.purged_n + 1, NodeId(0)))

    def _strays(self, installed: Mapping[bytes, tuple[Record, bool]]) -> tuple[bytes, ...]:
        return tuple(
            key for key in self._records if key not in installed and not key.startswith(ROSTERS)
        )

    def _drop(self, keys: Iterable[bytes]) -> None:
        self._sorted = []
        for key in keys:
            del self._records[key]
            self._armed.pop(key, None)

    def _on_renew(self, now: float, request: Renew) -> Renewed:
        renewed: list[int] = []
        lost: list[tuple[int, Ballot]] = []
        is_asked_here = self._votes_in(request.epoch)
        for place, (key, token) in enumerate(request.leases if is_asked_here else ()):
            record = self.record(key)
            if self._may_renew(record, token):
                self._arm(now, key)
                renewed.append(place)
            elif record.ballot > token:
                lost.append((place, record.ballot))
        return Renewed(self.epoch, request.round, tuple(renewed), tuple(lost))

    def _may_renew(self, record: Record, token: Ballot) -> bool:
        is_its = record.is_leased and record.ballot == token
        return is_its and record.promised <= token and not self._is_over(record)

    def _on_read(self, request: Read) -> Answer:
        key = request.key
        if request.epoch != self.epoch:
            return WrongEpoch(key, NO_BALLOT, self.epoch)
        record = self.record(key)
        return Held(key, self.epoch, request.tag, record.ballot, record.seq, record.value)

    def _page(self, now: float, request: Fetch) -> Page:
        if len(self._sorted) != len(self._records):
            self._sorted = sorted(self._records)
        first = bisect.bisect_right(self._sorted, request.after) if request.after else 0
        keys = self._sorted[first : first + PAGE_MAX]
        entries = tuple(self._entry(now, key) for key in keys)
        return Page(request.epoch, request.after, entries, first + PAGE_MAX >= len(self._sorted))

    def _entry(self, now: float, key: bytes) -> Entry:
        record = self._records[key]
        is_live = self.remaining_s(now, key) is not None
        return Entry(key, record.promised, record.ballot, record.seq, record.value, is_live)

    def _other_lease_s(self, now: float, key: bytes, asker: Owner) -> float | None:
        """Return for how long the lease of somebody else lives; None: nobody else's does."""
        value = self.record(key).value
        return None if value is None or value.owner == asker else self.remaining_s(now, key)

    def _is_over(self, record: Record) -> bool:
        owner: Owner | None = None if record.value is None else record.value.owner
        return owner is not None and self._ended.has(owner)

    def _arm(self, now: float, key: bytes) -> None:
        self._armed[key] = now + self._times.voter_s

    def _store(self, key: bytes, record: Record) -> Store:
        self._records[key] = record
        return Store(key, record)
