"""The node's stream as something to select on: events so far, then views and events as they come.

The command line's client blocks; a screen must not, for it also waits for keys. This reader speaks the
same protocol on the control socket: it asks for the latest events first, then for views.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgpack

from mesh.client import ANSWER_BYTES_MAX, how_to_start, socket_address
from mesh.errors import CommandRefused, DecodeError, MeshUnreachable
from mesh.tui.board import EVENTS_MAX
from mesh.tui.reading import Json
from mesh.wire.frames import FrameReader, frame

VIEW_INTERVAL_S: Final = 1.0
_READ_BYTES: Final = 256 * 1024
_READS_MAX: Final = 16
_CONNECT_WAIT_S: Final = 1.0


class Feed:
    """One connection to the node of `data_dir`, opened by `connect`; nothing here waits for long."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir.absolute()
        self._socket: socket.socket | None = None
        self._frames = FrameReader(ANSWER_BYTES_MAX)
        self._has_history = False

    def connect(self) -> None:
        """Connect, and ask for the latest events.

        Raises:
            MeshUnreachable: no node answers at that place.
        """
        self.close()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_CONNECT_WAIT_S)
            with socket_address(self._data_dir) as address:
                connection.connect(address)
            connection.sendall(_request({"do": "events", "follow": False, "last": EVENTS_MAX}))
            connection.setblocking(False)
        except OSError as error:
            connection.close()
            reason = error.strerror or str(error)
            raise MeshUnreachable(
                f"a running node is expected in {self._data_dir}, found none ({reason}); "
                f"{how_to_start(self._data_dir)}"
            ) from error
        self._socket = connection
        self._frames = FrameReader(ANSWER_BYTES_MAX)
        self._has_history = False

    @property
    def fd(self) -> int | None:
        """What becomes readable when the node says something; None while not connected."""
        return None if self._socket is None else self._socket.fileno()

    def take(self) -> list[Json]:
        """Return what the node said since the last call: `{"view": …}` and `{"event": …}`, in order.

        Raises:
            MeshUnreachable: the node closed the connection, or talks nonsense. The feed is closed.
            CommandRefused: the node does not give this stream. The feed is closed.
        """
        try:
            return [item for body in self._bodies() for item in self._items(body)]
        except (OSError, DecodeError) as error:
            self.close()
            reason = getattr(error, "strerror", None) or str(error)
            raise MeshUnreachable(reason) from error
        except (MeshUnreachable, CommandRefused):
            self.close()
            raise

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _bodies(self) -> list[bytes]:
        """Read what is there, bounded, so that a flood of views leaves room for keys."""
        bodies: list[bytes] = []
        if self._socket is None:
            return bodies
        with contextlib.suppress(BlockingIOError):
            for _ in range(_READS_MAX):
                data = self._socket.recv(_READ_BYTES)
                if not data:
                    raise MeshUnreachable("it closed the connection")
                bodies += self._frames.feed(data)
        return bodies

    def _items(self, body: bytes) -> list[Json]:
        answer = _decode(body)
        if "error" in answer:
            raise CommandRefused(str(answer["error"]))
        if "item" in answer:
            item = answer["item"]
            if not isinstance(item, Mapping):
                return []
            return [item] if self._has_history else [{"event": item}]
        if "ok" in answer and not self._has_history and self._socket is not None:
            self._has_history = True
            self._socket.sendall(_request({"do": "views", "interval_s": VIEW_INTERVAL_S}))
        return []


def _request(body: Mapping[str, object]) -> bytes:
    return frame(msgpack.packb(body))


def _decode(body: bytes) -> Json:
    """Return the map that `body` holds.

    Raises:
        DecodeError: it holds none.
    """
    try:
        answer = msgpack.unpackb(body, strict_map_key=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise DecodeError(f"a map in msgpack is expected from the node: {error}") from error
    if not isinstance(answer, dict):
        raise DecodeError(f"a map is expected from the node, found {type(answer).__name__}")
    return answer
