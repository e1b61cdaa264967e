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
from mesh.core.ids import NAME_CHARS_MAX, MeshId, NodeId, format_id
from mesh.core.limits import BOOT_MAX
from mesh.errors import ConfigError
from mesh.wire.records import Card, Metadata, Vitals, decode_card, encode_card

INCARNATION_MAX: Final = (1 << 32) - 1


class Identity:
    """This node's own card and mesh. `card_bytes` is always the encoding of `card`.

    Raises:
        ConfigError: the card is too large, or would be once its numbers and its name have grown.
    """

    __slots__ = ("card", "card_bytes", "has_founded", "mesh_id", "vitals")

    def __init__(self, card: Card, mesh_id: MeshId) -> None:
        encode_card(_longest(card))
        self.card_bytes = encode_card(card)
        self.card = decode_card(self.card_bytes)  # as others read it: an address has one spelling
        self.mesh_id = mesh_id
        self.has_founded = False  # that mesh, in this session
        self.vitals = Vitals(free_slots=card.meta.slots, load_average_pct=0, busy_pct=0)

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
        highest = max(self.card.incarnation, incarnation)
        if highest >= INCARNATION_MAX:
            return False
        self._write(replace(self.card, incarnation=highest + 1))
        return True

    def rename(self) -> None:
        """Add the id's beginning to the name. A new incarnation: some may have been told the old one."""
        name = _with_suffix(self.card.name, self.card.node_id)
        incarnation = min(self.card.incarnation + 1, INCARNATION_MAX)
        self._write(replace(self.card, name=name, incarnation=incarnation))

    def move(self, address: Address) -> bool:
        """Name another address, under a new incarnation; say whether that was possible."""
        if self.card.incarnation >= INCARNATION_MAX:
            return False
        incarnation = self.card.incarnation + 1
        self._write(replace(self.card, address=address, incarnation=incarnation))
        return True

    def declare(self, meta: Metadata) -> bool:
        """Declare something else, under a new incarnation; say whether that was possible.

        Where a card has no room for the reason why its member takes no work, that is left out.
        """
        if self.card.incarnation >= INCARNATION_MAX:
            return False
        card = replace(self.card, meta=meta, incarnation=self.card.incarnation + 1)
        if not _has_room(card):
            card = replace(card, meta=replace(meta, why=""))
        self._write(card)
        return True

    def raise_boot(self, above: int) -> bool:
        """Make the session's number greater than `above`; say whether that was possible.

        Persist it before it is told.
        """
        if above >= BOOT_MAX:
            return False
        self._write(replace(self.card, boot=above + 1, incarnation=0))
        return True

    def _write(self, card: Card) -> None:
        self.card = card
        self.card_bytes = encode_card(card)


def _longest(card: Card) -> Card:
    """Return the largest that a card may become without another declaration."""
    name = _with_suffix(card.name, card.node_id)
    return replace(card, boot=BOOT_MAX, incarnation=INCARNATION_MAX, name=name)


def _has_room(card: Card) -> bool:
    try:
        encode_card(_longest(card))
    except ConfigError:
        return False
    return True


def _with_suffix(name: str, node_id: NodeId) -> str:
    suffix = f"-{format_id(node_id)[:4]}"
    return name[: NAME_CHARS_MAX - len(suffix)] + suffix
