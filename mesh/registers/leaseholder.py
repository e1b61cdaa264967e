"""All leases of one node, renewed together: one message to each voter in each period, however many there are.

    every renew_s ──► to each voter: Renew(round, all leases that it votes on)
    Renewed       ──► counted for the round that it names; a majority of it moves `trusted_until`
    time          ──► sure → doubt → lost, each change said once

A lease that may not be trusted yet is renewed at once, not at the next period. One that nobody asked for, since a
creation named its owner, is renewed by itself, at once and again soon: some voters may hear of it a moment later than
the owner does. Voters that answer a round with another epoch are asked again when the roster is known (`move`).

Source: our own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.errors import LocalProtocolError
from mesh.registers.leases import LeaseTimes
from mesh.registers.trust import Hold, Trust
from mesh.wire.register_messages import LEASES_MAX, Renew, Renewed

JITTER: Final = 0.1
"""Of the period: so that nodes that began together do not renew together for ever."""

ASKED_ROUNDS_MAX: Final = 64
"""Rounds whose answers are waited for: so many of all leases, and as many of new ones, which may follow each other closely."""

NEW_PAUSE_S: Final = 0.02
"""After so long a new lease that no majority has renewed is renewed again; then after twice as long each time."""


@dataclass(frozen=True, slots=True)
class Held:
    """What became of a lease. A lease that is lost is held no more."""

    key: bytes
    token: Ballot
    hold: Hold


_Asked: TypeAlias = dict[int, dict[tuple[NodeId, int], tuple[bytes, ...]]]
"""By round, the oldest first: what a voter was asked to renew in an epoch."""


@dataclass(slots=True)
class _Lease:
    trust: Trust
    epoch: int
    voters: tuple[NodeId, ...]
    said: Hold
    pause_s: float = NEW_PAUSE_S


class Leaseholder:
    """Renews what this node owns, and says what it may do with it."""

    def __init__(self, times: LeaseTimes, boot: int, rng: random.Random) -> None:
        """Begin a session; `boot` is its number, so that no answer to another session's rounds is taken for one to its own."""
        self._times = times
        self._rng = rng
        self._leases: dict[bytes, _Lease] = {}
        self._round = boot << 32
        self._asked: _Asked = {}
        self._asked_new: _Asked = {}  # apart: however many there are, the others' answers are waited for
        self._renew_at: float | None = None
        self._new: Timers[bytes] = Timers()
        """When those that were never trusted yet, and are renewed by themselves, are renewed next."""

    def __len__(self) -> int:
        return len(self._leases)

    def hold(
        self, now: float, key: bytes, token: Ballot, sent_at: float | None, voters: Iterable[NodeId]
    ) -> Hold:
        """Take a lease that was granted; return what may be done with it now.

        Args:
            now: this node's clock, in seconds.
            key: the register.
            token: the ballot that it was granted under, of whose epoch the voters are.
            sent_at: from before the granting accept was sent; None: nothing is trusted before a renewal.
            voters: of this register, in that epoch.

        Raises:
            LocalProtocolError: this node holds as many as fit into one renewal; nothing changed.
        """
        if len(self._leases) >= LEASES_MAX and key not in self._leases:
            raise LocalProtocolError(
                f"at most {LEASES_MAX} leases are expected at one node, found more"
            )
        trust = Trust(token, self._times, sent_at)
        said = trust.hold(now)
        self._leases[key] = _Lease(trust, token.epoch, tuple(voters), said)
        self._new.cancel(key)
        if sent_at is None:
            self._new.set(key, now)
        is_urgent = said is not Hold.SURE and sent_at is not None
        soon = now if is_urgent else now + self._times.renew_s
        self._renew_at = soon if self._renew_at is None else min(self._renew_at, soon)
        return said

    def drop(self, key: bytes) -> None:
        """Renew a lease no more: its work has ended, or was released."""
        self._leases.pop(key, None)
        self._new.cancel(key)

    def move(self, now: float, epoch: int, voters: dict[bytes, tuple[NodeId, ...]]) -> None:
        """Renew with the voters of another epoch from now on, at once; by key, for every lease that changes."""
        for key, those in voters.items():
            lease = self._leases.get(key)
            if lease is not None:
                lease.epoch, lease.voters = epoch, those
                self._renew_at = now

    def standing(self, now: float, key: bytes) -> Hold | None:
        """Return what may be done with a lease now; None: it is not held here."""
        lease = self._leases.get(key)
        return None if lease is None else lease.trust.hold(now)

    def trusted_until(self, key: bytes) -> float | None:
        """Return until when the work of a lease may run: what a guardian is told; None: it is not held here."""
        lease = self._leases.get(key)
        return None if lease is None else lease.trust.trusted_until

    def given_up_at(self, key: bytes) -> float | None:
        """Return when a lease is lost, unless it is renewed before; None: it is not held here."""
        lease = self._leases.get(key)
        return None if lease is None else lease.trust.given_up_at

    def handle(self, now: float, sender: NodeId, answer: Renewed) -> list[Held]:
        """Take a voter's answer to a round; return what changed."""
        asked = self._asked.get(answer.round) or self._asked_new.get(answer.round, {})
        keys = asked.get((sender, answer.epoch))
        if keys is None:
            return []
        changes = self._changes(now, keys)  # what time has taken, no answer brings back
        for place in answer.renewed:
            lease = self._leases.get(keys[place]) if place < len(keys) else None
            if lease is not None:
                lease.trust.renewed(sender, answer.round, answer.epoch)
        for place, ballot in answer.lost:
            lease = self._leases.get(keys[place]) if place < len(keys) else None
            if lease is not None and sender in lease.voters:
                lease.trust.outbid(ballot)
        return changes + self._changes(now, keys)

    def next_deadline(self) -> float | None:
        """Return when a round is due, or a lease changes by itself. O(leases)."""
        if not self._leases:
            return None
        ends = [
            lease.trust.trusted_until if lease.said is Hold.SURE else lease.trust.given_up_at
            for lease in self._leases.values()
        ]
        assert self._renew_at is not None
        new_at = self._new.next_deadline()
        return min(self._renew_at, *ends, *(() if new_at is None else (new_at,)))

    def renew_new(self, now: float) -> list[tuple[NodeId, Renew]]:
        """Begin a round of those new leases alone that are due; return what to send."""
        keys = self._new.take_due(now)
        for key in keys:
            lease = self._leases[key]
            self._new.set(key, now + lease.pause_s)
            lease.pause_s = min(2 * lease.pause_s, self._times.renew_s)
        return self._begin(now, keys, self._asked_new) if keys else []

    def handle_timeout(self, now: float) -> tuple[list[tuple[NodeId, Renew]], list[Held]]:
        """Begin a round if one is due; return what to send, and what changed by the time alone."""
        changes = self._changes(now, list(self._leases))
        if not self._leases:
            self._renew_at = None
            self._asked.clear()
            self._asked_new.clear()
            return [], changes
        renewals = self.renew_new(now)
        if self._renew_at is None or now < self._renew_at:
            return renewals, changes
        self._renew_at = now + self._times.renew_s * (1 - JITTER * self._rng.random())
        return renewals + self._begin(now, self._leases, self._asked), changes

    def check_invariants(self, now: float) -> None:
        """Raise AssertionError if a lease that is lost is still held, or more is remembered than is waited for."""
        for key, lease in self._leases.items():
            assert lease.said is not Hold.LOST, key
            assert lease.trust.trusted_until <= now + self._times.owner_s, key
        for key in self._new:
            assert self._leases[key].said is Hold.DOUBT, key
        rounds = max(len(self._asked), len(self._asked_new))
        assert rounds <= ASKED_ROUNDS_MAX, rounds

    # Inside.

    def _begin(
        self, now: float, those: Iterable[bytes], asked: _Asked
    ) -> list[tuple[NodeId, Renew]]:
        self._round += 1
        number = self._round
        by_round = asked[number] = {}
        if len(asked) > ASKED_ROUNDS_MAX:
            del asked[next(iter(asked))]
        by_voter: dict[tuple[NodeId, int], list[bytes]] = {}
        for key in those:
            lease = self._leases[key]
            lease.trust.begin(now, number, lease.epoch, lease.voters)
            for voter in lease.voters:
                by_voter.setdefault((voter, lease.epoch), []).append(key)
        sent: list[tuple[NodeId, Renew]] = []
        for (voter, epoch), keys in by_voter.items():
            by_round[voter, epoch] = tuple(keys)
            leases = tuple((key, self._leases[key].trust.token) for key in keys)
            sent.append((voter, Renew(epoch, number, leases)))
        return sent

    def _changes(self, now: float, keys: Iterable[bytes]) -> list[Held]:
        changes: list[Held] = []
        for key in keys:
            lease = self._leases.get(key)
            if lease is None:
                continue
            hold = lease.trust.hold(now)
            if hold is lease.said:
                continue
            lease.said = hold
            self._new.cancel(key)
            changes.append(Held(key, lease.trust.token, hold))
            if hold is Hold.LOST:
                del self._leases[key]
        return changes
