"""What a host has to say of a member whose process is gone: its lifeline ended, its port refuses.

    a lifeline ends ──► ask the member, over TCP
                          it answers        ► nothing has happened; it opens another
                          it is refused     ► a witness: closed and refused, told to all
                          nothing comes     ► a suspicion like any other
    another's witness ─► an observer that has not asked yet asks at once
    two vantage points are refused, and a lifeline has ended ──► dead (crashed)

A paused process keeps its lifelines, and its kernel takes connections: nobody says a word against it. A
host that is lost says nothing at all, and is found by its silence. A firewall that resets and rejects
looks exactly like a crash, so a crash is a hint and proves nothing: no more than silence does.

Source: our own.
"""

from __future__ import annotations

import errno
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from mesh.core.address import Address
from mesh.core.effects import HangUp, KeepOpen
from mesh.core.events import EvidenceKind as Kind
from mesh.core.ids import NodeId, low32
from mesh.errors import TransportError
from mesh.membership.clues import as_seen_by, clue, seen_clues
from mesh.membership.gossip import Gossip
from mesh.membership.identity import Identity
from mesh.membership.member import Member
from mesh.membership.observers import observers_of
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.membership.rumours import Rumours
from mesh.membership.table import MemberTable
from mesh.wire.packet import Packet
from mesh.wire.records import Cause
from mesh.wire.swim_messages import Ack, Lifeline, LifelineKept, Ping, Seen, Suspect

HELD_MAX: Final = 1_024
"""Lifelines of others that a node keeps; more are not let in. With K each, K is what to expect."""

ASKED_MAX: Final = 3
"""So often a member is asked whose stream broke in place of a refusal: an old connection may have died with it."""

NOTHING: Final = Seen(0)
VANTAGE_POINTS: Final = 2
TOLD_MAX: Final = 64
"""A witness tells so many members itself; they tell the rest."""

TAG: Final = "look"
"""Begins the tags of this machine's exchanges."""


@dataclass(slots=True)
class _Case:
    """What is known of one session that may have crashed. `seen` is this node's own, `witnesses` the others'."""

    boot: int
    seen: Seen = NOTHING
    asked: int = 0
    is_asking: bool = False
    witnesses: dict[NodeId, Seen] = field(default_factory=dict)


