"""What is said of this node itself: announced, refuted, outranked, or the end of it.

    my session is suspect or dead   ► refute: a higher incarnation, told to all
    it was, and I have refuted it   ► my card, to whoever missed it
    a later session of mine is over ► my clock or disk was set back: go on under a number above it
    a later session of mine runs    ► another process has my id: this one stops
    my host has another address     ► my card with it, a higher incarnation of the same session, to all
    I declare something else        ► the same

Source: refutation by incarnation [SWIM §4.2].
"""

from __future__ import annotations

import math
from typing import Final

from mesh.core.address import Address
from mesh.core.effects import Emit, Persist, Stop
from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId, format_id
from mesh.core.pace import Pace
from mesh.membership.awareness import Awareness
from mesh.membership.dissemination import Dissemination
from mesh.membership.history import History
from mesh.membership.identity import Identity
from mesh.membership.outbox import Outbox
from mesh.membership.table import MemberTable
from mesh.wire.packet import encode_message
from mesh.wire.records import Card, Cause, Metadata, State
from mesh.wire.swim_messages import Alive, Left, Suspect, Verdict

REFUTATIONS_S: Final = 5.0
REFUTATIONS_BURST: Final = 5
"""A mesh that accuses this node all the time is answered at a bounded pace."""

CORRECTIONS_S: Final = 10.0
CORRECTIONS_BURST: Final = 20
"""So is whoever repeats what was refuted; what is left out is corrected when it is said again."""

TOLD_MAX: Final = 64
"""A node that moves tells so many itself; they tell the rest."""


