"""The one thread that commits writes, in groups, in the order in which they came.

    the node's thread     put 1   put 2  put 3  put 4          … effects behind 1 … behind 2, 3, 4
                            │       └──────┴──────┤                   ▲                ▲
    the writer's thread     └ commit 1 ── fsync ──┴ commit 2, 3, 4 ── │ ──── fsync ────┘

Whatever comes while a commit runs goes into the next one: an fsync is paid for once for all of them. Since
everything is committed in order, one number says what is: the last ticket. After anything that goes wrong,
nothing more is written: what was reported is on disk, and of the rest nobody says that it is.

A commit costs one fsync of the log if any write of its group asks for one, and none otherwise
(`PRAGMA synchronous`, switched between transactions). The log is one file, so that an fsync covers all that was
written before. When the log is long its pages are copied back, which is two more, whoever wrote them.

A commit counts if the files that took it are those that the next start will find (`place`): that is asked after
each, before it is told.

Source: group commit is as old as the log; the rule 'persist, then send' is that of etcd's Ready.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from mesh.errors import LocalProtocolError, MeshError
from mesh.runtime.store.faults import SQLITE_ERRORS, StoreError, explain
from mesh.runtime.store.identity import StoreIdentity
from mesh.runtime.store.place import Place
from mesh.runtime.store.queue import Queue, Write
from mesh.runtime.store.record import Row, number_checksum, to_row
from mesh.runtime.store.tail import PAGE_BYTES

CHECKPOINT_PAGES: Final = 4000
"""The log is copied back when it has about so many pages, 16 MiB."""

# Blobs compare byte by byte from the left; of one width, that is the order of ballots. None is below all.
_PUT: Final = """
INSERT INTO registers (key, promised, ballot, seq, value, checksum) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET promised = excluded.promised, ballot = excluded.ballot,
    seq = excluded.seq, value = excluded.value, checksum = excluded.checksum
WHERE ifnull(excluded.promised, x'') >= ifnull(promised, x'')
  AND ((ifnull(excluded.ballot, x''), excluded.seq) > (ifnull(ballot, x''), seq)
       OR (excluded.ballot IS ballot AND excluded.seq = seq AND excluded.value IS value))
"""
_PUT_NUMBER: Final = """
INSERT INTO numbers (name, value, checksum) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, checksum = excluded.checksum
WHERE excluded.value >= value
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the store has come: what is held back for a ticket up to this one may go out."""

    ticket: int
    position: int
    error: MeshError | None = None
    """The store has failed: nothing after `ticket` was committed, as far as anybody knows, and nothing will be."""


Report: TypeAlias = Callable[[Progress], None]
"""Called in the writer's thread after each commit; must neither wait nor raise."""