class Evidence:
    """Keeps the lifelines of others, and draws the verdict that a crash allows."""

    def __init__(
        self,
        *,
        config: SwimConfig,
        identity: Identity,
        table: MemberTable,
        outbox: Outbox,
        rumours: Rumours,
        gossip: Gossip,
    ) -> None:
        self._config = config
        self._identity = identity
        self._table = table
        self._outbox = outbox
        self._rumours = rumours
        self._gossip = gossip
        self._held: dict[Address, tuple[NodeId, int]] = {}
        self._cases: dict[NodeId, _Case] = {}
        self._seen_view = 0

    @property
    def held(self) -> int:
        """How many lifelines of others are kept here."""
        return len(self._held)

    def on_lifeline(
        self, sender: NodeId, source: Address, message: Lifeline
    ) -> LifelineKept | None:
        """Keep the lifeline of a living member; None: it is not let in, and tries again."""
        member = self._table.get(sender)
        if member is None or not member.is_living or member.boot != message.boot:
            return None
        if self._config.lifeguard.lifelines <= 0 or len(self._held) >= HELD_MAX:
            return None
        self._held[source] = (sender, message.boot)
        self._outbox.do(KeepOpen(source))
        return LifelineKept()

    def on_hang_up(self, source: Address) -> None:
        """Take the end of a lifeline: ask the member what that means."""
        node_id, boot = self._held.pop(source, (None, 0))
        member = None if node_id is None else self._living(node_id, boot)
        if member is None or any(held == (node_id, boot) for held in self._held.values()):
            return  # it is gone already, runs in another session, or has opened another lifeline
        case = self._case(member)
        case.seen |= Seen.CLOSED
        self._ask(member, case)

    def on_suspect(self, now: float, message: Suspect) -> None:
        """Take what another observer has seen, and look as well if this node is an observer too."""
        member = self._living(message.node_id, message.boot)
        if not message.seen or member is None or member.node_id == self._identity.node_id:
            return
        case = self._case(member)
        if message.accuser != self._identity.node_id:
            case.witnesses[message.accuser] = Seen(message.seen)
        if not case.asked and self._is_observer(member):
            self._ask(member, case)
        self._conclude(now, member, case)

    def handle_reply(
        self, now: float, tag: tuple[Hashable, ...], reply: Packet | Exception
    ) -> None:
        """Take the answer of a member that was asked, or the lack of one."""
        _, node_id, boot = tag
        assert isinstance(node_id, int)
        assert isinstance(boot, int)
        member = self._living(NodeId(node_id), boot)
        case = self._cases.get(NodeId(node_id))
        if member is None or case is None or case.boot != boot:
            return
        case.is_asking = False
        if isinstance(reply, Packet):
            ack = reply.messages[0]
            if isinstance(ack, Ack) and ack.boot == low32(boot) and reply.sender == node_id:
                del self._cases[member.node_id]  # it lives, and opens another lifeline
            return
        number = reply.errno if isinstance(reply, TransportError) else None
        if number == errno.ECONNREFUSED:
            case.seen |= Seen.REFUSED
            self._testify(now, member, case)
        elif number is None:
            return  # it was not asked, or something else answered: that says nothing of its process
        elif number != errno.ETIMEDOUT and case.asked < ASKED_MAX:
            self._ask(member, case)  # a stream that broke says less than a new one that is refused
        elif Seen.CLOSED in case.seen:
            evidence = (clue(Kind.LIFELINE_CLOSED), clue(Kind.NO_TCP))
            self._rumours.suspect(now, member, evidence)

    def follow(self) -> None:
        """Hang up on whoever is gone, and forget its case; call when the members may have changed."""
        view = self._table.view_hash
        if view == self._seen_view:
            return
        self._seen_view = view
        for source, (node_id, boot) in list(self._held.items()):
            if self._living(node_id, boot) is None:
                del self._held[source]
                self._outbox.do(HangUp(source))
        for node_id, case in list(self._cases.items()):
            if self._living(node_id, case.boot) is None:
                del self._cases[node_id]

    # Inside.

    def _living(self, node_id: NodeId, boot: int) -> Member | None:
        member = self._table.get(node_id)
        is_it = member is not None and member.is_living and member.boot == boot
        return member if is_it else None

    def _case(self, member: Member) -> _Case:
        case = self._cases.get(member.node_id)
        if case is None or case.boot != member.boot:
            case = self._cases[member.node_id] = _Case(member.boot)
        return case

    def _is_observer(self, member: Member) -> bool:
        own = self._identity.node_id
        others = [own, *self._table.living]
        return own in observers_of(member.node_id, others, self._config.lifeguard.lifelines)

    def _ask(self, member: Member, case: _Case) -> None:
        if case.is_asking or case.asked >= ASKED_MAX:
            return
        case.asked += 1
        case.is_asking = True
        ping = Ping(0, low32(member.node_id), 0)
        tag = (TAG, member.node_id, member.boot)
        self._outbox.ask(member.address, ping, tag, self._config.probe_timeout_s)

    def _testify(self, now: float, member: Member, case: _Case) -> None:
        """Tell everybody what this node has seen."""
        me = self._identity.node_id
        message = Suspect(member.node_id, member.boot, member.incarnation, me, int(case.seen))
        self._rumours.suspect(now, member, seen_clues(case.seen), seen=int(case.seen))
        self._gossip.tell_all(message, member.node_id, TOLD_MAX)
        self._conclude(now, member, case)

    def _conclude(self, now: float, member: Member, case: _Case) -> None:
        """Declare a crash if the evidence is there."""
        seen = dict(case.witnesses)
        if case.seen:
            seen[self._identity.node_id] = case.seen
        refused = [node_id for node_id, what in seen.items() if Seen.REFUSED in what]
        is_closed = any(Seen.CLOSED in what for what in seen.values())
        if not is_closed or len(refused) < min(VANTAGE_POINTS, len(self._table.living)):
            return
        evidence = tuple(
            as_seen_by(self._rumours.name_of(node_id), what) for node_id, what in seen.items()
        )
        del self._cases[member.node_id]
        self._rumours.declare(now, member, Cause.CRASHED, evidence)
