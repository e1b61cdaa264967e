"""What a host has to say of a member whose process is gone: its lifeline ended, its port refuses.

    a lifeline ends ──► ping the member, and ask it over TCP
                          it answers        ► nothing has happened; it opens another
                          either is refused ► a witness: closed and refused
                          nothing comes     ► a suspicion like any other
    a datagram is refused, and nothing else is known ──► ask over TCP, and try the lifeline kept for it
                          it answers        ► nothing has happened
                          it is refused too ► a witness: refused
    another's witness ─► an observer that has not asked yet looks at once; the first two in rank suffice (they
                         tell each other first, testimony.py), the rest keep what they have seen to themselves
    two vantage points are refused, and a lifeline has ended ──► dead (crashed)
                          who still keeps a lifeline of that member believes it only if refused itself

A paused process keeps its lifelines, and its kernel takes connections: nobody says a word against it. A
host that is lost says nothing at all, and is found by its silence. A firewall that resets and rejects
looks exactly like a crash, so a crash is a hint and proves nothing: no more than silence does.

A network that rejects between some and not between others makes some hold a member for crashed that others
hear. It refutes; and a session that came back so is left to silence for a while, which asks others for help.

A refused datagram is the word of whoever stands between, and may be forged: by itself it costs a question
and an empty frame, at a bounded pace, and makes nobody a suspect.

Source: our own.
"""

from __future__ import annotations

import errno
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from mesh.core.address import Address
from mesh.core.effects import HangUp, KeepOpen, TryLine
from mesh.core.events import EvidenceKind as Kind
from mesh.core.ids import NodeId, low32
from mesh.core.pace import Pace
from mesh.core.timers import Timers
from mesh.errors import TransportError
from mesh.membership.address_index import AddressIndex
from mesh.membership.case import NOTHING, Case
from mesh.membership.clues import as_seen_by, clue, seen_clues
from mesh.membership.identity import Identity
from mesh.membership.member import Member
from mesh.membership.observers import rank_of
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.membership.rumours import Rumours
from mesh.membership.table import MemberTable
from mesh.membership.testimony import Testimony
from mesh.wire.packet import Packet
from mesh.wire.records import Cause
from mesh.wire.swim_messages import Ack, Dead, Lifeline, LifelineKept, Ping, Seen, Suspect

HELD_MAX: Final = 1_024
"""Lifelines of others that a node keeps; more are not let in. With K each, K is what to expect."""

ASKED_MAX: Final = 3
"""So often a member is asked whose stream broke in place of a refusal: an old connection may have died with it."""

HINTS_S: Final = 10.0
HINTS_BURST: Final = 20
"""Refused datagrams are looked into at this pace; those of a member whose lifeline has ended at once."""

TRY_S: Final = 1.0
"""A lifeline is tried no sooner again."""

VANTAGE_POINTS: Final = 2
SPARE_S: Final = 0.02
"""The first two observers in rank speak at once; whoever else is a witness tells all only if no verdict fell so soon."""

AGAIN_S: Final = 60.0
"""A session that was declared crashed here, and lives, is not declared so again for so long."""

TAG: Final = "look"
"""Begins the tags of this machine's exchanges."""


