"""A packet: an 18-byte header and one or more messages. The same on datagrams and on streams.

    magic 'M' | version u8 | mesh_id u64 | sender u64 | message | message | …

A message is a msgpack list: its code, then its fields in order. Decoding is total: whatever bytes
come in, the outcome is a packet or a DecodeError, and nothing is built before it was checked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from mesh.core.ids import MeshId, NodeId
from mesh.errors import DecodeError, LocalProtocolError, VersionError
from mesh.wire import (
    contest_messages,
    parcel_messages,
    register_messages,
    repair_messages,
    roster_messages,
    swim_messages,
    task_messages,
    work_messages,
)
from mesh.wire.schema import describe

MAGIC: Final = 0x4D
VERSION: Final = 2
"""Within one version messages have one shape (`schema.struct`): whoever changes one raises this."""

VERSIONS: Final = (2, 2)  # the range spoken here, both inclusive
HEADER: Final = struct.Struct(">BBQQ")
DATAGRAM_BYTES_MAX: Final = 1400
PACKET_BYTES_MAX: Final = DATAGRAM_BYTES_MAX - 48
"""What a packet may take up in a datagram that leaves; the rest is kept for its seal.

A seal takes 20 bytes, and 20 more while two nodes are new to each other.
"""

FRAME_BYTES_MAX: Final = 8 * 1024 * 1024
MESSAGES_MAX: Final = 256  # in one packet

# The longest list in a packet, by the packet's limit. msgpack makes room for as many items as a list
# announces, at every depth, before it has seen one: 1,400 bytes of nested lists cost 5 MB without this.
DATAGRAM_ITEMS_MAX: Final = 64
_FRAME_ITEMS_MAX: Final = max(swim_messages.MEMBERS_MAX, register_messages.LEASES_MAX)

_BY_CODE: Final = {
    **swim_messages.SCHEMAS,
    **work_messages.SCHEMAS,
    **register_messages.SCHEMAS,
    **roster_messages.SCHEMAS,
    **task_messages.SCHEMAS,
    **parcel_messages.SCHEMAS,
    **repair_messages.SCHEMAS,
    **contest_messages.SCHEMAS,
}
_BY_TYPE: Final = {kind: (code, field) for code, (kind, field) in _BY_CODE.items()}


@dataclass(frozen=True, slots=True)
class Packet:
    """What a valid packet held. `messages` is never empty."""

    mesh_id: MeshId
    sender: NodeId
    messages: tuple[Any, ...]


def encode_message(message: object) -> bytes:
    """Return the bytes of one message, to be joined by `encode_packet`."""
    entry = _BY_TYPE.get(type(message))
    if entry is None:
        raise LocalProtocolError(
            f"{type(message).__name__} has no code: add it to its SCHEMAS table"
        )
    code, field = entry
    return bytes(msgpack.packb([code, *field.pack(message)]))


def encode_packet(mesh_id: MeshId, sender: NodeId, messages: Iterable[bytes]) -> bytes:
    """Return a packet of messages that are encoded already. The caller keeps to the size limit."""
    return HEADER.pack(MAGIC, VERSION, mesh_id, sender) + b"".join(messages)


def encode_datagram(mesh_id: MeshId, sender: NodeId, messages: Iterable[bytes]) -> bytes:
    """Return `encode_packet` for a datagram.

    Raises:
        LocalProtocolError: the packet is longer than PACKET_BYTES_MAX.
    """
    data = encode_packet(mesh_id, sender, messages)
    if len(data) > PACKET_BYTES_MAX:
        raise LocalProtocolError(
            f"a packet of at most {PACKET_BYTES_MAX} bytes fits into a datagram, found {len(data)}: "
            "send less at once, or ask on a stream"
        )
    return data


def decode_packet(data: bytes, bytes_max: int = DATAGRAM_BYTES_MAX) -> Packet:
    """Return the packet in `data`.

    Raises:
        VersionError: the header names a version that is not spoken here.
        DecodeError: anything else is wrong. Nothing else is ever raised.
    """
    if len(data) > bytes_max:
        raise DecodeError(f"at most {bytes_max} bytes are expected, found {len(data)}")
    if len(data) < HEADER.size:
        raise DecodeError(f"a header of {HEADER.size} bytes is expected, found {len(data)} bytes")
    magic, version, mesh_id, sender = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise DecodeError(
            f"a packet begins with byte 0x{MAGIC:02x}, found 0x{magic:02x}: not a mesh"
        )
    if not VERSIONS[0] <= version <= VERSIONS[1]:
        raise VersionError(version, VERSIONS)
    if sender == 0:
        raise DecodeError("a sender's id other than 0 is expected")
    items_max = DATAGRAM_ITEMS_MAX if bytes_max <= DATAGRAM_BYTES_MAX else _FRAME_ITEMS_MAX
    messages = tuple(_decode_messages(data, items_max))
    if not messages:
        raise DecodeError("at least one message is expected after the header, found none")
    return Packet(MeshId(mesh_id), NodeId(sender), messages)


def _decode_messages(data: bytes, items_max: int) -> list[Any]:
    unpacker = msgpack.Unpacker(
        max_buffer_size=len(data), max_array_len=items_max, max_map_len=0, max_ext_len=0
    )
    unpacker.feed(memoryview(data)[HEADER.size :])
    end = len(data) - HEADER.size
    found: list[Any] = []
    while unpacker.tell() < end:
        if len(found) == MESSAGES_MAX:
            raise DecodeError(f"at most {MESSAGES_MAX} messages are expected, found more")
        try:
            raw = unpacker.unpack()
        except Exception as error:
            raise DecodeError(
                f"a message is expected, found bytes that are no msgpack: {error}"
            ) from error
        if type(raw) is not list or not raw:
            raise DecodeError(
                f"a message is a list that begins with its code, found {describe(raw)}"
            )
        entry = _BY_CODE.get(raw[0]) if type(raw[0]) is int else None
        if entry is None:
            raise DecodeError(
                f"a message code of version {VERSION} is expected, found {describe(raw[0])}"
            )
        found.append(entry[1].unpack(raw[1:]))
    return found
