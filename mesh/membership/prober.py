"""One probe per protocol period: a ping, then pings through others and over TCP, then a verdict.

    period k                                                    period k + 1
    |-- ping ---------- probe_timeout_s --|-- ping_req x k -- + TCP --|-- suspect the silent, ping the next
                     any ack, on any way, ends the probe

This machine only finds out who does not answer; what follows from that is not decided here.

Period and timeout are stretched by the node's own health score.

Source: [SWIM §3.1] ping and ping-req; nacks and the score [Lifeguard §IV.A], the suspect told first
[Lifeguard §IV.C]. Deviation: the fallback over TCP (for networks that lose UDP
only) follows [memberlist]; helpers are sought among those who are no suspects first.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from mesh.core.address import Address
from mesh.core.ids import NodeId, low32
from mesh.core.timers import Timers
from mesh.membership.awareness import Awareness
from mesh.membership.identity import Identity
from mesh.membership.member import Member
from mesh.membership.outbox import Outbox
from mesh.membership.probe_order import ProbeOrder
from mesh.membership.profile import SwimConfig
from mesh.membership.table import MemberTable
from mesh.wire.records import State
from mesh.wire.swim_messages import Ack, Nack, Ping, PingReq, Suspect

RELAYS_MAX: Final = 1024
NACK_SHARE: Final = 0.8
"""A relay says nack after this share of the direct timeout, so that it arrives before the verdict."""

HELPERS_DRAWN: Final = 3
"""For each helper that is wanted, so many members are looked at, until one is found that is no suspect."""

_PERIOD: Final = "period"
_TIMEOUT: Final = "timeout"


@dataclass(slots=True)
class Probe:
    """The probe under way. `relays` are those asked to help, by id; `answered` those that said nack."""

    seq: int
    node_id: NodeId
    boot: int
    sent_at: float
    relays: dict[NodeId, str] = field(default_factory=dict)
    answered: dict[NodeId, None] = field(default_factory=dict)
    is_indirect: bool = False


@dataclass(frozen=True, slots=True)
class Silent:
    """A probe that nobody answered."""

    member: Member
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Relay:
    """A ping sent for somebody else."""

    requester: Address
    seq: int
    target: NodeId


class Prober:
    """Probes members one after another, answers pings, and relays for others."""

    def __init__(
        self,
        *,
        config: SwimConfig,
        identity: Identity,
        table: MemberTable,
        outbox: Outbox,
        order: ProbeOrder,
        awareness: Awareness,
        rng: random.Random,
    ) -> None:
        self._config = config
        self._identity = identity
        self._table = table
        self._outbox = outbox
        self._order = order
        self._awareness = awareness
        self._rng = rng
        self._seq = rng.getrandbits(32)
        self._timers: Timers[str | int] = Timers()  # a number: a relayed seq, due for its nack
        self._probe: Probe | None = None
        self._relayed: dict[int, _Relay] = {}  # by our own seq, oldest first
        self.heard: list[NodeId] = []
        """Members whose vitals came in since the node last took them."""

        self.misdirected = 0
        self.dropped_relays = 0
        """Pings for others that were forgotten before their answer, because there were too many."""

    def start(self, now: float) -> None:
        """Begin the protocol periods, at a random phase."""
        if _PERIOD not in self._timers:
            self._timers.set(_PERIOD, now + self._rng.random() * self._period_s)

    def stop(self) -> None:
        """Probe no more; pings are still answered."""
        self._timers.cancel(_PERIOD)
        self._timers.cancel(_TIMEOUT)
        self._probe = None

    def void(self, now: float) -> None:
        """Forget the probe under way: this node was away and may have missed the answer."""
        if self._probe is not None:
            self._probe = None
            self._timers.cancel(_TIMEOUT)
            self._timers.set(_PERIOD, now + self._rng.random() * self._config.probe_timeout_s)

    def next_deadline(self) -> float | None:
        """Return when this machine wants to be called next."""
        return self._timers.next_deadline()

    def handle_timeout(self, now: float) -> Silent | None:
        """Move the probe on; return who answered nothing in the period that ended."""
        silent = None
        due = self._timers.take_due(now)
        for key in due:
            if isinstance(key, int):
                self._say_nack(key)
            elif key == _PERIOD and self._probe is not None and _TIMEOUT in due:
                # Called late, for both at once: those just asked get their time all the same.
                self._timers.set(_PERIOD, now + self._period_s - self._timeout_s)
            elif key == _PERIOD:
                silent = self._finish()
                self._timers.set(_PERIOD, now + self._period_s)
                self._begin(now)
            elif self._probe is not None:
                self._ask_others(self._probe)
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
            self._timers.cancel(oldest)
            self.dropped_relays += 1
        self._relayed[seq] = _Relay(source, message.seq, message.target)
        if self._config.lifeguard.has_nacks:
            self._timers.set(seq, now + NACK_SHARE * self._config.probe_timeout_s)
        self._outbox.send(message.address, self._ping(seq, message.target))

    def on_nack(self, sender: NodeId, message: Nack) -> None:
        """Take a relay's word that it had no answer either."""
        probe = self._probe
        if probe is not None and message.seq == probe.seq and sender in probe.relays:
            probe.answered[sender] = None

    def on_ack(self, now: float, sender: NodeId, message: Ack) -> None:
        """Take an ack: of the probe under way, or one to pass on."""
        subject = message.subject or sender
        member = self._table.get(subject)
        if member is not None and low32(member.boot) == message.boot:
            member.vitals = message.vitals
            self.heard.append(subject)
        probe = self._probe
        if probe is not None and message.seq == probe.seq and subject == probe.node_id:
            if sender == subject and member is not None and not probe.is_indirect:
                member.measure(max(0.0, now - probe.sent_at))
            self._probe = None
            self._timers.cancel(_TIMEOUT)
            self._awareness.note(-1)
            return
        relay = self._relayed.get(message.seq)
        if relay is not None and relay.target == subject:
            del self._relayed[message.seq]
            self._timers.cancel(message.seq)
            passed_on = Ack(relay.seq, subject, message.boot, message.vitals)
            self._outbox.send(relay.requester, passed_on)

    @property
    def _period_s(self) -> float:
        return self._config.probe_interval_s * self._awareness.scale

    @property
    def _timeout_s(self) -> float:
        return self._config.probe_timeout_s * self._awareness.scale

    def _ping(self, seq: int, target: NodeId) -> Ping:
        return Ping(seq, low32(target), self._table.view_digest)

    def _next_seq(self) -> int:
        self._seq = (self._seq + 1) & 0xFFFF_FFFF
        return self._seq

    def _begin(self, now: float) -> None:
        member = self._order.next(self._table)
        if member is None:
            return
        self._probe = Probe(self._next_seq(), member.node_id, member.boot, now)
        self._timers.set(_TIMEOUT, now + self._timeout_s)
        also = self._accusation_of(member)
        ping = self._ping(self._probe.seq, member.node_id)
        self._outbox.send(member.address, ping, *also, about=member.node_id if also else None)

    def _accusation_of(self, member: Member) -> tuple[Suspect, ...]:
        """Return what a suspect must hear first, so that it can refute at once."""
        if member.state is not State.SUSPECT or not self._config.lifeguard.tells_suspect:
            return ()
        me = self._identity.node_id
        return (Suspect(member.node_id, member.boot, member.incarnation, me),)

    def _ask_others(self, probe: Probe) -> None:
        member = self._table.get(probe.node_id)
        if member is None or not member.is_living:
            return
        helpers = self._helpers(probe)
        for helper in helpers:
            request = PingReq(probe.seq, probe.node_id, member.address)
            self._outbox.send(helper.address, request)
        ping = self._ping(probe.seq, probe.node_id)
        rest_s = self._period_s - self._timeout_s
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

    def _finish(self) -> Silent | None:
        probe, self._probe = self._probe, None
        self._timers.cancel(_TIMEOUT)
        if probe is None:
            return None
        member = self._table.get(probe.node_id)
        if member is None or not member.is_living or member.boot != probe.boot:
            return None
        missed = len(probe.relays) - len(probe.answered) if self._config.lifeguard.has_nacks else 1
        self._awareness.note(missed if probe.relays else 1)
        evidence = [f"no answer to a ping within {self._timeout_s:g} s"]
        if probe.is_indirect:
            through = ", ".join(probe.relays.values()) or "nobody, there is no other"
            evidence += [f"no answer through {through}", "no answer over TCP"]
        return Silent(member, tuple(evidence))
