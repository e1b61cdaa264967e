"""One address, one member; one session, one address: who finds it otherwise says so, once for each case.

Nobody is removed for it. Of two members at one address the one that is not there is found silent soon;
that is how a host that lost its disk replaces itself. If it lasts, two hosts advertise one address. And a
session that names two addresses at a time is two processes with copies of one data directory: one identity,
whose later card counts, until they hear of each other and stop. A host may change its address meanwhile, but
then it says so, and does not go to and fro.
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

TO_AND_FRO_S: Final = 10.0
"""A session that is back at its address so soon never left it: two processes outbid each other."""

SAID_MAX: Final = 1_024
"""So many conflicts are remembered as said; then the oldest may be said again."""


class Conflicts:
    """Looks at every change of a member. `note` returns the events, none that was said before."""

    def __init__(self, identity: Identity, table: MemberTable) -> None:
        self._identity = identity
        self._table = table
        self._addresses: Claims[Address] = Claims()
        # The card, the address before it, and when it was named.
        self._sessions: dict[NodeId, tuple[Card, Address | None, float]] = {}
        self._said: dict[tuple[object, ...], None] = {}

    def note(self, now: float, change: Change) -> list[Event]:
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
        other = self._other_address(now, card)
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

    def _other_address(self, now: float, card: Card) -> Address | None:
        """Keep a card; return where else its session runs: a member may move, but neither to and fro nor unsaid."""
        known, previous, since = self._sessions.get(card.node_id, (card, None, now))
        if known.boot != card.boot:
            known, previous, since = card, None, now
        if known.address == card.address:
            self._sessions[card.node_id] = (card, previous, since)
            return None
        self._sessions[card.node_id] = (card, known.address, now)
        is_unsaid = known.incarnation == card.incarnation
        is_back = previous == card.address and now - since < TO_AND_FRO_S
        return known.address if is_unsaid or is_back else None

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
