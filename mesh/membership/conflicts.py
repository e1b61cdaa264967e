"""One address, one member; one session, one address: who finds it otherwise says so, once for each case.

Nobody is removed for it. Of two members at one address the one that is not there is found silent soon;
that is how a host that lost its disk replaces itself. If it lasts, two hosts advertise one address. And a
session that names a second address is two processes with copies of one data directory: one identity, whose
later card counts, until they hear of each other and stop.
"""

from __future__ import annotations

from typing import Final

from mesh.core.address import Address
from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId, format_id
from mesh.membership.claims import Claims
from mesh.membership.identity import Identity
from mesh.membership.member import Change
from mesh.membership.table import MemberTable
from mesh.wire.records import Card, State
from mesh.wire.swim_messages import MEMBERS_MAX

SAID_MAX: Final = 1_024
"""So many conflicts are remembered as said; then the oldest may be said again."""


class Conflicts:
    """Looks at every change of a member. `note` returns the events, none that was said before."""

    def __init__(self, identity: Identity, table: MemberTable) -> None:
        self._identity = identity
        self._table = table
        self._addresses: Claims[Address] = Claims()
        self._sessions: dict[NodeId, tuple[Card, Address | None]] = {}  # and the address before it
        self._said: dict[tuple[object, ...], None] = {}

    def note(self, change: Change) -> list[Event]:
        """Take a change; the same one twice does no harm."""
        card = change.card
        if card.node_id == self._identity.node_id:
            return []
        self._addresses.claim(self._identity.node_id, self._identity.address)
        is_living = change.is_living
        rival = self._addresses.claim(card.node_id, card.address if is_living else None)
        found = []
        if rival is not None and self._is_new(
            "address", card.address, *sorted((card.node_id, rival))
        ):
            found.append(self._event(change, self._shared(card, rival)))
        other = self._other_address(card)
        if change.state >= State.LEFT or len(self._sessions) > MEMBERS_MAX:
            self._sessions.pop(next(iter(self._sessions)) if is_living else card.node_id)
        if other is not None and self._is_new(
            "session", card.node_id, *sorted((other, card.address))
        ):
            text = (
                f"id {format_id(card.node_id)} runs at {other} and at {card.address} in one session: "
                "each node needs a data directory of its own"
            )
            found.append(self._event(change, text))
        return found

    def _other_address(self, card: Card) -> Address | None:
        """Keep a card; return where else its session runs: a member may move, but neither both ways nor unsaid."""
        known, previous = self._sessions.get(card.node_id, (card, None))
        if known.boot != card.boot:
            known, previous = card, None
        if known.address == card.address:
            self._sessions[card.node_id] = (card, previous)
            return None
        self._sessions[card.node_id] = (card, known.address)
        is_unsaid = known.incarnation == card.incarnation
        return known.address if is_unsaid or previous == card.address else None

    def _shared(self, card: Card, rival: NodeId) -> str:
        member = self._table.get(rival)
        name = member.name if member is not None else self._identity.card.name
        return (
            f"two living members are at {card.address}: {card.name} ({format_id(card.node_id)}) and {name} "
            f"({format_id(rival)}); unless one has replaced the other, give each its own --advertise"
        )

    def _event(self, change: Change, text: str) -> Event:
        card = change.card
        return Event(
            kind=EventKind.CONFLICT,
            member_id=card.node_id,
            member=card.name,
            state=change.state.word,
            detail=text,
        )

    def _is_new(self, *conflict: object) -> bool:
        if conflict in self._said:
            return False
        if len(self._said) >= SAID_MAX:
            del self._said[next(iter(self._said))]
        self._said[conflict] = None
        return True
