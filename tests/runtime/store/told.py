"""What the tests of the store share: a listener that waits for commits, and records that are short to write."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from mesh.core.stored import StoredRecord
from mesh.errors import MeshError
from mesh.runtime.store.store import Store
from mesh.runtime.store.writer import Progress

WIDTH: Final = 8
DEADLINE_S: Final = 20.0


def ballot(n: int) -> bytes:
    """Return the n-th ballot."""
    return n.to_bytes(WIDTH, "big")


def promise(key: bytes, n: int) -> StoredRecord:
    """Return a record that promised, and accepted nothing."""
    return StoredRecord(key, ballot(n), None, 0, None)


def accept(key: bytes, n: int, seq: int = 0, value: bytes = b"v") -> StoredRecord:
    """Return a record that accepted a value."""
    return StoredRecord(key, ballot(n), ballot(n), seq, value)


class Told:
    """Hears of commits. While `gate` is clear, the writer's thread waits in the report."""

    def __init__(self) -> None:
        self.heard: list[Progress] = []
        self.gate = threading.Event()
        self.gate.set()
        self._changed = threading.Condition()

    def __call__(self, progress: Progress) -> None:
        with self._changed:
            self.heard.append(progress)
            self._changed.notify_all()
        assert self.gate.wait(DEADLINE_S)

    @property
    def ticket(self) -> int:
        """The last ticket that was reported."""
        return self.heard[-1].ticket if self.heard else 0

    @property
    def error(self) -> MeshError | None:
        """What ended the store, if anything did."""
        return self.heard[-1].error if self.heard else None

    def wait(self, ticket: int) -> Progress:
        """Wait until a ticket was reported, or that the store failed; return that report."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.ticket >= ticket or self.error, DEADLINE_S)
            return self.heard[-1]

    def wait_for_failure(self) -> MeshError:
        """Wait until the store has failed, and return how."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.error, DEADLINE_S)
            assert self.error is not None
            return self.error


class Shop:
    """A store in a directory, that is opened and closed again and again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.told = Told()
        self._store: Store | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.told.gate.set()
        self.close()

    @property
    def store(self) -> Store:
        """The store that is open."""
        assert self._store is not None
        return self._store

    def open(self, identity: bytes | None = None) -> Store:
        """Open the store, with a listener that has heard of nothing."""
        self.close()
        self.told = Told()
        self._store = Store.open(self.path, ballot_bytes=WIDTH, report=self.told, identity=identity)
        return self._store

    def close(self) -> None:
        """Close the store, if one is open."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def write(self, *records: StoredRecord, **rest: object) -> Progress:
        """Write and wait until it is reported."""
        return self.told.wait(self.store.write(records, **rest))  # type: ignore[arg-type]  # handed on as it came

    def kept(self) -> dict[bytes, StoredRecord]:
        """Open it anew and return all that it holds."""
        return {record.key: record for record in self.open().read_all()}
