"""Probes: a ping, then pings through others and over TCP, then a verdict. One begins in each period.

    |-- ping -- patience --|-- ping_req x k, and over TCP -- 0.6 of the timeout --|-- silent
                  any ack, on any way, ends the probe

Patience is what the round trips measured so far allow for (with this member, else with all), at most
probe_timeout_s. More probes than the period's begin where somebody is missed, or is to be looked at at once:
see `turns`. In SWIM's own round patience is always probe_timeout_s, and a probe ends with its period.

This machine only finds out who does not answer; what follows from that is not decided here. Its times
are stretched by the node's own health score.

Source: [SWIM §3.1] ping and ping-req; nacks and the score [Lifeguard §IV.A], the suspect told first
[Lifeguard §IV.C]; patience is TCP's timeout [RFC 6298 §2]. Deviation: the fallback over TCP (for networks
that lose UDP only) follows [memberlist]; helpers are sought among those who are no suspects first.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from mesh.core.address import Address
from mesh.core.events import EvidenceKind as Kind
from mesh.core.ids import NodeId, low32
from mesh.core.round_trip import RoundTrip
from mesh.core.timers import Timers
from mesh.membership.awareness import Awareness
from mesh.membership.clues import Clue, clue
from mesh.membership.identity import Identity
from mesh.membership.member import Member
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.membership.table import MemberTable
from mesh.membership.turns import Turns
from mesh.wire.records import State
from mesh.wire.swim_messages import Ack, Nack, Ping, PingReq, Suspect

RELAYS_MAX: Final = 1024
NACK_SHARE: Final = 0.8
"""A relay says nack after this share of the direct timeout, so that it arrives before the verdict."""

HELPERS_DRAWN: Final = 3
"""For each helper that is wanted, so many members are looked at, until one is found that is no suspect."""

INDIRECT_SHARE: Final = 0.6
"""With turns, what goes through others and over TCP has this share of the probe timeout: the observer waits for no period."""

PATIENCE_SHARE_MIN: Final = 0.1
"""A direct ping has at least this share of the probe timeout, however short the round trips were."""

PROBES_MAX: Final = 16
"""Probes under way at once; who is missed meanwhile is missed again."""

_PERIOD: Final = ("period", 0)
_NACK: Final = "nack"  # a relayed ping is answered with a nack
_HELP: Final = "help"  # a direct ping has had its time
_END: Final = "end"  # a probe has


@dataclass(slots=True)
class Probe:
    """A probe under way. `relays` are those asked to help, by id; `answered` those that said nack."""

    seq: int
    node_id: NodeId
    boot: int
    to: Address
    sent_at: float
    patience_s: float
    relays: dict[NodeId, str] = field(default_factory=dict)
    answered: dict[NodeId, None] = field(default_factory=dict)
    is_indirect: bool = False


@dataclass(frozen=True, slots=True)
class Silent:
    """A probe that nobody answered."""

    member: Member
    evidence: tuple[Clue, ...]


@dataclass(frozen=True, slots=True)
class _Relay:
    """A ping sent for somebody else."""

    requester: Address
    seq: int
    target: NodeId


class Prober:
    """Probes members, several at once where need be; answers pings, and relays for others."""

    def __init__(
        self,
        *,
        config: SwimConfig,
        identity: Identity,
        table: MemberTable,
        outbox: Outbox,
        turns: Turns,
        awareness: Awareness,
        rng: random.Random,
    ) -> None:
        self._config = config
        self._identity = identity
        self._table = table
        self._outbox = outbox
        self._turns = turns
        self._awareness = awareness
        self._rng = rng
        self._seq = rng.getrandbits(32)
        self._timers: Timers[tuple[str, int]] = Timers()  # what is due, and by which seq
        self._probes: dict[int, Probe] = {}
        self._relayed: dict[int, _Relay] = {}  # by our own seq, oldest first
        self.heard: list[NodeId] = []
        """Members whose vitals came in since the node last took them."""

        self.glanced: dict[int, tuple[NodeId, float]] = {}
        """By its seq, of each glance that may be answered yet: who was asked, and when."""

        self.misdirected = 0
        self.dropped_relays = 0
        """Pings for others that were forgotten before their answer, because there were too many."""

        self._is_over = False
        self._typical: RoundTrip | None = None  # of all members, for one that was not measured yet

    def start(self, now: float) -> None:
        """Begin the protocol periods, at a random phase; or the next one sooner, if health is better than it was."""
        due = self._timers.deadline(_PERIOD)
        if not self._is_over and (due is None or due > now + self._period_s):
            self._timers.set(_PERIOD, now + self._rng.random() * self._period_s)

    def stop(self) -> None:
        """Probe no more; pings are still answered."""
        self._timers.cancel(_PERIOD)
        self._drop_probes()
        self._is_over = True

    def void(self, now: float) -> None:
        """Forget the probes under way: this node was away and may have missed the answers."""
        self._turns.void(now)
        if self._probes:
            self._drop_probes()
            self._timers.set(_PERIOD, now + self._rng.random() * self._config.probe_timeout_s)

    def next_deadline(self) -> float | None:
        """Return when this machine wants to be called next."""
        deadlines = (
            self._timers.next_deadline(),
            None if self._is_over else self._turns.next_deadline(),
        )
        return min((at for at in deadlines if at is not None), default=None)

    def handle_timeout(self, now: float) -> list[Silent]:
        """Move the probes on; return who answered nothing."""
        silent = []
        due = self._timers.take_due(now)
        is_late = any(kind == _HELP for kind, _ in due)  # if the period is over as well
        for kind, seq in due:
            if kind == _NACK:
                self._say_nack(seq)
            elif kind == _HELP:
                self._ask_others(now, self._probes[seq])
            elif kind == _END:
                silent += self._finish(seq)
            elif is_late and not self._has_turns:
                # Those just asked get their time all the same.
                self._timers.set(_PERIOD, now + self._period_s - self._timeout_s)
            else:
                silent += self._next_period(now)
        if not self._is_over:
            for member in self._turns.take_due(now, is_healthy=self._awareness.score == 0):
                self._begin(now, member)
        return silent

    def ping_once(self, member: Member, *also: object) -> None:
        """Ping a member beside the periods, with messages for it; nothing follows from silence."""
        ping = self._ping(self._next_seq(), member.node_id)
        self._outbox.send(member.address, ping, *also, about=member.node_id)

    def on_ping(self, source: Address, message: Ping, *also: object) -> None:
        """Answer a ping for this node, with messages for the asker."""
        if message.target == low32(self._identity.node_id):
            self._outbox.send(source, self.ack(message.seq), *also)
        else:
            self.misdirected += 1

    def ack(self, seq: int) -> Ack:
        """Return this node's own ack."""
        return Ack(seq, NodeId(0), low32(self._identity.card.boot), self._identity.vitals)

    def on_ping_req(self, now: float, source: Address, message: PingReq) -> None:
        """Ping the target for the asker, and tell the asker in time if there is no answer."""
        seq = self._next_seq()
        if len(self._relayed) >= RELAYS_MAX:
            oldest = next(iter(self._relayed))
            del self._relayed[oldest]
            self._timers.cancel((_NACK, oldest))
            self.dropped_relays += 1
        self._relayed[seq] = _Relay(source, message.seq, message.target)
        if self._config.lifeguard.has_nacks:
            self._timers.set((_NACK, seq), now + NACK_SHARE * self._indirect_s)
        self._outbox.send(message.address, self._ping(seq, message.target))

    def on_nack(self, sender: NodeId, message: Nack) -> None:
        """Take a relay's word that it had no answer either."""
        probe = self._probes.get(message.seq)
        if probe is not None and sender in probe.relays:
            probe.answered[sender] = None

    def on_ack(self, now: float, sender: NodeId, message: Ack) -> None:
        """Take an ack: of the probe under way, or one to pass on."""
        subject = message.subject or sender
        member = self._table.get(subject)
        if member is not None and low32(member.boot) == message.boot:
            member.vitals, member.vitals_at = message.vitals, now
            member.heard_at = now  # over TCP, or through others, too
            self.heard.append(subject)
        glance = self.glanced.pop(message.seq, None)
        if member is not None and glance is not None and glance[0] == sender == subject:
            self._measure_glance(now, member, glance[1])
        probe = self._probes.get(message.seq)
        if probe is not None and subject == probe.node_id:
            if sender == subject and member is not None and not probe.is_indirect:
                self._measure(member, max(0.0, now - probe.sent_at))
            self._drop(probe.seq)
            self._awareness.note(-1)
            return
        relay = self._relayed.get(message.seq)
        if relay is not None and relay.target == subject:
            del self._relayed[message.seq]
            self._timers.cancel((_NACK, message.seq))
            passed_on = Ack(relay.seq, subject, message.boot, message.vitals)
            self._outbox.send(relay.requester, passed_on)

    def _measure_glance(self, now: float, member: Member, asked_at: float) -> None:
        """Take the first round trip to a member that nobody here pings, perhaps ever; pings say it better."""
        if member.round_trip is None:
            self._measure(member, max(0.0, now - asked_at))

    def _measure(self, member: Member, rtt_s: float) -> None:
        member.measure(rtt_s)
        if self._typical is None:
            self._typical = RoundTrip.first(rtt_s)
        else:
            self._typical.measure(rtt_s)

    def accusation_of(self, member: Member) -> tuple[Suspect, ...]:
        """Return what a suspect must hear first, so that it can refute at once."""
        if member.state is not State.SUSPECT or not self._config.lifeguard.tells_suspect:
            return ()
        me = self._identity.node_id
        return (Suspect(member.node_id, member.boot, member.incarnation, me),)

    @property
    def _period_s(self) -> float:
        return self._config.probe_interval_s * self._awareness.scale

    @property
    def _timeout_s(self) -> float:
        return self._config.probe_timeout_s * self._awareness.scale

    @property
    def _has_turns(self) -> bool:
        """Whether a probe ends when its time is up; without turns, with its period."""
        return self._config.lifeguard.has_turns

    @property
    def _indirect_s(self) -> float:
        """How long an answer through others may take, for a healthy asker; relays say nack a little before."""
        return self._config.probe_timeout_s * (INDIRECT_SHARE if self._has_turns else 1.0)

    def _patience_s(self, member: Member) -> float:
        """Return how long a direct ping may take."""
        longest_s = self._config.probe_timeout_s
        measured = member.round_trip or self._typical
        if measured is None or not self._has_turns:
            return self._timeout_s
        patience_s = max(PATIENCE_SHARE_MIN * longest_s, measured.patience_s)
        return min(longest_s, patience_s) * self._awareness.scale

    def _ping(self, seq: int, target: NodeId) -> Ping:
        return Ping(seq, low32(target), self._table.view_digest)

    def _next_seq(self) -> int:
        self._seq = (self._seq + 1) & 0xFFFF_FFFF
        return self._seq

    def _next_period(self, now: float) -> list[Silent]:
        silent = []
        if not self._has_turns:
            for seq in list(self._probes):
                silent += self._finish(seq)
        self._timers.set(_PERIOD, now + self._period_s)
        member = self._turns.next()
        if member is not None:
            self._begin(now, member)
        return silent

    def _begin(self, now: float, member: Member) -> None:
        is_under_way = any(probe.node_id == member.node_id for probe in self._probes.values())
        if is_under_way or len(self._probes) >= PROBES_MAX:
            return
        patience_s = self._patience_s(member)
        seq, to = self._next_seq(), member.address
        self._probes[seq] = Probe(seq, member.node_id, member.boot, to, now, patience_s)
        self._timers.set((_HELP, seq), now + patience_s)
        also = self.accusation_of(member)
        ping = self._ping(seq, member.node_id)
        self._outbox.send(to, ping, *also, about=member.node_id if also else None)

    def _drop(self, seq: int) -> None:
        del self._probes[seq]
        self._timers.cancel((_HELP, seq))
        self._timers.cancel((_END, seq))

    def _drop_probes(self) -> None:
        for seq in list(self._probes):
            self._drop(seq)

    def _ask_others(self, now: float, probe: Probe) -> None:
        scale = self._awareness.scale
        rest_s = self._indirect_s * scale if self._has_turns else self._period_s - self._timeout_s
        if self._has_turns:
            self._timers.set((_END, probe.seq), now + rest_s)
        member = self._table.get(probe.node_id)
        if member is None or not member.is_living:
            return
        helpers = self._helpers(probe)
        for helper in helpers:
            request = PingReq(probe.seq, probe.node_id, member.address)
            self._outbox.send(helper.address, request)
        ping = self._ping(probe.seq, probe.node_id)
        self._outbox.ask(member.address, ping, ("fallback", probe.seq), rest_s)
        probe.is_indirect = True
        probe.relays = {helper.node_id: helper.name for helper in helpers}

    def _helpers(self, probe: Probe) -> list[Member]:
        """Return whom to ask. A suspect is the last choice: its silence would say nothing of this node."""
        count = self._config.indirect_probes
        drawn = self._table.choose(self._rng, HELPERS_DRAWN * count, but=probe.node_id)
        return sorted(drawn, key=lambda member: member.state)[:count]

    def _say_nack(self, seq: int) -> None:
        relay = self._relayed.get(seq)
        if relay is not None:  # it stays: an ack that comes after all is still passed on
            self._outbox.send(relay.requester, Nack(relay.seq))

    def _finish(self, seq: int) -> list[Silent]:
        probe = self._probes[seq]
        self._drop(seq)
        member = self._table.get(probe.node_id)
        if member is None or not member.is_living or member.boot != probe.boot:
            return []
        if member.address != probe.to:
            return []  # it has moved meanwhile, and was asked where it no longer is
        missed = len(probe.relays) - len(probe.answered) if self._config.lifeguard.has_nacks else 1
        self._awareness.note(missed if probe.relays else 1)
        evidence = [clue(Kind.NO_ACK, probe.patience_s)]
        if probe.is_indirect:
            evidence += [_unrelayed(probe), clue(Kind.NO_TCP)]
        return [Silent(member, tuple(evidence))]


def _unrelayed(probe: Probe) -> Clue:
    if not probe.relays:
        # Of no kind: that nobody was asked is no evidence.
        return Clue("no answer through nobody, there is no other")
    return clue(Kind.NO_INDIRECT_ACK, ", ".join(probe.relays.values()))
