"""News of other members: applied, passed on, published.

    a rumour comes in ── about this node? ── the refutation's
                      └─ about another ──── greater than what is known? ── merge, tell, emit
                                                                        └─ drop, silently

A death told as fresh news is believed at once, if the suspicion before it has long been known here too:
whoever told it has waited for the refutation already. If it comes with the suspicion or before it, its
teller may have kept that to itself (what a slow node says leaves all at once, its verdict with its
suspicion), and the member gets the moment it needs to refute. A wish to forget a member that lives here
is such a death too.

Source: [SWIM §4.2].
"""

from __future__ import annotations

from typing import Final

from mesh.core.effects import Emit
from mesh.core.events import Event
from mesh.core.events import EvidenceKind as Kind
from mesh.core.ids import NO_NODE, NodeId, format_id
from mesh.core.pace import Pace
from mesh.membership.awareness import Awareness
from mesh.membership.clues import SEEN, Clue, accused_by, as_seen_by, clue
from mesh.membership.dissemination import Dissemination
from mesh.membership.flaps import Flaps
from mesh.membership.history import History
from mesh.membership.identity import Identity
from mesh.membership.member import Change, Member
from mesh.membership.names import Names
from mesh.membership.observed import confirmation, event_of, flapping, name_conflict
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.membership.refutation import Refutation
from mesh.membership.suspicion import Suspected, Suspicions
from mesh.membership.table import MemberTable
from mesh.membership.testimony import WITNESSED_MAX
from mesh.membership.turns import Turns
from mesh.wire.packet import encode_message
from mesh.wire.records import Card, Cause, Rank, Standing, State, decode_card
from mesh.wire.swim_messages import Alive, Dead, Forget, Left, Seen, Suspect, Verdict

SUSPICIONS_S: Final = 10.0
SUSPICIONS_BURST: Final = 20
"""A node accuses at a bounded pace, whatever happens to it."""