class Writer:
    """Commits what is in a queue until that is ended. The connection is its own from `start` on."""

    def __init__(
        self, connection: sqlite3.Connection, place: Place, store: StoreIdentity, queue: Queue, report: Report
    ) -> None:  # fmt: skip
        self.position = self.synced_position = store.position
        self._connection, self._place, self._store = connection, place, store
        self._path = place.directory
        self._queue, self._report = queue, report
        self._ticket = 0
        self._is_full_sync = True
        self._log_pages = 0
        self._thread = threading.Thread(target=self._run, name="mesh-store", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait until the thread has ended: the queue was ended, and what was in it is committed or given up."""
        self._thread.join()

    def _run(self) -> None:
        try:
            while group := self._queue.take():
                self._write(group)
        except SQLITE_ERRORS as error:
            self._fail(explain(error, self._path))
        except MeshError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing may be said to be written after it
            self._fail(
                StoreError(f"{self._path}: the writer met a bug: {error!r}; please report it")
            )
        finally:
            self._connection.close()  # takes back what was not committed

    def _fail(self, error: MeshError) -> None:
        self._queue.end(str(error), drop=True)
        self._report(Progress(self._ticket, self.position, error))

    def _write(self, group: Sequence[Write]) -> None:
        try:
            self._commit(group)
        except LocalProtocolError:
            if len(group) == 1:
                raise
            for write in group:  # one of them broke the rules: those before it did not
                self._commit([write])
        if self._log_pages >= CHECKPOINT_PAGES:
            self._checkpoint()

    def _commit(self, group: Sequence[Write]) -> None:
        is_synced = any(write.is_synced for write in group)
        if is_synced != self._is_full_sync:
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if is_synced else 'NORMAL'}")
            self._is_full_sync = is_synced
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._apply(group)
        except LocalProtocolError:
            self._connection.execute("ROLLBACK")
            raise
        self._store.stamp(self._connection, self.position + 1)
        self._connection.execute("COMMIT")
        self._place.check()  # after it: what went to a file that has no name any more is not kept
        self.position += 1
        if is_synced:
            self.synced_position = self.position
        self._ticket += len(group)
        self._log_pages += _pages_of(group)
        self._queue.release(group)
        self._report(Progress(self._ticket, self.position))

    def _apply(self, group: Sequence[Write]) -> None:
        rows: list[Row] = []
        numbers: list[tuple[str, int, int]] = []
        for write in group:
            if write.forget:  # what was put before goes, what is put after stays
                self._put(rows)
                rows = []
                self._connection.executemany(
                    "DELETE FROM registers WHERE key = ?", [(key,) for key in write.forget]
                )
            rows += map(to_row, write.records)
            numbers += [(name, n, number_checksum(name, n)) for name, n in write.numbers.items()]
        self._put(rows)
        if numbers and self._connection.executemany(_PUT_NUMBER, numbers).rowcount < len(numbers):
            found = dict(self._connection.execute("SELECT name, value FROM numbers").fetchall())
            lower = [
                f"{name}: {n} after {found[name]}" for name, n, _ in numbers if n < found[name]
            ]
            raise LocalProtocolError(
                f"numbers never go down, found {', '.join(lower)}; nothing was written"
            )

    def _put(self, rows: Sequence[Row]) -> None:
        if not rows or self._connection.executemany(_PUT, rows).rowcount == len(rows):
            return
        latest = {row[0]: row for row in rows}
        for key, row in latest.items():
            query = "SELECT promised, ballot, seq FROM registers WHERE key = ?"
            found = self._connection.execute(query, (key,)).fetchone()
            if row[1:4] != found:
                was, now = _as_text(found), _as_text(row[1:4])
                raise LocalProtocolError(
                    f"promised and (ballot, seq) of key {key.hex()} never go down, found {now} after {was}; "
                    "nothing was written"
                )
        raise LocalProtocolError(
            "each (ballot, seq) names one value, and none goes down; found it otherwise among keys "
            f"{', '.join(key.hex() for key in list(latest)[:5])}; nothing was written"
        )

    def _checkpoint(self) -> None:
        """Copy the log's pages back, as far as no reader needs them. The next commit starts the log anew."""
        busy, pages, copied = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if not busy and pages == copied:
            self._log_pages = 0
            self.synced_position = (
                self.position
            )  # the copy was fsynced, whatever the writes had asked for
        else:
            self._log_pages = CHECKPOINT_PAGES // 2  # a reader is at work: try again later


def _pages_of(group: Iterable[Write]) -> int:
    """Return at most how many pages such writes change, but for the rare new levels of a tree."""
    pages = 4
    for write in group:
        pages += 2 * (len(write.records) + len(write.forget)) + len(write.numbers)
        pages += sum(len(record.value or b"") // PAGE_BYTES for record in write.records)
    return pages


def _as_text(state: tuple[bytes | None, bytes | None, int]) -> str:
    promised, ballot, seq = state
    return f"promised {promised.hex() if promised else None}, ballot {ballot.hex() if ballot else None}, seq {seq}"
