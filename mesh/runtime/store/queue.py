"""What waits to be written: in order, and bounded, in number and in bytes.

Whoever writes is the node's one thread, which may not wait: gossip would stop with it. So a full queue is
an error, and not a pause; and well before that the store has no more room, which the driver is to ask before
it takes on what must be written. A peer whose request is dropped asks again. What was taken on fits in.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from mesh.core.stored import StoredRecord
from mesh.runtime.store.faults import StoreBusyError, StoreFailedError

WRITES_MAX: Final = 65_536
BYTES_MAX: Final = 64 * 1024 * 1024
ROOM_SHARE: Final = 0.5
"""Up to this share of either bound the queue has room; the rest is for what was taken on before."""

Durability: TypeAlias = Literal["fsync", "memory"]
"""fsync: it survives a power cut. memory: it survives the death of this process, and not of the host."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write: all of it is committed, or nothing."""

    records: tuple[StoredRecord, ...]
    numbers: Mapping[str, int]
    forget: tuple[bytes, ...]
    is_synced: bool

    @property
    def size_bytes(self) -> int:
        """Return about what this takes while it waits."""
        return (
            200
            + sum(record.size_bytes for record in self.records)
            + 100 * (len(self.numbers) + len(self.forget))
        )


class Queue:
    """Writes on their way to the disk. `put` from the node's thread, `take` from the writer's."""

    def __init__(
        self, path: Path, writes_max: int = WRITES_MAX, bytes_max: int = BYTES_MAX
    ) -> None:
        self._path = path
        self._writes_max, self._bytes_max = writes_max, bytes_max
        self._changed = threading.Condition()
        self._waiting: list[Write] = []
        self._writes = self._bytes = 0  # with those that are being committed
        self._last_ticket = 0
        self._end: str | None = None

    @property
    def has_room(self) -> bool:
        """Say whether new work may be taken on."""
        return (
            self._writes < self._writes_max * ROOM_SHARE
            and self._bytes < self._bytes_max * ROOM_SHARE
        )

    @property
    def waiting_bytes(self) -> int:
        """Return about how much waits, with what is being committed."""
        return self._bytes

    def put(self, write: Write) -> int:
        """Queue a write; return its ticket, one more than the last.

        Raises:
            StoreBusyError: it is full. Nothing was queued.
            StoreFailedError: nothing more is written. Nothing was queued.
        """
        size_bytes = write.size_bytes
        with self._changed:
            if self._end is not None:
                raise StoreFailedError(f"{self._path} takes no writes: {self._end}")
            if self._writes >= self._writes_max or self._bytes + size_bytes > self._bytes_max:
                raise StoreBusyError(
                    f"at most {self._writes_max} writes and {self._bytes_max} bytes may wait for the disk, found "
                    f"{self._writes} and {self._bytes}: this disk is too slow for what is asked of it, or stands still"
                )
            self._waiting.append(write)
            self._writes += 1
            self._bytes += size_bytes
            self._last_ticket += 1
            self._changed.notify()
            return self._last_ticket

    def take(self) -> list[Write]:
        """Wait for writes and return all of them, in order; [] when the queue was ended and is empty."""
        with self._changed:
            while not self._waiting and self._end is None:
                self._changed.wait()
            taken, self._waiting = self._waiting, []
            return taken

    def release(self, writes: Sequence[Write]) -> None:
        """Give back the room of writes that are committed."""
        size_bytes = sum(write.size_bytes for write in writes)
        with self._changed:
            self._writes -= len(writes)
            self._bytes -= size_bytes

    def end(self, why: str, *, drop: bool = False) -> None:
        """Take nothing more. What waits is still taken out, unless it is to be dropped. The first reason stays."""
        with self._changed:
            if self._end is None:
                self._end = why
            if drop:
                self._waiting = []
            self._changed.notify_all()
