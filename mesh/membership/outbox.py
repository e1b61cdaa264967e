"""Packets on their way out: each filled up with rumours to the limit.

Every datagram that leaves takes news along (piggyback), so that an idle mesh spreads it without
packets of its own. Outputs are collected in order and taken by the node.

Source: piggybacking on ping, ping-req and ack [SWIM §4.1].
"""

from __future__ import annotations

from collections.abc import Hashable

from mesh.core.address import Address
from mesh.core.effects import Effect, SendDatagram
from mesh.core.ids import NodeId
from mesh.core.requests import Ask, Dial, Outgoing
from mesh.membership.dissemination import Dissemination
from mesh.membership.identity import Identity
from mesh.membership.table import MemberTable
from mesh.wire.packet import HEADER, PACKET_BYTES_MAX, encode_datagram, encode_message


class Outbox:
    """Collects outputs; knows how to fill a packet."""

    __slots__ = ("_identity", "_news", "_out", "_table")

    def __init__(self, identity: Identity, table: MemberTable, news: Dissemination) -> None:
        self._identity = identity
        self._table = table
        self._news = news
        self._out: list[Outgoing] = []

    def send(self, to: Address, *messages: object, about: NodeId | None = None) -> None:
        """Send messages in one datagram, filled up with rumours; `about` is on board already."""
        parts = [encode_message(message) for message in messages]
        room = PACKET_BYTES_MAX - HEADER.size - sum(map(len, parts))
        parts += self._news.take(room, self._table.size, about)
        self._post(to, parts)

    def gossip(self, to: Address, *, counts: bool = True) -> bool:
        """Send rumours alone, and count them as told or not; say whether there were any."""
        room = PACKET_BYTES_MAX - HEADER.size
        parts = self._news.take(room, self._table.size) if counts else self._news.riders(room)
        if parts:
            self._post(to, parts)
        return bool(parts)

    def ask(
        self,
        to: Address,
        message: object,
        tag: Hashable,
        timeout_s: float,
        *,
        may_be_foreign: bool = False,
    ) -> None:
        """Start an exchange; `may_be_foreign`: the reply may come from another mesh, or from none."""
        self._out.append(Ask(to, message, tag, timeout_s, may_be_foreign))

    def dial(self, to: Address, message: object, lifeline_id: int) -> None:
        """Open a lifeline."""
        self._out.append(Dial(to, message, lifeline_id))

    def do(self, effect: Effect) -> None:
        """Add an effect as it is."""
        self._out.append(effect)

    def take(self) -> list[Outgoing]:
        """Return and forget what was collected, in order."""
        out, self._out = self._out, []
        return out

    def _post(self, to: Address, parts: list[bytes]) -> None:
        identity = self._identity
        data = encode_datagram(identity.mesh_id, identity.node_id, parts)
        self._out.append(SendDatagram(to, data))
