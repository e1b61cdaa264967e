"""The store of registers: open it, read all of it once, then write, and hold back what depends on a write.

    store = Store.open(path, ballot_bytes=24, report=report_to_trio(driver.handle_progress))
    for record in store.read_all(): …
    ticket = store.write([record], numbers={"n": 7})     # returns at once
    …                                                    # driver.handle_progress(Progress(ticket, …))

Nothing of a record is kept in memory here. A record that is forgotten leaves nothing behind, not even that it
was there: whoever purges one knows that it never comes back.

On return of `open` the pages of an earlier session are in the database file, written anew and fsynced. That is
on purpose: after an fsync that failed, the system may show what it has in memory as if it were on disk.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from mesh.core.stored import StoredRecord
from mesh.errors import LocalProtocolError
from mesh.runtime.store.connection import DATABASE, LOG, check_pages, open_writer, reading
from mesh.runtime.store.faults import (
    SQLITE_ERRORS,
    StoreDiskError,
    StoreRolledBackError,
    damaged,
    explain,
)
from mesh.runtime.store.identity import StoreIdentity, found_store, missing, read_numbers
from mesh.runtime.store.lock import take_lock
from mesh.runtime.store.place import Place
from mesh.runtime.store.queue import Durability, Queue, Write
from mesh.runtime.store.record import (
    ALL_ROWS,
    KEY_BYTES_MAX,
    check_number,
    check_record,
    from_row,
)
from mesh.runtime.store.schema import migrate
from mesh.runtime.store.tail import Tail, read_tail
from mesh.runtime.store.writer import Report, Writer


class Store:
    """An open, locked store. `write` from one thread; `close` commits what waits and lets another in."""

    def __init__(self, path: Path, lock_fd: int, opened: _Opened, report: Report) -> None:
        self.path = path
        self.identity = opened.store.identity
        """16 bytes, random, written once: which store this is."""

        self.numbers: Mapping[str, int] = opened.numbers
        """The named integers, as they were when it was opened."""

        self._ballot_bytes = opened.store.ballot_bytes
        self._lock_fd = lock_fd
        self._queue = Queue(path)
        self._place = opened.place
        self._writer = Writer(opened.connection, opened.place, opened.store, self._queue, report)
        self._writer.start()

    @classmethod
    def open(
        cls, path: Path, *, ballot_bytes: int, report: Report, identity: bytes | None = None
    ) -> Self:
        """Create or open the store in a directory, check it, and start its writer.

        Args:
            path: a directory of its own; it is made if it is not there.
            ballot_bytes: the width of all ballots, 1 to 128.
            report: told of each commit, in order, from the writer's thread.
            identity: which store this node had; then no other is opened, and none is made.

        Raises:
            StoreError: it cannot be used; a store that was there holds what it held.
        """
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            lock_fd = take_lock(path)
        except OSError as error:
            raise _unusable(path, error) from error
        try:
            return cls(path, lock_fd, _open_checked(path, lock_fd, ballot_bytes, identity), report)
        except OSError as error:
            os.close(lock_fd)
            raise _unusable(path, error) from error
        except BaseException:
            os.close(lock_fd)
            raise

    @property
    def position(self) -> int:
        """Return how many commits it holds: what a peer may be told, to hold against an older copy."""
        return self._writer.position

    @property
    def synced_position(self) -> int:
        """Return how many of them survive a power cut: behind `position` while writes ask for no fsync."""
        return self._writer.synced_position

    @property
    def has_room(self) -> bool:
        """Say whether to take on more that must be written. Ask before; what was taken on fits in."""
        return self._queue.has_room

    @property
    def waiting_bytes(self) -> int:
        """Return about how much waits to be written."""
        return self._queue.waiting_bytes

    def check_place(self) -> None:
        """Look whether its files are still there, as the writer does after each commit.

        Raises:
            StoreReplacedError: they were removed, or others are there. What is written now is lost.
        """
        self._place.check()

    def check_position(self, seen: int) -> None:
        """Compare with the position that a peer has seen of this store, before the first vote of a session.

        Later it may have caught up with what was lost.

        Raises:
            StoreRolledBackError: it has gone back. This node must not vote by it.
        """
        if self.position < seen:
            raise StoreRolledBackError(self.path, self.position, seen)

    def read_all(self) -> Iterator[StoredRecord]:
        """Yield every record, in no order, as of one commit. It takes about a microsecond each, and a page of memory.

        Raises:
            StoreError: what is read is not what was written, or cannot be read; records before it were whole.
        """
        with _explaining(self.path), reading(self.path) as connection:
            for row in connection.execute(ALL_ROWS):
                yield from_row(row, self.path, self._ballot_bytes)

    def write(
        self,
        records: Iterable[StoredRecord] = (),
        *,
        numbers: Mapping[str, int] | None = None,
        forget: Iterable[bytes] = (),
        durability: Durability = "fsync",
    ) -> int:
        """Queue records, numbers and keys to forget as one write, and return its ticket: 1, 2, 3, ….

        All of it is committed, or nothing. Until `report` has told of this ticket, nothing that rests on the write
        may leave the process. `promised`, `(ballot, seq)` and numbers never go down, and `(ballot, seq)` names one
        value: a write that breaks this is a bug, and ends the store as a failure does.

        Raises:
            LocalProtocolError: no such record can be. Nothing was queued, and the store goes on.
            StoreBusyError: too much waits. Nothing was queued, and the store goes on.
            StoreFailedError: it has failed, or is closed. Nothing was queued.
        """
        write = Write(
            tuple(records), dict(numbers or {}), tuple(forget), is_synced=durability == "fsync"
        )
        for record in write.records:
            check_record(record, self._ballot_bytes)
        for name, value in write.numbers.items():
            check_number(name, value)
        for key in write.forget:
            if not 0 < len(key) <= KEY_BYTES_MAX:
                raise LocalProtocolError(
                    f"a key of 1 to {KEY_BYTES_MAX} bytes is expected, found {len(key)}"
                )
        if write.forget and not {record.key for record in write.records}.isdisjoint(write.forget):
            raise LocalProtocolError("a write keeps a key or forgets it, found one that does both")
        return self._queue.put(write)

    def close(self) -> None:
        """Commit what waits, end the writer and release the lock. Harmless when repeated."""
        self._queue.end("it is closed")
        self._writer.join()
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1


class _Opened(NamedTuple):
    connection: sqlite3.Connection
    store: StoreIdentity
    numbers: dict[str, int]
    place: Place


def _open_checked(path: Path, lock_fd: int, ballot_bytes: int, identity: bytes | None) -> _Opened:
    """Open the database and make sure that it is whole, and the one that is expected."""
    database = path / DATABASE
    if not database.exists():
        if identity is not None:
            raise missing(path, identity)
        # Made here, for SQLite would let others read it.
        os.close(os.open(database, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    tail = read_tail(path / LOG)
    with _explaining(database):
        connection = open_writer(path)
        try:
            migrate(connection, database)
            _check_whole(connection, path, tail)
            store = found_store(connection, database, ballot_bytes, identity)
            numbers = read_numbers(connection, database)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            _sync_directory(path)
            _sync_directory(path.parent)
            place = Place(path, lock_fd)
        except BaseException:
            connection.close()
            raise
    return _Opened(connection, store, numbers, place)


def _check_whole(connection: sqlite3.Connection, path: Path, tail: Tail) -> None:
    _, frames, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if lost := tail.lost_after(frames):
        found = f"it broken off before {lost} of its commits"
        raise damaged(path / LOG, "a log that is whole", found)
    if wrong := check_pages(connection):
        raise damaged(path / DATABASE, "a database that is whole", wrong)


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    try:
        yield
    except SQLITE_ERRORS as error:
        raise explain(error, path) from error


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _unusable(path: Path, error: OSError) -> StoreDiskError:
    return StoreDiskError(
        f"{path}: a directory that can be written is expected, found: {error.strerror}; make it writable, or name "
        "another data directory with --data",
        f"errno {error.errno}",
    )
