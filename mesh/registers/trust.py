"""An owner's side of one lease: sure, in doubt, or lost.

    sure  ── nothing answered by a majority for T_owner ──► doubt: its work is frozen
    doubt ── a renewal sent in doubt is answered by a majority ──► sure again
          ── a voter accepted another's ballot, or doubt lasts T_voter + grace ──► lost, for good

A round of renewals is trusted from before it was sent, and only when a majority of the voters of one epoch
has answered it. Rounds overlap: an answer counts for the round it names, and late answers do no harm. An
owner that was granted its lease too late to trust it begins in doubt, and renews before it starts anything.

Whoever asks under a new ballot has given up what it held under an old one. Its own lease is not in its way, so
it may be promised while it trusts; a voter that restarts then arms no lease, and promises the next who asks.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.registers.leases import LeaseTimes
from mesh.registers.proposal import majority

ROUNDS_MAX: Final = 8
"""Rounds that are waited for; older ones are given up."""


class Hold(Enum):
    """What an owner may do with what it owns."""

    SURE = "sure"
    DOUBT = "doubt"
    LOST = "lost"


@dataclass(slots=True)
class _Round:
    sent_at: float
    epoch: int
    voters: frozenset[NodeId]
    renewed: set[NodeId] = field(default_factory=set)


class Trust:
    """One lease, as its owner may see it. `now`: this node's clock, which runs while the host sleeps."""

    __slots__ = ("_is_lost", "_rounds", "_times", "token", "trusted_until")

    def __init__(self, token: Ballot, times: LeaseTimes, sent_at: float | None) -> None:
        """Begin with what was granted; `sent_at` None: nothing is trusted before a renewal of its own."""
        self.token = token
        self._times = times
        self._is_lost = False
        self._rounds: dict[int, _Round] = {}
        self.trusted_until = float("-inf") if sent_at is None else sent_at + times.owner_s
        """Invariant: at no time later than this does the owner's work run. It never goes down."""

    def begin(self, now: float, number: int, epoch: int, voters: Iterable[NodeId]) -> None:
        """Note that round `number` is about to be sent to the voters of an epoch. Numbers rise."""
        if self.trusted_until == float("-inf"):
            self.trusted_until = now  # it may be waited for from now on, and is in doubt
        self._rounds[number] = _Round(now, epoch, frozenset(voters))
        while len(self._rounds) > ROUNDS_MAX:
            del self._rounds[next(iter(self._rounds))]

    def renewed(self, sender: NodeId, number: int, epoch: int) -> None:
        """Take that a voter renewed this lease in a round. Strangers, and other epochs, do not count."""
        found = self._rounds.get(number)
        if found is None or sender not in found.voters or epoch != found.epoch:
            return
        found.renewed.add(sender)
        if len(found.renewed) < majority(len(found.voters)):
            return
        self.trusted_until = max(self.trusted_until, found.sent_at + self._times.owner_s)
        for older in [other for other in self._rounds if other <= number]:
            del self._rounds[older]

    def outbid(self, ballot: Ballot) -> None:
        """Take that a voter accepted another ballot: if it is higher, a majority has promised it."""
        if ballot > self.token:
            self._is_lost = True

    def hold(self, now: float) -> Hold:
        """Return what the owner may do now."""
        if self._is_lost or now >= self.given_up_at:
            self._is_lost = True
            return Hold.LOST
        return Hold.SURE if now < self.trusted_until else Hold.DOUBT

    @property
    def given_up_at(self) -> float:
        """When doubt has lasted so long that all is lost."""
        until = self.trusted_until
        return float("inf") if until == float("-inf") else until + self._times.doubt_s
