"""Who founds, when all hosts start at once with the same seeds and `--expect N`.

Every seeking node keeps the others that it has *heard from* lately. Once these and itself are N, the
one with the lowest id founds; the rest find it at their next round. Cards heard of through others
only say whom to ask, so that a node that died before the founding holds nobody up.

N is the number of hosts that start: with N of them counted, everybody has met the same ones. If more
than N start, two parts of them may found a mesh each; they never merge, and their nodes say so.
"""

from __future__ import annotations

from typing import Final

from mesh.core.ids import NodeId
from mesh.wire.records import Card, encode_card
from mesh.wire.swim_messages import MET_MAX

FRESH_ROUNDS: Final = 5
"""Another seeking node counts as met for this many rounds after it was last heard from."""


class Founding:
    """The other seeking nodes. `expect` 0: this node never founds with seeds."""

    def __init__(self, expect: int, join_retry_s: float) -> None:
        self.expect = expect
        self._fresh_s = FRESH_ROUNDS * join_retry_s
        self._heard_at: dict[NodeId, float] = {}
        self._cards: dict[NodeId, Card] = {}

    def heard(self, now: float, card: Card) -> None:
        """Note that a seeking node spoke to this one."""
        self.heard_of(card)
        if card.node_id in self._cards:
            self._heard_at[card.node_id] = now

    def heard_of(self, card: Card) -> None:
        """Note that a seeking node exists."""
        if len(self._cards) < MET_MAX - 1 or card.node_id in self._cards:
            self._cards[card.node_id] = card

    def known(self) -> list[Card]:
        """Return the cards of all other seeking nodes, to ask them."""
        return list(self._cards.values())

    def cards(self, own: bytes) -> tuple[bytes, ...]:
        """Return what to tell another seeking node: this node's card, then those it knows."""
        return (own, *(encode_card(card) for card in self._cards.values()))

    def is_mine(self, now: float, own: NodeId) -> bool:
        """Say whether enough have met and this node is to found."""
        met = [node_id for node_id, at in self._heard_at.items() if now - at <= self._fresh_s]
        return 0 < self.expect <= len(met) + 1 and all(own < node_id for node_id in met)
