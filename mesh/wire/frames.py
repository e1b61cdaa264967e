"""Length-framed streams: bytes in any pieces go in, whole frames come out.

A frame is a 4-byte length and that many bytes. Between nodes the body begins with the exchange's
id and kind, so that many exchanges share one connection; on the control socket it is one msgpack map.
The limit stands before anything is stored.

Source: a parser without I/O follows h11.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

from mesh.errors import DecodeError

_LENGTH: Final = struct.Struct(">I")
_EXCHANGE: Final = struct.Struct(">IB")


class FrameKind(IntEnum):
    """What an exchange's frame is."""

    REQUEST = 0
    REPLY = 1
    RING = 2
    """Key rings, for the runtime itself: the asker's, then the answerer's. On sealed streams only."""


class FrameReader:
    """Cuts a byte stream into frames of at most `frame_bytes_max` bytes each."""

    def __init__(self, frame_bytes_max: int) -> None:
        self._max = frame_bytes_max
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Take more bytes and return the frames that they complete, in order.

        Raises:
            DecodeError: a frame announces more than the limit; the stream is of no use any more.
        """
        self._buffer += data
        frames = []
        start = 0
        while len(self._buffer) - start >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._buffer, start)
            if size > self._max:
                raise DecodeError(f"a frame of at most {self._max} bytes is expected, found {size}")
            end = start + _LENGTH.size + size
            if len(self._buffer) < end:
                break
            frames.append(bytes(self._buffer[start + _LENGTH.size : end]))
            start = end
        if start:
            del self._buffer[:start]
        return frames

    @property
    def is_empty(self) -> bool:
        """Say whether no part of a frame is held: the stream may end here."""
        return not self._buffer


def frame(body: bytes) -> bytes:
    """Return `body` with its length before it."""
    return _LENGTH.pack(len(body)) + body


EMPTY_FRAME: Final = frame(b"")
"""What a stream can carry without saying anything."""


def exchange_body(exchange_id: int, kind: FrameKind, packet: bytes) -> bytes:
    """Return the body of a frame for one half of an exchange."""
    return _EXCHANGE.pack(exchange_id, kind) + packet


def exchange_frame(exchange_id: int, kind: FrameKind, packet: bytes) -> bytes:
    """Return the frame of one half of an exchange."""
    return frame(exchange_body(exchange_id, kind, packet))


def split_exchange(body: bytes) -> tuple[int, FrameKind, bytes]:
    """Return (exchange id, kind, packet) of a frame's body.

    Raises:
        DecodeError: the body is too short, or its kind unknown.
    """
    if len(body) < _EXCHANGE.size:
        raise DecodeError(
            f"an exchange's frame has at least {_EXCHANGE.size} bytes, found {len(body)}"
        )
    exchange_id, kind = _EXCHANGE.unpack_from(body)
    if kind > FrameKind.RING:
        raise DecodeError(f"a frame is a request (0), a reply (1) or a ring (2), found {kind}")
    return exchange_id, FrameKind(kind), body[_EXCHANGE.size :]
