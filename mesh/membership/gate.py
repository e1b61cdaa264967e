"""A member answers who wants in: welcome, or the reason why not.

Refused are a name that a living member holds, and an id whose session seems to run elsewhere. Both
may be out of date, so the refusal carries the holder's card and the joiner asks the holder itself.
"""

from __future__ import annotations

from mesh.core.ids import format_id
from mesh.core.limits import BOOT_MAX
from mesh.membership.identity import Identity
from mesh.membership.paging import page
from mesh.membership.rumours import Rumours
from mesh.membership.table import MemberTable
from mesh.wire.records import Card, decode_card
from mesh.wire.swim_messages import Alive, Join, Refused, Welcome


class Gate:
    """Answers `Join` while this node is a member."""

    def __init__(self, identity: Identity, table: MemberTable, rumours: Rumours) -> None:
        self._identity = identity
        self._table = table
        self._rumours = rumours

    def on_join(self, now: float, message: Join) -> Welcome | Refused:
        """Let a node in and tell the others, or refuse it."""
        card = decode_card(message.card)
        refusal = self._refusal(card, message.replaces)
        if refusal is not None:
            return refusal
        known = self._table.get(card.node_id)
        known_boot = known.boot if known is not None else 0
        if known is not None and known_boot == card.boot and not known.is_living:
            # Who asks begins a session, and the one of that number is over: its disk and clock were set back.
            known_boot = min(known_boot + 1, BOOT_MAX)
        if known_boot > card.boot:
            return Welcome(known_boot, ())
        self._rumours.on_alive(now, card.node_id, Alive(message.card))
        return Welcome(known_boot, page([member.standing(now) for member in self._table]))

    def _refusal(self, card: Card, replaces: int) -> Refused | None:
        mine = self._identity
        if card.node_id == mine.node_id:
            if card.boot == mine.card.boot and card.address == mine.address:
                return Refused("self", "the seed is this node itself")
            text = f"node id {format_id(card.node_id)} runs here already"
            return Refused("same_id", text, mine.card_bytes)
        known = self._table.get(card.node_id)
        if (
            known is not None
            and known.is_living
            and known.address != card.address
            and replaces != known.boot
        ):
            text = f"node id {format_id(card.node_id)} runs at {known.address} already"
            return Refused("same_id", text, known.card_bytes)
        holder = self._rumours.names.holder(card.name, but=card.node_id)
        member = self._table.get(holder) if holder is not None else None
        if member is not None:
            text = f"the name {card.name} is held by the member at {member.address}"
            return Refused("name_taken", text, member.card_bytes)
        return None
