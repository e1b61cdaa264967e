"""News of members: applied, passed on, and, when it is about this node and wrong, refuted.

    a rumour comes in ── about this node? ── refute: a higher incarnation, told to all
                      └─ about another ──── greater than what is known? ── merge, tell, emit
                                                                        └─ drop, silently

A death learned by anti-entropy is only a suspicion here: after a partition each side has declared the
other dead, and whoever is still there must get the chance to say so. A death told as fresh news is
believed at once; whoever told it has waited for the refutation already.

Source: [SWIM §4.2]. The treatment of deaths in anti-entropy follows memberlist's push/pull.
"""

from __future__ import annotations

from dataclasses import replace

from mesh.core.effects import Emit, Persist, Stop
from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId, format_id
from mesh.errors import DecodeError
from mesh.membership.dissemination import Dissemination
from mesh.membership.identity import Identity
from mesh.membership.member import Change, Member
from mesh.membership.names import Names
from mesh.membership.observed import event_of
from mesh.membership.outbox import Outbox
from mesh.membership.probe_order import ProbeOrder
from mesh.membership.profile import SwimConfig
from mesh.membership.suspicion import Suspected, Suspicions, suspicion_timeout
from mesh.membership.table import MemberTable
from mesh.wire.packet import encode_message
from mesh.wire.records import Cause, Standing, State, decode_card
from mesh.wire.swim_messages import Alive, Dead, Left, Suspect


