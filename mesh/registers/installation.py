"""A voter of the next epoch takes over what the last one holds: seal a majority, fetch it, install it at once.

    seal ──► every voter of the epoch before      each seals durably, then answers
    fetch ─► each of a majority that has sealed   page by page: what is sealed changes no more
    merge ─► highest (ballot, seq) · a promise that a majority may have given · every live lease, in full
    install in one commit; from then on this node votes in its epoch

What a majority of the epoch before accepted is held by at least one of any majority that sealed, so it is
found; and nothing more is accepted there once a majority has sealed. Two that install may have asked
different majorities: what they then hold may differ in what was never chosen, which is what repair is for.
All steps may be repeated, by anybody, at any time.

A promise may have been given by voters that were not asked: of `asked` out of `all`, one that at least
`majority - (all - asked)` of those asked report may be a majority's. Lower ones count for that: whoever
promised more has promised less as well.

Source: our own; sealing one configuration before the next follows reconfiguration by a chosen successor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mesh.core.ids import NodeId
from mesh.registers.proposal import RESEND_S, majority
from mesh.registers.record import NOTHING, Record
from mesh.wire.roster_messages import Entry, Fetch, Page, Roster, Seal, Sealed, SealRequest

RESEND_S_MAX: Final = 5.0


def merge(
    found: Iterable[tuple[NodeId, Entry]], asked: int, count: int
) -> dict[bytes, tuple[Record, bool]]:
    """Return what to install: by key the record, and whether a lease on it lives.

    Args:
        found: every entry of every voter that was asked.
        asked: how many were asked, a majority at least.
        count: how many voters the epoch has.
    """
    by_key: dict[bytes, list[Entry]] = {}
    for _, entry in found:
        by_key.setdefault(entry.key, []).append(entry)
    needed = majority(count) - (count - asked)
    installed: dict[bytes, tuple[Record, bool]] = {}
    for key, entries in by_key.items():
        latest = max(entries, key=lambda one: (one.ballot, one.seq))
        promises = sorted((one.promised for one in entries), reverse=True)
        # A voter that holds nothing of this register has promised nothing.
        promised = promises[needed - 1] if len(promises) >= needed else NOTHING.promised
        same = [one for one in entries if (one.ballot, one.seq) == (latest.ballot, latest.seq)]
        record = Record(max(promised, latest.ballot), latest.ballot, latest.seq, latest.value)
        is_live = record.is_leased and any(one.is_live for one in same)
        installed[key] = (record, is_live)
    return installed


class Installation:
    """One voter's way into an epoch. Nothing of it is durable: a session that ends begins anew."""

    def __init__(self, before: Roster, roster: Roster) -> None:
        self.roster = roster
        self._before = before
        self._sealed: set[NodeId] = set()
        self._pages: dict[NodeId, dict[bytes, Entry]] = {}
        self._complete: set[NodeId] = set()
        self._resend_s = RESEND_S
        self._resend_at: float | None = None
        self.result: dict[bytes, tuple[Record, bool]] | None = None
        """What to install, once it is all there."""

    def start(self, now: float) -> list[tuple[NodeId, SealRequest]]:
        """Ask all voters of the epoch before to seal it."""
        self._resend_at = now + self._resend_s
        return [(voter, Seal(self._before.epoch)) for voter in self._before.voters]

    def handle(self, sender: NodeId, answer: Sealed | Page) -> list[tuple[NodeId, SealRequest]]:
        """Take an answer; return what to ask next. Then look at `result`."""
        epoch = self._before.epoch
        is_asked = sender in self._before.voters and answer.epoch == epoch
        if self.result is not None or not is_asked:
            return []
        if isinstance(answer, Sealed):
            if sender in self._sealed:
                return []
            self._sealed.add(sender)
            self._pages[sender] = {}
            return [(sender, Fetch(epoch, b""))]
        if sender not in self._sealed or answer.after != self._after(sender):
            return []  # a copy of an earlier page
        self._pages[sender].update((entry.key, entry) for entry in answer.entries)
        if not answer.is_last:
            return [(sender, Fetch(epoch, self._after(sender)))]
        self._complete.add(sender)
        count = len(self._before.voters)
        if len(self._complete) >= majority(count):
            entries = [
                (voter, entry)
                for voter in sorted(self._complete)
                for entry in self._pages[voter].values()
            ]
            self.result = merge(entries, len(self._complete), count)
        return []

    def next_deadline(self) -> float | None:
        """Return when those that have not answered are to be asked again."""
        return None if self.result is not None else self._resend_at

    def handle_timeout(self, now: float) -> list[tuple[NodeId, SealRequest]]:
        """Ask again for what has not come."""
        if self.result is not None or self._resend_at is None or now < self._resend_at:
            return []
        self._resend_s = min(2 * self._resend_s, RESEND_S_MAX)
        self._resend_at = now + self._resend_s
        epoch = self._before.epoch
        return [
            (voter, Fetch(epoch, self._after(voter)) if voter in self._sealed else Seal(epoch))
            for voter in self._before.voters
            if voter not in self._complete
        ]

    def _after(self, voter: NodeId) -> bytes:
        return max(self._pages[voter], default=b"")
