"""Membership as one machine: dispatch and timers, nothing else.

Inputs are packets, requests, replies and the clock; outputs are collected in the outbox. Whatever comes in, first
the clock is compared with the deadline that was to be met: see `vigil`.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any, Final

from mesh.core.address import Address
from mesh.core.effects import Stop
from mesh.core.ids import NO_MESH, NO_NODE, MeshId, NodeId, low32
from mesh.core.known import KnownMember
from mesh.core.requests import Outgoing
from mesh.errors import LocalProtocolError
from mesh.membership.detector import Detector
from mesh.membership.dissemination import Dissemination
from mesh.membership.echo import TAG as ECHO
from mesh.membership.entrance import Entrance
from mesh.membership.evidence import TAG as LOOK
from mesh.membership.forgetting import Forgetting
from mesh.membership.gossip import Gossip
from mesh.membership.identity import Identity
from mesh.membership.lines import Lines
from mesh.membership.member import Change
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.membership.reconnect import Reconnect
from mesh.membership.rumours import Rumours
from mesh.membership.sync import Sync
from mesh.membership.table import MemberTable
from mesh.membership.testimony import is_obituary
from mesh.membership.vigil import Vigil
from mesh.membership.wishes import Wishes
from mesh.wire.packet import Packet
from mesh.wire.records import State
from mesh.wire.swim_messages import (
    Ack,
    Alive,
    Dead,
    Forget,
    Glance,
    Join,
    Left,
    Lifeline,
    Nack,
    Ping,
    PingReq,
    Reached,
    Suspect,
    SyncOffer,
    SyncRoot,
)

TOLD_DIRECTLY_MAX: Final = 64
"""A node that enters or leaves tells this many members itself, since random gossip may pass one by; it tells the rest."""


class Swim:
    """The membership of one node."""

    DATAGRAMS: Final = frozenset(
        {Ping, PingReq, Ack, Nack, Alive, Suspect, Dead, Left, Forget, Glance}
    )
    REQUESTS: Final = frozenset({Join, Ping, Lifeline, Reached, SyncRoot, SyncOffer})

    def __init__(
        self,
        *,
        config: SwimConfig,
        identity: Identity,
        rng: random.Random,
        seeds: tuple[str, ...] = (),
        expect: int = 0,
        is_name_given: bool = True,
        remembered: tuple[KnownMember, ...] = (),
    ) -> None:
        config.check()
        self._config = config
        self.identity = identity
        self._leave_at: float | None = None
        self._leave_reason = ""
        self._due: float | None = None
        self.table = table = MemberTable(identity.node_id)
        self._news = news = Dissemination(config.retransmit_multiplier)
        self._outbox = outbox = Outbox(identity, table, news)
        self._detector = detector = Detector.build(
            config=config, identity=identity, table=table, outbox=outbox, rng=rng
        )
        self.awareness, self.observers = detector.awareness, detector.observers
        self._turns, self._prober, self.glances = detector.turns, detector.prober, detector.glances
        self.rumours = Rumours(
            config=config,
            identity=identity,
            table=table,
            news=news,
            outbox=outbox,
            turns=detector.turns,
            awareness=self.awareness,
        )
        self._build_meeting(
            rng,
            Wishes(seeds=seeds, expect=expect, is_name_given=is_name_given, remembered=remembered),
        )
        self.forgetting = Forgetting(table, self.rumours)
        self._on_datagram: dict[type, Any] = {
            Alive: self.rumours.on_alive,
            Suspect: self.lines.on_suspect,
            Dead: self.lines.on_dead,
            Left: self.rumours.on_left,
            Forget: self.rumours.on_forget,
            Ack: self._on_ack,
            Glance: self.glances.on_glance,
        }

    def _build_meeting(self, rng: random.Random, wishes: Wishes) -> None:
        """Build what brings members together, and keeps them so."""
        config, table, news, outbox = self._config, self.table, self._news, self._outbox
        self.riders = news.riders  # rumours, for what the node sends beside membership
        self._vigil = Vigil(
            config=config, table=table, rumours=self.rumours, detector=self._detector
        )
        self._gossip = Gossip(config=config, table=table, news=news, outbox=outbox, rng=rng)
        self._sync = Sync(
            config=config, table=table, rumours=self.rumours, news=news, outbox=outbox, rng=rng
        )
        self.lines = Lines(
            config=config,
            identity=self.identity,
            table=table,
            outbox=outbox,
            rumours=self.rumours,
            observers=self._detector.observers,
            rng=rng,
        )
        self._entrance = Entrance(
            config=config,
            identity=self.identity,
            table=table,
            outbox=outbox,
            rumours=self.rumours,
            rng=rng,
            wishes=wishes,
        )
        self._reconnect = Reconnect(
            config=config, table=table, rng=rng, remembered=self._entrance.remembered
        )

    @property
    def phase(self) -> str:
        """``seeking`` (belongs to no mesh yet), ``member`` or ``leaving``."""
        if self._leave_at is not None:
            return "leaving"
        return "seeking" if self._entrance.is_seeking else "member"

    @property
    def counters(self) -> dict[str, int]:
        """What was ignored, and why."""
        return {
            "ignored_misdirected": self._prober.misdirected,
            "ignored_impossible": self.rumours.refutation.impossible,
            "dropped_newcomers": self.table.turned_away,
            "dropped_rumours": self._news.dropped,
            "dropped_relays": self._prober.dropped_relays,
            "dropped_syncs": self._sync.dropped,
            "held_gossip": self._gossip.pace.held,
            "held_suspicions": self.rumours.pace.held,
            "held_hints": self.lines.evidence.hints.held,
            "held_refutations": self.rumours.refutation.pace.held,
            "voided_pauses": self._vigil.pauses,
            "doubted_verdicts": self._vigil.doubted,
        }

    def start(self, now: float, *, is_founder: bool) -> list[Outgoing]:
        """Found a mesh, rejoin the one that the data directory names, or ask the seeds."""
        self._entrance.start(now, is_founder=is_founder)
        if self.identity.mesh_id != NO_MESH:
            self._begin(now)
        return self._take(now)

    def handle_packet(self, now: float, source: Address, packet: Packet) -> list[Outgoing]:
        """Take a datagram of this mesh. Messages that membership does not know are the caller's."""
        sender = packet.sender
        if sender == self.identity.node_id or self.phase == "seeking":
            return []
        self._vigil.notice(now, self._due)
        known = self.table.get(sender)
        is_gone = known is None or not known.is_living
        if self._vigil.heard(now, known) and self._leave_at is None:
            self._sync.begin(source if known is None else known.address)
        self._turns.heard(now)
        if len(packet.messages) > 1:
            self.lines.hear(now, packet.messages)
        for message in packet.messages:
            kind = type(message)
            if kind is Ping:
                if not is_gone:
                    self._turns.heard(now, pinged_by=sender)
                self._prober.on_ping(source, message, *self._verdict_on(now, sender))
            elif kind is PingReq:
                self._prober.on_ping_req(now, source, message)
            elif kind is Nack:
                self._prober.on_nack(sender, message)
            elif kind in self._on_datagram:
                self._on_datagram[kind](now, sender, message)
            if kind is Ping and known is not None and known.is_living and not len(self._news):
                # Nothing is on its way here, so a difference is one that gossip will not mend.
                self._sync.compare(now, known, message.view)
        if is_gone and self._leave_at is None and not is_obituary(packet):
            self._sync.meet(now, sender, source)
        return self._take(now)

    def handle_request(
        self, now: float, sender: NodeId, message: object, mesh_id: MeshId = NO_MESH
    ) -> tuple[object, list[Outgoing]]:
        """Answer a request on a stream; `mesh_id` is the asker's. The reply None means: none."""
        self._vigil.notice(now, self._due)
        reply: object
        if isinstance(message, Join):
            reply = self._on_join(now, message, mesh_id)
        elif isinstance(message, Ping):
            reply = self._prober.ack(message.seq)
        elif isinstance(message, Reached):
            reply = self._entrance.dialback.on_reached(sender, message)
        elif isinstance(message, SyncRoot):
            reply = self._sync.on_root(message)
        elif isinstance(message, SyncOffer):
            reply = self._sync.on_offer(now, sender, message)
        else:
            raise LocalProtocolError(f"membership answers no {type(message).__name__}")
        return reply, self._take(now)

    def handle_reply(self, now: float, tag: Hashable, reply: Packet | Exception) -> list[Outgoing]:
        """Take the reply of an exchange that this machine started, or the error instead of one."""
        assert isinstance(tag, tuple)
        self._vigil.notice(now, self._due)
        sender = NodeId(0) if isinstance(reply, Exception) else reply.sender
        message = reply if isinstance(reply, Exception) else reply.messages[0]
        if tag[0] == "sync":
            silent = self._sync.handle_reply(now, sender, tag, message)
            if silent != NO_NODE:
                self._turns.look(now, silent)
        elif tag[0] == "fallback":
            if isinstance(message, Ack):
                self._prober.on_ack(now, sender, message)
        elif tag[0] == ECHO:
            self._vigil.handle_echo(now, reply)
        elif tag[0] == LOOK:
            self.lines.evidence.handle_reply(now, tag, reply)
        elif self._entrance.handle_reply(now, sender, tag, reply):
            self._begin(now)
            greeting = Alive(self.identity.card_bytes)
            self._gossip.tell_all(greeting, self.identity.node_id, TOLD_DIRECTLY_MAX)
        else:
            self._try_founding(now)
        self._follow_card(now)
        return self._take(now)

    def handle_resolved(
        self, now: float, seed: str, addresses: tuple[Address, ...]
    ) -> list[Outgoing]:
        """Take the addresses of a seed."""
        self._vigil.notice(now, self._due)
        for address in self._entrance.handle_resolved(now, seed, addresses):
            self._sync.begin(address)
        return self._take(now)

    def leave(self, now: float, reason: str) -> list[Outgoing]:
        """Tell everybody that this node leaves, and stop after a moment."""
        if self._leave_at is not None:
            return []
        self._entrance.stop(now)
        self._prober.stop()
        self._sync.stop()
        self._reconnect.stop()
        self.lines.own.stop()
        self._leave_reason = reason
        self._leave_at = now
        if self.identity.mesh_id != NO_MESH and self.table.living:
            self._leave_at = now + self._config.leave_linger_s
            farewell = self.rumours.refutation.farewell(now)
            self._gossip.tell_all(farewell, self.identity.node_id, TOLD_DIRECTLY_MAX)
        return self._take(now)

    def handle_timeout(self, now: float) -> list[Outgoing]:
        """Do what is due. Early, repeated and late calls are harmless."""
        if self._leave_at is not None and now >= self._leave_at:
            self._outbox.do(Stop(0, self._leave_reason))
            self._leave_at = float("inf")
            self._due = self._next_due()
            return self._outbox.take()
        self._vigil.notice(now, self._due)
        missing = self._entrance.handle_timeout(now)
        if missing is not None:
            self._sync.begin(missing)
        self._try_founding(now)
        self.rumours.refutation.handle_timeout(now)
        for silent in self._prober.handle_timeout(now):
            self.rumours.suspect(now, silent.member, silent.evidence)
        if self._leave_at is None:
            self._vigil.judge(now)
        self._sync.handle_timeout(now)
        self.lines.handle_timeout(now)
        dead, forgotten = self._reconnect.handle_timeout(now)
        if isinstance(dead, KnownMember):
            self._outbox.send(dead.address, Ping(0, low32(dead.node_id), 0))
        elif dead is not None:
            self._prober.ping_once(dead, dead.verdict(dead.cause, self.identity.node_id))
        for node_id in forgotten:
            self.table.remove(node_id)
        self._gossip.handle_timeout(now)
        return self._take(now)

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` is wanted next; None: not before another input."""
        return self._due

    def take_changes(self) -> tuple[list[Change], list[NodeId]]:
        """Return and forget what changed of other members, in order, and whose vitals came in."""
        changes, self.rumours.changes = self.rumours.changes, []
        heard, self._prober.heard = self._prober.heard, []
        return changes, heard

    def check_invariants(self) -> None:
        """Raise AssertionError if the parts contradict each other."""
        self.table.check_invariants()
        assert self._due == self._next_due(), "the next deadline is that of its parts"
        own = self.table.get(self.identity.node_id)
        assert own is None or own.card_bytes == self.identity.card_bytes
        assert own is None or own.state in {State.ALIVE, State.LEFT}
        for member in self.table:
            is_open = self.rumours.suspicions.get(member.node_id) is not None
            assert is_open == (member.state is State.SUSPECT), "each suspect has a suspicion"

    def _next_due(self) -> float | None:
        deadlines = (
            self._leave_at,
            self._entrance.next_deadline(),
            self._prober.next_deadline(),
            None if self._leave_at is not None else self.rumours.suspicions.next_deadline(),
            self._sync.next_deadline(),
            self.lines.next_deadline(),
            self._reconnect.next_deadline(),
            self._gossip.next_deadline(),
            self.rumours.refutation.next_deadline(),
        )
        return min((at for at in deadlines if at is not None), default=None)

    def _on_join(self, now: float, message: Join, mesh_id: MeshId) -> object:
        if self._leave_at is not None:
            return None  # who leaves lets nobody in
        reply = self._entrance.on_join(now, message, mesh_id)
        if self.phase == "seeking":
            self._try_founding(now)
            if self.phase == "member":  # that made enough: the asker is its first member
                reply = self._entrance.on_join(now, message, mesh_id)
        return reply

    def _on_ack(self, now: float, sender: NodeId, message: Ack) -> None:
        self._entrance.dialback.on_ack(sender, message)
        self._prober.on_ack(now, sender, message)

    def _follow_card(self, now: float) -> None:
        """Tell the others of a name or boot that changed at the door, if they know this node already."""
        own = self.table.get(self.identity.node_id)
        if own is not None and own.card_bytes != self.identity.card_bytes:
            self.rumours.announce(now)

    def _begin(self, now: float) -> None:
        """This node is a member now: announce it, and start to probe and to compare."""
        self.rumours.announce(now)
        self._prober.start(now)
        self._sync.start(now)
        self._entrance.begin(now)

    def _try_founding(self, now: float) -> None:
        if self._entrance.try_founding(now):
            self._begin(now)

    def _verdict_on(self, now: float, sender: NodeId) -> tuple[object, ...]:
        """Return what to tell a member that is suspected or held dead here but speaks: that, to refute."""
        member = self.table.get(sender)
        if member is not None and member.state is State.FORGOTTEN:
            return (member.tombstone(now),)
        if member is None or member.state is not State.DEAD:
            return () if member is None else self._prober.accusation_of(member)
        return (member.verdict(member.cause, self.identity.node_id),)

    def _take(self, now: float) -> list[Outgoing]:
        if self._leave_at is None:
            self._reconnect.arm(now)
            self._entrance.note(now, self.rumours.changes)
            if not self._entrance.is_seeking:
                self.lines.follow(now)
        self._gossip.hurry(now)
        self._due = self._next_due()
        return self._outbox.take()
