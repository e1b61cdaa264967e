"""What one node owns: its leases and its writes under them, key by key.

    hold ──► renewed with all others, each change said once: sure, doubt, lost
    write ─► sent until a majority has it (Written), or may have promised another (Fenced)
    drop ──► neither any more

A lease that is lost takes no write with it: the token decides, not the clock, so what is under way goes on,
and the last word may still be said. Whoever holds also drops, except where a write that was no lease any
more (released, or final) has come through: that ends it by itself.

Source: our own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from mesh.core.ballot import NO_BALLOT, Ballot
from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.errors import LocalProtocolError
from mesh.registers.leaseholder import Leaseholder
from mesh.registers.leases import LeaseTimes
from mesh.registers.outbox import Fenced, Outbox, Written
from mesh.registers.proposal import Chosen
from mesh.registers.seating import Seating
from mesh.registers.trust import Hold
from mesh.registers.writer import Writer
from mesh.wire.register_messages import (
    Accept,
    Accepted,
    Outbid,
    Owner,
    Renewed,
    Standing,
    Value,
)
from mesh.wire.roster_messages import Roster


@dataclass(slots=True)
class _Owned:
    token: Ballot
    writer: Writer
    ends: bool = False
    """The latest write is no lease any more."""

    is_fenced: bool = False
    said_seq: int = 0


class Owning:
    """The owner's side of a node. What it sends and says goes to the outbox."""

    def __init__(
        self, owner: Owner, times: LeaseTimes, rng: random.Random, seating: Seating, outbox: Outbox
    ) -> None:
        self._owner = owner
        self._seating = seating
        self._outbox = outbox
        self._leaseholder = Leaseholder(times, owner.boot, rng)
        self._owned: dict[bytes, _Owned] = {}
        self._resends: Timers[bytes] = Timers()
        self._leases_at: float | None = None
        self._has_moved = False  # `_leases_at` is to be asked for anew, which takes O(leases)

    def hold(self, now: float, key: bytes, chosen: Chosen) -> Hold:
        """Take a lease that was granted to this session, in place of an earlier one of the register."""
        if chosen.value.owner != self._owner:
            raise LocalProtocolError(
                f"a lease of {self._owner} is expected, found one of {chosen.value.owner}"
            )
        roster, token = self._seating.seats(key), chosen.ballot
        hold = self._leaseholder.hold(now, key, token, chosen.sent_at, roster.voters)
        if hold is Hold.LOST:
            self._leaseholder.drop(key)
        elif roster.epoch != token.epoch:
            self._leaseholder.move(now, roster.epoch, {key: roster.voters})
        self.take_to_write(key, token)
        if chosen.sent_at is None:
            for to, renew in self._leaseholder.renew_new(now):
                self._outbox.send(to, renew, waits=False)
        return hold

    def take_to_write(self, key: bytes, token: Ballot) -> None:
        """Write under a token from now on, in place of an earlier one of the register; this renews nothing."""
        self._owned[key] = _Owned(token, Writer(key, token))
        self._resends.cancel(key)
        self._has_moved = True

    def standing(self, now: float, key: bytes) -> Hold | None:
        """Return what may be done with a lease now; None: it is not held here."""
        return self._leaseholder.standing(now, key)

    def trusted_until(self, key: bytes) -> float | None:
        """Return until when the work of a lease may run; None: it is not held here."""
        return self._leaseholder.trusted_until(key)

    def given_up_at(self, key: bytes) -> float | None:
        """Return when a lease is lost, unless it is renewed before; None: it is not held here."""
        return self._leaseholder.given_up_at(key)

    def write(self, now: float, key: bytes, value: Value) -> int:
        """Write under the token of what is owned; return the number of the write."""
        owned = self._owned.get(key)
        if owned is None:
            raise LocalProtocolError(f"a register that is held is expected, found {key!r}")
        roster = self._seating.seats(key)
        sent = owned.writer.write(now, value, roster.epoch, roster.voters)
        if owned.is_fenced:
            self._outbox.say(Fenced(key, owned.token, owned.writer.fenced_by))
            return owned.writer.seq
        owned.ends = value.standing is not Standing.LEASED
        self._send(key, owned, sent)
        return owned.writer.seq

    def drop(self, key: bytes) -> None:
        """Renew and write no more; what is under way may come through or not."""
        self._leaseholder.drop(key)
        self._owned.pop(key, None)
        self._resends.cancel(key)
        self._has_moved = True

    def handle(self, now: float, sender: NodeId, answer: Renewed | Accepted | Outbid) -> None:
        """Take a voter's answer to a renewal or a write."""
        if isinstance(answer, Renewed):
            for held in self._leaseholder.handle(now, sender, answer):
                self._outbox.say(held)
            self._has_moved = True
            return
        owned = self._owned.get(answer.key)
        if owned is not None:
            owned.writer.handle(sender, answer)
            self._look(answer.key, owned)

    def move(self, now: float, roster: Roster) -> None:
        """Go on with the voters of another epoch, under the same tokens."""
        voters = {key: self._seating.seats(key).voters for key in self._owned}
        self._leaseholder.move(now, roster.epoch, voters)
        self._has_moved = True
        for key, owned in list(self._owned.items()):
            self._send(key, owned, owned.writer.move(now, roster.epoch, voters[key]))

    def next_deadline(self) -> float | None:
        """Return when to renew, to write again, or to say that a lease has changed by itself."""
        if self._has_moved:
            self._leases_at, self._has_moved = self._leaseholder.next_deadline(), False
        deadlines = (self._leases_at, self._resends.next_deadline())
        return min((at for at in deadlines if at is not None), default=None)

    def handle_timeout(self, now: float) -> None:
        """Do what is due."""
        at = self.next_deadline()
        if at is None or now < at:
            return
        for key in self._resends.take_due(now):
            owned = self._owned[key]
            self._send(key, owned, owned.writer.handle_timeout(now))
        if self._leases_at is not None and now >= self._leases_at:
            renewals, changes = self._leaseholder.handle_timeout(now)
            for held in changes:
                self._outbox.say(held)
            for to, renew in renewals:
                self._outbox.send(to, renew, waits=False)
            self._has_moved = True

    def check_invariants(self, now: float) -> None:
        """Raise AssertionError if a write is sent again that is not waited for, or the leases are wrong."""
        self._leaseholder.check_invariants(now)
        for key in self._resends:
            assert self._owned[key].writer.next_deadline() is not None, key

    # Inside.

    def _send(self, key: bytes, owned: _Owned, sent: Iterable[tuple[NodeId, Accept]]) -> None:
        for to, accept in sent:
            self._outbox.send(to, accept, waits=False)
        self._look(key, owned)

    def _look(self, key: bytes, owned: _Owned) -> None:
        """Say how the latest write has ended, once; else see that it is sent again."""
        writer = owned.writer
        if writer.fenced_by != NO_BALLOT:
            if not owned.is_fenced:
                owned.is_fenced = True
                self._outbox.say(Fenced(key, owned.token, writer.fenced_by))
        elif writer.is_settled and writer.seq > owned.said_seq:
            owned.said_seq = writer.seq
            self._outbox.say(Written(key, owned.token, writer.seq))
            if owned.ends:
                self.drop(key)
                return
        again = writer.next_deadline()
        if again is None:
            self._resends.cancel(key)
        else:
            self._resends.set(key, again)