@dataclass(slots=True)
class _Held:
    """A lifeline that is kept for a session."""

    node_id: NodeId
    boot: int
    tried_at: float = float("-inf")


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
        testimony: Testimony,
    ) -> None:
        self._config = config
        self._identity = identity
        self._table = table
        self._outbox = outbox
        self._rumours = rumours
        self._testimony = testimony
        self._held: dict[Address, _Held] = {}
        self._cases: dict[NodeId, Case] = {}
        self._declared: dict[tuple[NodeId, int], float] = {}  # sessions, the latest last
        self._index = AddressIndex(table)
        self._spare: Timers[NodeId] = Timers()
        self.hints = Pace(rate_s=HINTS_S, burst=HINTS_BURST)
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
        replaced = self._lines_of(member)
        if not self._config.lifeguard.has_lifelines or len(self._held) - len(replaced) >= HELD_MAX:
            return None
        for before, _ in replaced:
            # Its end may never be heard: it may lead to an address that is gone.
            del self._held[before]
            self._outbox.do(HangUp(before))
        self._held[source] = _Held(sender, message.boot)
        case = self._cases.get(sender)
        if case is not None and case.boot == message.boot:  # what was seen of it is over
            case.seen, case.told, case.asked = NOTHING, NOTHING, 0
        self._outbox.do(KeepOpen(source))
        return LifelineKept()

    def on_hang_up(self, now: float, source: Address) -> None:
        """Take the end of a lifeline: ask the member what that means."""
        held = self._held.pop(source, None)
        member = None if held is None else self._living(held.node_id, held.boot)
        if member is None:
            return  # it is gone already, runs in another session, or has opened another lifeline in place of it
        case = self._case(member)
        case.seen |= Seen.CLOSED
        if not case.seen.is_refused:
            self._look(now, member, case)
        self._weigh(now, member, case)

    def on_refused(self, now: float, address: Address) -> None:
        """Take that the host at an address refuses a datagram."""
        if not self._config.lifeguard.has_lifelines:
            return
        for member in self._index.at(address):
            known = self._cases.get(member.node_id)
            has_end = known is not None and known.boot == member.boot and known.has_end
            if not has_end and not self.hints.allows(now):
                continue
            case = self._case(member)
            if Seen.REJECTED in case.seen:
                continue
            case.seen |= Seen.REJECTED
            if not case.has_end:
                self._look(now, member, case)
            self._weigh(now, member, case)

    def on_suspect(self, now: float, *messages: Suspect) -> None:
        """Take what others have seen of one member, and look as well if this node is an observer too."""
        member = None
        for message in messages:
            member = self._take_word(message) or member
        if member is None:
            return
        case = self._case(member)
        if not case.asked and case.rank is not None:
            self._look(now, member, case)
        self._weigh(now, member, case)

    def doubts(self, now: float, message: Dead) -> bool:
        """Look before a crash is believed, if a lifeline of that session is kept here; say whether that is so."""
        member = self._living(message.node_id, message.boot)
        if member is None or message.cause is not Cause.CRASHED or not self._lines_of(member):
            return False
        if message.incarnation < member.incarnation:
            return False  # refuted since
        case = self._case(member)
        if case.seen.is_refused:
            return False
        case.told_dead_by = message.accuser
        self._look(now, member, case)
        return True

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
        case = self._case(member)
        case.is_asking = False
        if isinstance(reply, Packet):
            ack = reply.messages[0]
            if isinstance(ack, Ack) and ack.boot == low32(boot) and reply.sender == node_id:
                del self._cases[member.node_id]  # it lives, and opens another lifeline
            return
        was_put = isinstance(reply, TransportError) and not reply.is_own_shortage
        number = reply.errno if isinstance(reply, TransportError) and was_put else None
        if number == errno.ECONNREFUSED:
            case.seen |= Seen.REFUSED
            self._try_lines(now, member)
            self._weigh(now, member, case)
        elif number is not None and number != errno.ETIMEDOUT and case.asked < ASKED_MAX:
            self._ask(member, case)  # a stream that broke says less than a new one that is refused
        elif not case.has_end:
            case.seen = NOTHING  # a hint that nothing followed from
            if not case.witnesses:
                del self._cases[member.node_id]
        elif number is None:
            return  # it was not asked, or something else answered: that says nothing of its process
        elif Seen.CLOSED in case.seen:
            evidence = (clue(Kind.LIFELINE_CLOSED), clue(Kind.NO_TCP))
            self._rumours.suspect(now, member, evidence)

    def next_deadline(self) -> float | None:
        """Return when this machine wants to be called next."""
        return self._spare.next_deadline()

    def handle_timeout(self, now: float) -> None:
        """Say what this node has seen, where the word of others was not enough."""
        for node_id in self._spare.take_due(now):
            case = self._cases.get(node_id)
            member = None if case is None else self._living(node_id, case.boot)
            if case is not None and member is not None and case.is_witness:
                self._say(now, member, case)
                self._testimony.tell_all(member, {self._identity.node_id: case.seen})
                self._conclude(now, member, case)

    def follow(self, now: float) -> None:
        """Hang up on whoever is gone, and forget its case; call when the members may have changed."""
        view = self._table.view_hash
        if view == self._seen_view:
            return
        self._seen_view = view
        for session, at in list(self._declared.items()):
            if now - at < AGAIN_S:
                break
            del self._declared[session]
        for source, held in list(self._held.items()):
            if self._living(held.node_id, held.boot) is None:
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

    def _take_word(self, message: Suspect) -> Member | None:
        """Keep what another has seen of a living member; None: it says nothing, or nothing that still counts."""
        member = self._living(message.node_id, message.boot)
        if not message.seen or member is None or member.node_id == self._identity.node_id:
            return None
        if message.incarnation < member.incarnation:
            return None  # refuted since
        case = self._case(member)
        is_other = message.accuser != self._identity.node_id
        if is_other and self._table.get(message.accuser) is not None:
            before = case.witnesses.get(message.accuser, NOTHING)
            # Both count: what was told first may come last.
            case.witnesses[message.accuser] = before | Seen(message.seen)
        return member

    def _lines_of(self, member: Member) -> list[tuple[Address, _Held]]:
        whose = (member.node_id, member.boot)
        return [line for line in self._held.items() if (line[1].node_id, line[1].boot) == whose]

    def _case(self, member: Member) -> Case:
        case = self._cases.get(member.node_id)
        if case is None or case.boot != member.boot:
            rank = self._rank(member)
            case = self._cases[member.node_id] = Case(member.boot, rank, member.incarnation)
        elif case.incarnation < member.incarnation:
            case.refute(member.incarnation)
        return case

    def _rank(self, member: Member) -> int | None:
        """Return this node's rank among a member's observers; None: it is none."""
        own, count = self._identity.node_id, self._config.lifeguard.lifelines
        return rank_of(own, member.node_id, self._table.living, count)

    def _look(self, now: float, member: Member, case: Case) -> None:
        """Find out for oneself: by a ping, which is refused soonest, over TCP, and on the lifeline kept for it."""
        if not case.asked and Seen.REJECTED not in case.seen:
            self._outbox.send(member.address, Ping(0, low32(member.node_id), 0))
        self._ask(member, case)
        self._try_lines(now, member)

    def _try_lines(self, now: float, member: Member) -> None:
        for source, held in self._lines_of(member):
            if now - held.tried_at >= TRY_S:
                held.tried_at = now
                self._outbox.do(TryLine(source))

    def _ask(self, member: Member, case: Case) -> None:
        if case.is_asking or case.asked >= ASKED_MAX:
            return
        case.asked += 1
        case.is_asking = True
        ping = Ping(0, low32(member.node_id), 0)
        tag = (TAG, member.node_id, member.boot)
        self._outbox.ask(member.address, ping, tag, self._config.probe_timeout_s)

    def _weigh(self, now: float, member: Member, case: Case) -> None:
        """Say what this node has seen, if it is a witness; declare a crash, if the evidence is there."""
        if case.is_to_be_told:
            if case.is_first:
                self._say(now, member, case)
                words, count = (
                    case.all_seen(self._identity.node_id),
                    self._config.lifeguard.lifelines,
                )
                self._testimony.tell_fellows(member, words, count)
            if member.node_id not in self._spare:
                self._spare.set(member.node_id, now + SPARE_S)
        self._conclude(now, member, case)

    def _say(self, now: float, member: Member, case: Case) -> None:
        case.told = case.seen
        self._rumours.suspect(now, member, seen_clues(case.seen), seen=int(case.seen))

    def _conclude(self, now: float, member: Member, case: Case) -> None:
        seen = case.all_seen(self._identity.node_id)
        refused = sum(what.is_refused for what in seen.values())
        refused += case.told_dead_by is not None  # and whom that one heard
        if not case.has_end or refused < min(VANTAGE_POINTS, len(self._table.living)):
            return
        if not case.seen.is_refused and self._lines_of(member):
            return
        session = (member.node_id, member.boot)
        if now - self._declared.get(session, -AGAIN_S) < AGAIN_S:
            return
        self._declared.pop(session, None)
        self._declared[session] = now
        evidence = tuple(
            as_seen_by(self._rumours.name_of(node_id), what) for node_id, what in seen.items()
        )
        if case.told_dead_by is not None:
            evidence += (clue(Kind.DECLARED, self._rumours.name_of(case.told_dead_by)),)
        del self._cases[member.node_id]
        self._spare.cancel(member.node_id)
        if case.is_first and case.told.is_refused:
            self._testimony.tell_words(member, seen)
        self._rumours.declare(now, member, Cause.CRASHED, evidence)