HASTENED_SHARE: Final = 1 / 16
HASTENED_MIN: Final = 3
"""With more suspects than this share of the mesh their observers do not hurry: it is no matter of one member."""


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
        turns: Turns,
        awareness: Awareness,
    ) -> None:
        self.own_id = identity.node_id
        self._config = config
        self._identity = identity
        self._table = table
        self._news = news
        self._outbox = outbox
        self._turns = turns
        self.history = History()
        self.refutation = Refutation(
            identity=identity,
            table=table,
            news=news,
            outbox=outbox,
            awareness=awareness,
            history=self.history,
        )
        self.suspicions = Suspicions()
        self.flaps = Flaps()
        self.pace = Pace(rate_s=SUSPICIONS_S, burst=SUSPICIONS_BURST)
        self.names = Names()
        self.changes: list[Change] = []

    # What others say.

    def on_alive(self, now: float, _sender: NodeId, message: Alive) -> None:
        """Apply a member's own word, whoever brought it."""
        card = decode_card(message.card)
        if card.node_id == self._identity.node_id:
            self.refutation.on_card(now, card)
            return
        change = self._table.apply_card(now, message.card)
        if change is not None:
            self._news.add(card.node_id, encode_message(message))
            self.note(now, change, ())

    def on_suspect(self, now: float, sender: NodeId, message: Suspect) -> None:
        """Apply somebody's suspicion."""
        if self._is_mine(now, sender, message, message.accuser):
            return
        evidence = self._hearsay(message)
        verdict = (State.SUSPECT, Cause.NONE)
        self._on_verdict(now, message, verdict, evidence, message.accuser)

    def on_dead(self, now: float, sender: NodeId, message: Dead, *, is_news: bool = True) -> None:
        """Apply somebody's verdict of death. What is no news may be long past: the member may refute it first."""
        if self._is_mine(now, sender, message, message.accuser):
            return
        if not is_news or self._is_hasty(now, message):
            self._doubt(now, message)
            return
        evidence: tuple[Clue, ...] = (self._told(message),)
        found = self.suspicions.get(message.node_id)
        if found is not None and found.boot == message.boot:
            evidence += tuple(one for one in found.evidence if one not in evidence)
        self._on_verdict(now, message, (State.DEAD, message.cause), evidence, message.accuser)

    def on_left(self, now: float, sender: NodeId, message: Left) -> None:
        """Apply a member's own farewell."""
        if self._is_mine(now, sender, message, message.node_id):
            return
        verdict = (State.LEFT, Cause.NONE)
        self._on_verdict(now, message, verdict, (clue(Kind.FAREWELL),), message.node_id)

    def on_forget(self, now: float, sender: NodeId, message: Forget) -> None:
        """Apply somebody's wish to forget a member; one that lives here is told dead first, and may refute."""
        if self._is_mine(now, sender, message, message.by):
            return
        member = self._table.get(message.node_id)
        if member is not None and member.is_living:
            boot, incarnation, accuser = message.boot, message.incarnation, message.by
            death = Dead(message.node_id, boot, incarnation, Cause.SILENT, accuser)
            self.on_dead(now, sender, death)
            if member.is_living:
                return  # whoever hears that it died says again that it is forgotten
        evidence = (clue(Kind.FORGET_ASKED, self.name_of(message.by)),)
        verdict = (State.FORGOTTEN, Cause.NONE)
        self._on_verdict(now, message, verdict, evidence, message.by)

    def welcome(self, now: float, members: tuple[Standing, ...]) -> None:
        """Take over the whole table of the member that let this node in, the dead included."""
        for standing in sorted(members, key=lambda standing: -standing.age_s):
            if standing.subject.node_id == self._identity.node_id:
                continue
            change = self._table.apply(now, standing)
            if change is None:
                continue
            member = self._table.get(standing.subject.node_id)
            if change.before is None and member is not None:
                member.since = now - standing.age_s
            self.note(now, change, ())

    # What this node says.

    def announce(self, now: float) -> None:
        """Tell everybody this node's own card."""
        self.refutation.announce(now)
        card = self._identity.card
        rival = self.names.file(card, is_living=True)
        if rival is not None:
            self._publish(now, name_conflict(card, State.ALIVE, rival))

    def suspect(
        self, now: float, member: Member, evidence: tuple[Clue, ...], *, seen: int = 0
    ) -> None:
        """Suspect a member, at a bounded pace: a silent mesh is probed again anyway. `seen`: see the message."""
        if not self.pace.allows(now):
            return
        me = self._identity.node_id
        message = Suspect(member.node_id, member.boot, member.incarnation, me, seen)
        self._on_verdict(now, message, (State.SUSPECT, Cause.NONE), evidence, me)

    def bury(self, now: float, suspected: Suspected) -> None:
        """Declare dead a suspect whose time has run out."""
        member = self._table.get(suspected.node_id)
        if member is None or member.state is not State.SUSPECT:
            return
        shared = [self.name_of(accuser) for accuser in suspected.accusers]
        waited = clue(Kind.NO_REFUTATION, now - suspected.opened_at)
        evidence: tuple[Clue, ...] = (waited, accused_by(shared))
        if suspected.told_by is not None:
            evidence += (clue(Kind.DECLARED, self.name_of(suspected.told_by)),)
        evidence += tuple(found for found in suspected.evidence if found not in evidence)
        self.declare(now, member, suspected.told_cause, evidence)

    def declare(self, now: float, member: Member, cause: Cause, evidence: tuple[Clue, ...]) -> None:
        """Declare a member dead, and tell others."""
        message = member.verdict(cause, self.own_id)
        self._on_verdict(now, message, (State.DEAD, cause), evidence, message.accuser)

    def note(
        self,
        now: float,
        change: Change,
        evidence: tuple[Clue, ...],
        accuser: NodeId | None = None,
    ) -> None:
        """Keep suspicions, turns and names in step with a change, and publish it."""
        card = change.card
        accusers = self._accusers(change, accuser)
        boot, incarnation, state, _ = change.after
        if state is not State.SUSPECT:
            self.suspicions.close(card.node_id)
        elif not self.suspicions.is_open(card.node_id, boot, incarnation):
            self._suspect(now, change, evidence, accuser)
        if change.is_living != _was_living(change):
            self._turns.follow(card.node_id, is_living=change.is_living)
        has_left = State.LEFT in {state, change.state_before}  # who says goodbye does not flap
        if change.before is not None and change.is_living != _was_living(change) and not has_left:
            self._note_flap(now, card)
        self.changes.append(change)
        event = event_of(change, evidence, accusers)
        if event is not None:
            self._publish(now, event)
        rival = self.names.file(card, is_living=change.is_living)
        if rival is not None:
            self._publish(now, name_conflict(card, state, rival))

    def name_of(self, node_id: NodeId) -> str:
        """Return what people call a member; its id if it is not known here."""
        if node_id == self._identity.node_id:
            return self._identity.card.name
        member = self._table.get(node_id)
        return member.name if member is not None else format_id(node_id)

    # Inside.

    def _publish(self, now: float, event: Event) -> None:
        member = None if event.member_id is None else self._table.get(event.member_id)
        self.history.note(now, event, None if member is None else member.rtt_s)
        self._outbox.do(Emit(event))

    def _hearsay(self, message: Suspect) -> tuple[Clue, ...]:
        """Return what another's suspicion says: who suspects, and what it saw beside silence."""
        name, seen = self.name_of(message.accuser), Seen(message.seen)
        said = clue(Kind.SUSPECTED, name)
        return (said, as_seen_by(name, seen)) if seen else (said,)

    def _told(self, message: Dead) -> Clue:
        """Return who says that a member is dead: another, or its guardian, which speaks for it when it has ended."""
        is_last_word = message.cause is Cause.ENDED and message.accuser == message.node_id
        return (
            clue(Kind.OBITUARY)
            if is_last_word
            else clue(Kind.DECLARED, self.name_of(message.accuser))
        )

    def _accusers(self, change: Change, accuser: NodeId | None) -> tuple[str, ...]:
        """Return who accuses a member, or accused one that refutes; call while the suspicion before is open."""
        said = () if accuser in {None, change.card.node_id} else (accuser,)
        if change.state is State.SUSPECT:
            return tuple(map(self.name_of, said))
        found = self.suspicions.get(change.card.node_id)
        known = () if found is None or found.boot != change.after[0] else tuple(found.accusers)
        if change.state is State.DEAD:
            known = known or said
        return tuple(map(self.name_of, known)) if change.state <= State.DEAD else ()

    def _is_mine(self, now: float, sender: NodeId, message: Verdict, accuser: NodeId) -> bool:
        """Take what is said of this node itself; say whether it was that."""
        if message.node_id != self._identity.node_id:
            return False
        self.refutation.on_verdict(now, sender, message, self.name_of(accuser))
        return True

    def _on_verdict(
        self,
        now: float,
        message: Verdict,
        verdict: tuple[State, Cause],
        evidence: tuple[Clue, ...],
        accuser: NodeId,
    ) -> None:
        rank: Rank = (message.boot, message.incarnation, *verdict)
        at, by = now, NO_NODE
        if isinstance(message, Forget):
            at, by = now - message.age_s, message.by
        change = self._table.apply_verdict(at, message.node_id, rank, by)
        if change is None:
            if not self._confirm(now, message, evidence, accuser):
                self._remind(now, message)
            return
        self._news.add(message.node_id, encode_message(message), is_told=self._is_told(message))
        self.note(now, change, evidence, accuser)

    def _doubt(self, now: float, message: Dead) -> None:
        """Take a death as a suspicion first: the member gets a moment to refute it."""
        accuser, boot, incarnation = message.accuser, message.boot, message.incarnation
        evidence = (clue(Kind.DECLARED, self.name_of(accuser)),)
        suspicion = Suspect(message.node_id, boot, incarnation, accuser)
        self._on_verdict(now, suspicion, (State.SUSPECT, Cause.NONE), evidence, accuser)
        if self.suspicions.is_open(message.node_id, boot, incarnation):
            ends_by = now + self._config.moment_s(self._table.size)
            self.suspicions.hurry(message, ends_by)

    def _is_told(self, message: Verdict) -> bool:
        """Say whether all were told, in a small mesh: by two witnesses of a crash, half each, by one, or by a guardian."""
        is_seen = isinstance(message, Suspect) and message.seen != 0
        is_end = isinstance(message, Dead) and message.cause in {Cause.CRASHED, Cause.ENDED}
        return (is_seen or is_end) and len(self._table.living) <= WITNESSED_MAX

    def _is_hasty(self, now: float, message: Dead) -> bool:
        """Say whether a member is told dead of whom no suspicion could be heard, let alone refuted, here."""
        member = self._table.get(message.node_id)
        if not self._config.lifeguard.checks_deaths or message.cause is not Cause.SILENT:
            return False
        if member is None or not member.is_living or member.boot != message.boot:
            return False
        if message.incarnation < member.incarnation:
            return False
        if not self.suspicions.is_open(message.node_id, message.boot, message.incarnation):
            return True
        suspected = self.suspicions.get(message.node_id)
        return suspected is not None and now - suspected.opened_at < suspected.shortest_s / 2

    def _confirm(
        self, now: float, message: Verdict, evidence: tuple[Clue, ...], accuser: NodeId
    ) -> bool:
        """Note that another observer shares an open suspicion, and pass that on while it counts."""
        node_id = message.node_id
        is_same = isinstance(message, Suspect) and self.suspicions.is_open(
            node_id, message.boot, message.incarnation
        )
        if is_same and self.suspicions.confirm(node_id, accuser, evidence):
            self._news.add(node_id, encode_message(message), is_told=self._is_told(message))
            member = self._table.get(node_id)
            if member is not None:
                event = confirmation(member.card, self.name_of(accuser), evidence)
                self.history.note(now, event, member.rtt_s, is_confirmation=True)
        return is_same

    def _remind(self, now: float, message: Verdict) -> None:
        """Whoever accuses a session that has left, or is forgotten, missed that, and nobody else will tell."""
        member = self._table.get(message.node_id)
        if member is None or message.boot != member.boot or member.node_id in self._news:
            return
        if member.state is State.FORGOTTEN and not isinstance(message, Forget):
            self._news.add(member.node_id, encode_message(member.tombstone(now)))
        elif member.state is State.LEFT and isinstance(message, Suspect | Dead):
            farewell = Left(member.node_id, member.boot, member.incarnation)
            self._news.add(member.node_id, encode_message(farewell))

    def _suspect(
        self, now: float, change: Change, evidence: tuple[Clue, ...], accuser: NodeId | None
    ) -> None:
        """Open the suspicion that a change is about; perhaps look for oneself next."""
        config, size = self._config, self._table.size
        others = size - 2  # whoever could share it: neither the suspect nor the first accuser
        enough = config.lifeguard.confirmations if others >= config.lifeguard.confirmations else 0
        node_id = change.card.node_id
        self.suspicions.open(
            Suspected(
                node_id=node_id,
                boot=change.after[0],
                incarnation=change.after[1],
                opened_at=now,
                shortest_s=config.suspicion_s(size),
                longest_s=config.longest_suspicion_s(size),
                enough=enough,
                evidence=evidence,
                accusers={} if accuser is None else {accuser: None},
            )
        )
        # Its observers look for themselves, at once; what is more than silence they look into elsewhere.
        is_silence = not any(kind in SEEN.values() for found in evidence for kind in found.kinds)
        are_few = len(self.suspicions) <= max(HASTENED_MIN, HASTENED_SHARE * size)
        if accuser != self._identity.node_id and is_silence and are_few:
            self._turns.hasten(now, node_id)

    def _note_flap(self, now: float, card: Card) -> None:
        if self.flaps.note(now, card.node_id):
            self._publish(now, flapping(card))


def _was_living(change: Change) -> bool:
    return change.state_before is not None and change.state_before <= State.SUSPECT
