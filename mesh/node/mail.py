"""Packets of this mesh: opened and counted when they are none, refused in words, closed for sending.

    a datagram ──► open_datagram ──► messages that may travel so, of this mesh, of another node
    a request  ──► open_request ───► a packet, or what to answer instead: another version, another mesh
    a reply    ──► open_reply ─────► its one message, or why it counts as none

What is dropped is counted by why; nothing else changes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

from mesh.core.ids import NO_MESH
from mesh.core.requests import Ask
from mesh.errors import DecodeError, ForeignMeshError, TransportError, VersionError
from mesh.membership.identity import Identity
from mesh.membership.swim import Swim
from mesh.node.delivery import Parcel
from mesh.node.work import Work
from mesh.wire.packet import (
    FRAME_BYTES_MAX,
    Packet,
    decode_packet,
    encode_datagram,
    encode_message,
    encode_packet,
)
from mesh.wire.swim_messages import Join, Ping, Refused

DATAGRAMS: Final = Swim.DATAGRAMS | Work.MESSAGES
OPEN_TO_STRANGERS: Final = (Join, Ping)
"""Requests that a node answers though the asker belongs to no mesh yet."""


class Mail:
    """What goes between bytes and messages, for the node of this identity. `counters` says what was dropped."""

    def __init__(self, identity: Identity) -> None:
        self.counters: Counter[str] = Counter()
        self._identity = identity

    def open_datagram(self, data: bytes) -> Packet | None:
        """Return the messages of a datagram that belong here; None: there are none."""
        try:
            packet = decode_packet(data)
        except DecodeError as error:
            self._count(error)
            return None
        mine = self._identity
        if packet.mesh_id != mine.mesh_id or packet.mesh_id == NO_MESH:
            self.counters["dropped_foreign_mesh"] += 1
            return None
        if packet.sender == mine.node_id:
            self.counters["dropped_own"] += 1
            return None
        placed = tuple([m for m in packet.messages if type(m) in DATAGRAMS])
        misplaced = len(packet.messages) - len(placed)
        if not misplaced:
            return packet if placed else None
        self.counters["dropped_misplaced"] += misplaced
        return replace(packet, messages=placed) if placed else None

    def open_request(self, data: bytes) -> Packet | Refused | None:
        """Return what came on a stream: one request, or a parcel of work; else what to answer; None: nothing."""
        try:
            packet = decode_packet(data, FRAME_BYTES_MAX)
            is_parcel = all(type(message) in Work.MESSAGES for message in packet.messages)
            if not is_parcel:
                _check_single(packet)
        except VersionError as error:
            self._count(error)
            return Refused("version", str(error))
        except DecodeError as error:
            self._count(error)
            return None
        mine = self._identity.mesh_id
        if packet.mesh_id == mine != NO_MESH:
            return packet
        is_open = isinstance(packet.messages[0], OPEN_TO_STRANGERS)
        if is_open and NO_MESH in {packet.mesh_id, mine}:
            return packet
        self.counters["dropped_foreign_mesh"] += 1
        return Refused("foreign_mesh", str(ForeignMeshError(packet.mesh_id, mine)))

    def open_reply(self, ask: Ask, reply: bytes | TransportError) -> Packet | Exception:
        """Return the reply to what was asked, or why it counts as none."""
        if isinstance(reply, TransportError):
            return reply
        try:
            packet = decode_packet(reply, FRAME_BYTES_MAX)
            _check_single(packet)
        except DecodeError as error:
            self._count(error)
            return error
        mine = self._identity.mesh_id
        if packet.mesh_id == mine or ask.may_be_foreign:
            return packet
        self.counters["dropped_foreign_mesh"] += 1
        return ForeignMeshError(packet.mesh_id, mine)

    def close(self, message: object) -> bytes:
        """Return the packet of a message, or of a parcel."""
        parts = message.parts if isinstance(message, Parcel) else (encode_message(message),)
        return encode_packet(self._identity.mesh_id, self._identity.node_id, parts)

    def close_datagram(self, parts: list[bytes]) -> bytes:
        """Return the datagram of messages that are encoded already."""
        return encode_datagram(self._identity.mesh_id, self._identity.node_id, parts)

    def _count(self, error: DecodeError) -> None:
        kind = "version" if isinstance(error, VersionError) else "garbage"
        self.counters[f"dropped_{kind}"] += 1


def _check_single(packet: Packet) -> None:
    if len(packet.messages) != 1:
        raise DecodeError(f"one message is expected on a stream, found {len(packet.messages)}")
