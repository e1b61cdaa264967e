"""What this node says of itself: its card, its session, its mesh.

Only the node itself writes its card; each change raises the incarnation, which is how a refutation
outranks the suspicion it answers. A new session (boot) outranks everything said of earlier ones.

Source: incarnation numbers [SWIM §4.2]. Deviation: the boot number before the incarnation, so that a
restarted node needs no memory of its last incarnation to be believed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mesh.core.address import Address
from mesh.core.ids import MeshId, NodeId
from mesh.wire.records import Card, Vitals, encode_card

INCARNATION_MAX: Final = (1 << 32) - 1


class Identity:
    """This node's own card and mesh. `card_bytes` is always the encoding of `card`."""

    __slots__ = ("card", "card_bytes", "mesh_id", "vitals")

    def __init__(self, card: Card, mesh_id: MeshId) -> None:
        self.card = card
        self.card_bytes = encode_card(card)
        self.mesh_id = mesh_id
        self.vitals = Vitals(free_slots=card.meta.slots, load_pct=0)

    @property
    def node_id(self) -> NodeId:
        """The id of this node's disk."""
        return self.card.node_id

    @property
    def address(self) -> Address:
        """What others are told to send to."""
        return self.card.address

    def refute(self, incarnation: int) -> bool:
        """Raise the own incarnation above `incarnation`; say whether that was possible."""
        if incarnation >= INCARNATION_MAX:
            return False
        self._write(replace(self.card, incarnation=max(self.card.incarnation, incarnation) + 1))
        return True

    def rename(self, name: str) -> None:
        """Take another name, before anybody was told the old one."""
        self._write(replace(self.card, name=name))

    def raise_boot(self, above: int) -> int:
        """Make the session's number greater than `above`, and return it. Persist it before it is told."""
        self._write(replace(self.card, boot=above + 1, incarnation=0))
        return self.card.boot

    def _write(self, card: Card) -> None:
        self.card = card
        self.card_bytes = encode_card(card)