class Refutation:
    """Speaks for this node. `impossible` counts what could only be said by mistake or malice."""

    def __init__(
        self,
        *,
        identity: Identity,
        table: MemberTable,
        news: Dissemination,
        outbox: Outbox,
        awareness: Awareness,
        history: History,
    ) -> None:
        self._identity = identity
        self._table = table
        self._news = news
        self._outbox = outbox
        self._awareness = awareness
        self._history = history
        self._owed: tuple[int, str, str] | None = None
        self._owed_at = 0.0
        self.pace = Pace(rate_s=REFUTATIONS_S, burst=REFUTATIONS_BURST)
        self._corrections = Pace(rate_s=CORRECTIONS_S, burst=CORRECTIONS_BURST)
        self.impossible = 0

    def announce(self, now: float) -> None:
        """Tell everybody this node's own card."""
        card_bytes = self._identity.card_bytes
        self._table.apply_card(now, card_bytes)
        self._news.add(self._identity.node_id, encode_message(Alive(card_bytes)))

    def move(self, now: float, address: Address) -> None:
        """Take another address and tell everybody: the same session, so nothing that runs here is over.

        Many are told at once, those held dead as well: whoever cannot reach this node may hold it dead, and
        if others have moved too, random gossip may come to rest where nobody is any more.
        """
        own, before = self._table.get(self._identity.node_id), self._identity.address
        if address == before or (own is not None and own.state is State.LEFT):
            return
        if not self._identity.move(address):
            self.impossible += 1
            return
        if own is not None:  # else it seeks, and its next question says so
            self.announce(now)
            living = [self._table.get(node_id) for node_id in self._table.living[:TOLD_MAX]]
            dead = self._table.recently_dead(now, math.inf, TOLD_MAX)
            for member in [*living, *dead][:TOLD_MAX]:
                assert member is not None
                card = Alive(self._identity.card_bytes)
                self._outbox.send(member.address, card, about=self._identity.node_id)
        text = f"this host's address has changed: reached at {address}, no longer at {before}"
        self._emit(now, EventKind.UPDATE, text)

    def declare(self, now: float, meta: Metadata, why: str) -> None:
        """Declare something else from now on and tell everybody; `why`, for people: a sentence without its subject."""
        own = self._table.get(self._identity.node_id)
        if meta == self._identity.card.meta or (own is not None and own.state is State.LEFT):
            return
        if not self._identity.declare(meta):
            self.impossible += 1
            return
        if own is not None:  # else it seeks, and its next question says so
            self.announce(now)
        self._emit(now, EventKind.UPDATE, why)

    def farewell(self, now: float) -> Left:
        """Mark this node as left and return what to tell everybody."""
        card = self._identity.card
        rank = (card.boot, card.incarnation, State.LEFT, Cause.NONE)
        self._table.apply_verdict(now, card.node_id, rank)
        message = Left(card.node_id, card.boot, card.incarnation)
        self._news.add(card.node_id, encode_message(message))
        return message

    def on_card(self, now: float, card: Card) -> None:
        """Take a card of this node's own id; stop the node if another process wrote it.

        A later session at this node's own address cannot run any more: it is this node's past.
        """
        mine = self._identity.card
        if card.boot > mine.boot and card.address == mine.address:
            self._outrank(now, card.boot)
        elif (card.boot, card.incarnation) >= (mine.boot, mine.incarnation) and card != mine:
            text = (
                f"another process runs as this node (id {format_id(mine.node_id)}) at {card.address}: "
                "each node needs a data directory of its own; this one stops"
            )
            self._emit(now, EventKind.CONFLICT, text)
            self._outbox.do(Stop(1, text))

    def on_verdict(self, now: float, sender: NodeId, message: Verdict, accuser: str) -> None:
        """Take what somebody says of this node; refute it if it is about this session, or say that it was refuted."""
        own = self._table.get(self._identity.node_id)
        if own is None or own.state is State.LEFT:
            return
        mine = self._identity.card
        if message.boot > mine.boot and not isinstance(message, Suspect):
            self._outrank(now, message.boot)
        elif message.boot == mine.boot and message.incarnation >= mine.incarnation:
            self._owed = (message.incarnation, type(message).__name__.lower(), accuser)
            self.handle_timeout(now)
        elif message.boot == mine.boot:
            self._correct(now, sender)

    def next_deadline(self) -> float | None:
        """Return when a refutation that had to wait is due."""
        return None if self._owed is None else self._owed_at

    def handle_timeout(self, now: float) -> None:
        """Refute what is still to be refuted, if the pace allows it."""
        if self._owed is None:
            return
        if not self.pace.allows(now):
            self._owed_at = self.pace.next_at(now)
            return
        (incarnation, said, accuser), self._owed = self._owed, None
        if incarnation < self._identity.card.incarnation:
            return
        if not self._identity.refute(incarnation):
            self.impossible += 1
            return
        self.announce(now)
        self._awareness.note(1)
        text = f"refuted '{said}', said of this node by {accuser}"
        self._emit(now, EventKind.REFUTE, text, accuser)

    def on_ended(self, now: float, boot: int) -> None:
        """Take the news that a session of this node's id is over."""
        own = self._table.get(self._identity.node_id)
        if own is not None and own.state is not State.LEFT and boot > self._identity.card.boot:
            self._outrank(now, boot)

    def _correct(self, now: float, sender: NodeId) -> None:
        """Send this node's card to somebody who missed it: the news of it has long come to rest."""
        member = self._table.get(sender)
        if member is not None and self._corrections.allows(now):
            card = Alive(self._identity.card_bytes)
            self._outbox.send(member.address, card, about=self._identity.node_id)

    def _outrank(self, now: float, boot: int) -> None:
        if not self._identity.raise_boot(boot):
            self.impossible += 1
            return
        card = self._identity.card
        self._outbox.do(Persist({"boot": card.boot}))
        self.announce(now)
        text = f"session {boot} of this node is known already: goes on as session {card.boot}"
        self._emit(now, EventKind.WARN, text)

    def _emit(self, now: float, kind: EventKind, text: str, accuser: str = "") -> None:
        card = self._identity.card
        event = Event(
            kind=kind,
            member_id=card.node_id,
            member=card.name,
            state=State.ALIVE.word,
            detail=text,
            accuser=accuser,
        )
        self._history.note(now, event)
        self._outbox.do(Emit(event))