class Rumours:
    """Applies what is said of members. `changes` collects what changed, for the node to take."""

    def __init__(
        self,
        *,
        config: SwimConfig,
        identity: Identity,
        table: MemberTable,
        news: Dissemination,
        outbox: Outbox,
        order: ProbeOrder,
    ) -> None:
        self._config = config
        self._identity = identity
        self._table = table
        self._news = news
        self._outbox = outbox
        self._order = order
        self.suspicions = Suspicions()
        self.names = Names()
        self.changes: list[Change] = []
        self.ignored_impossible = 0

    # What others say.

    def on_alive(self, now: float, _sender: NodeId, message: Alive) -> None:
        """Apply a member's own word, whoever brought it."""
        if self._is_about_self(now, message.card):
            return
        change = self._table.apply_card(now, message.card)
        if change is not None:
            self._news.add(change.member.node_id, encode_message(message))
            self._note(now, change, ())

    def on_suspect(self, now: float, _sender: NodeId, message: Suspect) -> None:
        """Apply somebody's suspicion."""
        evidence = (f"suspected by {self._name(message.accuser)}",)
        self._on_verdict(now, message, (State.SUSPECT, Cause.NONE), message.accuser, evidence)

    def on_dead(self, now: float, _sender: NodeId, message: Dead) -> None:
        """Apply somebody's verdict of death."""
        evidence = (f"declared dead by {self._name(message.accuser)}",)
        self._on_verdict(now, message, (State.DEAD, message.cause), message.accuser, evidence)

    def on_left(self, now: float, _sender: NodeId, message: Left) -> None:
        """Apply a member's own farewell."""
        self._on_verdict(
            now, message, (State.LEFT, Cause.NONE), message.node_id, ("said so itself",)
        )

    def merge(self, now: float, sender: NodeId, members: tuple[Standing, ...]) -> None:
        """Apply what a member knows, learned by anti-entropy."""
        for standing in members:
            try:
                card = decode_card(standing.card)
            except DecodeError:
                self.ignored_impossible += 1
                continue
            if card.boot != standing.boot:
                self.ignored_impossible += 1
                continue
            known = self._table.get(card.node_id)
            if known is None and standing.state >= State.DEAD:
                continue  # a rumour adds nobody
            if known is None or standing.state < State.DEAD or standing.boot <= known.boot:
                self.on_alive(now, sender, Alive(standing.card))
                self._merge_verdict(now, sender, card.node_id, standing)
            elif card.node_id == self._identity.node_id:
                self._outrank(now, standing.boot)
            else:
                self._merge_ended(now, sender, known, standing)

    def welcome(self, now: float, members: tuple[Standing, ...]) -> None:
        """Take over the whole table of the member that let this node in, the dead included."""
        for standing in members:
            try:
                card = decode_card(standing.card)
            except DecodeError:
                self.ignored_impossible += 1
                continue
            if card.node_id == self._identity.node_id or card.boot != standing.boot:
                continue
            change = self._apply_both(now, card.node_id, standing)
            if change is None:
                continue
            if change.before is None:
                change.member.since = now - standing.age_s
            self._note(now, change, ())

    # What this node says.

    def suspect(self, now: float, member: Member, evidence: tuple[str, ...]) -> None:
        """Suspect a member that answered no probe."""
        me = self._identity.node_id
        message = Suspect(member.node_id, member.boot, member.incarnation, me)
        self._on_verdict(now, message, (State.SUSPECT, Cause.NONE), me, evidence)

    def bury(self, now: float, suspected: Suspected) -> None:
        """Declare dead a suspect whose time has run out."""
        member = self._table.get(suspected.node_id)
        if member is None or member.state is not State.SUSPECT:
            return
        waited = f"no refutation within {self._timeout():.1f} s"
        message = Dead(
            member.node_id, member.boot, member.incarnation, Cause.SILENT, self._identity.node_id
        )
        evidence = (waited, *suspected.evidence)
        self._on_verdict(now, message, (State.DEAD, Cause.SILENT), message.accuser, evidence)

    def announce(self, now: float) -> None:
        """Tell everybody this node's own card."""
        self._table.apply_card(now, self._identity.card_bytes)
        self._news.add(self._identity.node_id, encode_message(Alive(self._identity.card_bytes)))
        own = self._table.get(self._identity.node_id)
        assert own is not None
        self.names.file(own)

    def farewell(self, now: float) -> Left:
        """Mark this node as left and return what to tell everybody."""
        card = self._identity.card
        message = Left(card.node_id, card.boot, card.incarnation)
        self._table.apply_standing(
            now, card.node_id, card.boot, card.incarnation, (State.LEFT, Cause.NONE)
        )
        self._news.add(card.node_id, encode_message(message))
        return message

    def verdict_on(self, member: Member) -> Dead:
        """Return what to tell a member that is held dead here, so that it can refute."""
        return Dead(
            member.node_id, member.boot, member.incarnation, member.cause, self._identity.node_id
        )

    # Inside.

    def _on_verdict(
        self,
        now: float,
        message: Suspect | Dead | Left,
        verdict: tuple[State, Cause],
        accuser: NodeId,
        evidence: tuple[str, ...],
    ) -> None:
        if message.node_id == self._identity.node_id:
            if message.boot > self._identity.card.boot and not isinstance(message, Suspect):
                self._outrank(now, message.boot)
            else:
                self._refute(now, message, accuser)
            return
        change = self._table.apply_standing(
            now, message.node_id, message.boot, message.incarnation, verdict
        )
        if change is not None:
            self._news.add(message.node_id, encode_message(message))
            self._note(now, change, evidence, accuser)
        else:
            self._remind(message)

    def _remind(self, message: Suspect | Dead | Left) -> None:
        """Whoever accuses a session that has left missed its farewell, and nobody else will tell."""
        member = self._table.get(message.node_id)
        if member is None or member.state is not State.LEFT or isinstance(message, Left):
            return
        if message.boot == member.boot and member.node_id not in self._news:
            farewell = Left(member.node_id, member.boot, member.incarnation)
            self._news.add(member.node_id, encode_message(farewell))

    def _apply_both(self, now: float, node_id: NodeId, standing: Standing) -> Change | None:
        """Apply a card and the verdict on it as one change."""
        spoken = self._table.apply_card(now, standing.card)
        verdict = (standing.state, standing.cause)
        judged = self._table.apply_standing(
            now, node_id, standing.boot, standing.incarnation, verdict
        )
        if spoken is None:
            return judged
        return spoken if judged is None else replace(spoken, member=judged.member)

    def _merge_ended(self, now: float, sender: NodeId, known: Member, standing: Standing) -> None:
        """A later session than the known one has come and gone meanwhile."""
        if standing.state is State.LEFT:
            change = self._apply_both(now, known.node_id, standing)
            if change is not None:
                farewell = Left(known.node_id, standing.boot, standing.incarnation)
                self._news.add(known.node_id, encode_message(farewell))
                self._note(now, change, ("said so itself",))
        elif known.is_living:
            self.on_alive(now, sender, Alive(standing.card))
            self._merge_verdict(now, sender, known.node_id, standing)

    def _merge_verdict(
        self, now: float, sender: NodeId, node_id: NodeId, standing: Standing
    ) -> None:
        boot, incarnation = standing.boot, standing.incarnation
        if standing.state in {State.SUSPECT, State.DEAD}:
            self.on_suspect(now, sender, Suspect(node_id, boot, incarnation, sender))
        elif standing.state is State.LEFT:
            self.on_left(now, sender, Left(node_id, boot, incarnation))

    def _refute(self, now: float, message: Suspect | Dead | Left, accuser: NodeId) -> None:
        card = self._identity.card
        own = self._table.get(card.node_id)
        if own is None or own.state is State.LEFT:
            return
        if message.boot != card.boot or message.incarnation < card.incarnation:
            return
        if not self._identity.refute(message.incarnation):
            self.ignored_impossible += 1
            return
        self.announce(now)
        said = type(message).__name__.lower()
        self._outbox.do(
            Emit(
                Event(
                    kind=EventKind.REFUTE,
                    member_id=card.node_id,
                    member=card.name,
                    state=State.ALIVE.word,
                    detail=f"refuted '{said}', said of this node by {self._name(accuser)}",
                )
            )
        )

    def _outrank(self, now: float, boot: int) -> None:
        """A later session of this node is known, and is over: its clock or disk was set back."""
        own = self._table.get(self._identity.node_id)
        if own is None or own.state is State.LEFT:
            return
        if not self._identity.raise_boot(boot):
            self.ignored_impossible += 1
            return
        card = self._identity.card
        self._outbox.do(Persist({"boot": card.boot}))
        self.announce(now)
        text = f"session {boot} of this node is known already: goes on as session {card.boot}"
        event = Event(kind=EventKind.WARN, member_id=card.node_id, member=card.name, detail=text)
        self._outbox.do(Emit(event))

    def _is_about_self(self, now: float, card_bytes: bytes) -> bool:
        """Say whether a card is this node's id; stop the node if another process wrote it.

        A later session at this node's own address cannot run any more: it is this node's past.
        """
        try:
            card = decode_card(card_bytes)
        except DecodeError:
            self.ignored_impossible += 1
            return True
        mine = self._identity.card
        if card.node_id != mine.node_id:
            return False
        is_later = (card.boot, card.incarnation) > (mine.boot, mine.incarnation)
        is_other = (card.boot, card.incarnation) == (mine.boot, mine.incarnation) and (
            card_bytes != self._identity.card_bytes
        )
        if card.boot > mine.boot and card.address == mine.address:
            self._outrank(now, card.boot)
        elif is_later or is_other:
            text = (
                f"another process runs as this node (id {format_id(mine.node_id)}) at {card.address}: "
                "each node needs a data directory of its own; this one stops"
            )
            event = Event(
                kind=EventKind.CONFLICT, member_id=mine.node_id, member=mine.name, detail=text
            )
            self._outbox.do(Emit(event))
            self._outbox.do(Stop(1, text))
        return True

    def _note(
        self, now: float, change: Change, evidence: tuple[str, ...], accuser: NodeId | None = None
    ) -> None:
        """Keep suspicions, probe order and names in step with a change, and publish it."""
        member = change.member
        if member.state is not State.SUSPECT:
            self.suspicions.close(member.node_id)
        elif not self.suspicions.is_open(member.node_id, member.boot, member.incarnation):
            suspected = Suspected(
                member.node_id, member.boot, member.incarnation, accuser or NodeId(0), evidence
            )
            self.suspicions.open(suspected, now + self._timeout())
        if member.is_living and (change.before is None or change.before >= State.DEAD):
            self._order.insert(member.node_id)
        self.changes.append(change)
        event = event_of(change, evidence)
        if event is not None:
            self._outbox.do(Emit(event))
        rival = self.names.file(member)
        if rival is not None:
            self._outbox.do(Emit(self._name_conflict(member, rival)))

    def _name_conflict(self, member: Member, rival: NodeId) -> Event:
        ids = f"{format_id(member.node_id)} and {format_id(rival)}"
        return Event(
            kind=EventKind.CONFLICT,
            member_id=member.node_id,
            member=member.name,
            state=member.state.word,
            detail=f"two living members are called {member.name}: {ids}; give one another --name",
        )

    def _timeout(self) -> float:
        config = self._config
        return suspicion_timeout(
            size=self._table.size,
            probe_interval_s=config.probe_interval_s,
            multiplier=config.suspicion_multiplier,
            pause_tolerance_s=config.pause_tolerance_s,
        )

    def _name(self, node_id: NodeId) -> str:
        if node_id == self._identity.node_id:
            return self._identity.card.name
        member = self._table.get(node_id)
        return member.name if member is not None else format_id(node_id)
