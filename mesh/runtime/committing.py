"""A node's registers on its disk: what it had when it began, and each commit of its own, told when it is done.

The store is opened before the node is built, which is told what was kept; its commits are reported to the driver
once there is one (`begin`), in trio's thread. A store that fails ends the node: what it has promised since, nobody
may rely on.

A disk that fills up need not end it. While there is little room left, the node is told so (`on_room`), and takes on
nothing new that would have to be stored; what it took on before still fits in.

A store that was removed, or replaced by another, ends it: found at the next commit before that is told, or at the
next look. Whatever stands at the path later, this session votes no more.

Which store is the node's own stands in the data directory (`open_store`), with how far it had come:

    first start    store made, empty ──► noted ──► first commit
    killed between    an empty store that was not noted: it is taken, nothing rests on it
    noted, but gone, another, or behind what was noted: refused, for votes would be forgotten
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import trio

from mesh.core.ballot import BALLOT_BYTES
from mesh.core.effects import Commit, Stop
from mesh.core.stored import StoredRecord
from mesh.errors import LocalProtocolError
from mesh.runtime.datadir import STORE_NAME, DataDir
from mesh.runtime.store.connection import DATABASE, LOG
from mesh.runtime.store.faults import StoreMismatchError, StoreReplacedError, StoreRolledBackError
from mesh.runtime.store.store import Store
from mesh.runtime.store.wake import report_to_trio
from mesh.runtime.store.writer import Progress

ROOM_BYTES: Final = 24 * 1024 * 1024
"""With less free disk nothing new is taken on: the log may be copied into the database at once, which is 16 MiB,
and what waits has to be written."""

LOOK_S: Final = 10.0
"""How often the disk is looked at, beside each commit: others fill it, too. Each look wakes an idle node."""

ROOM_LOOK_S: Final = 2.0
"""How often while it lacks room: somebody waits for that."""

_MIB: Final = 1024 * 1024


class _Waiting(NamedTuple):
    ticket: int
    number: int
    since: float


def open_store(data: DataDir) -> Committing:
    """Open the store of a node, or make it at its first start; which it is stands in the directory on return.

    Raises:
        StoreError: it cannot be used, is missing, another node's, or older than it was. Nothing may be voted by it.
        DataDirectoryError: what it is cannot be noted.
    """
    found = Committing(data.path / STORE_NAME, data.identity.store)
    try:
        _check_own(found, data)
        data.note_store(found.identity, found.position)
    except BaseException:
        found.close()
        raise
    return found


def _check_own(found: Committing, data: DataDir) -> None:
    """Raise StoreError if this is not the store that the directory knows, or is older."""
    noted = data.identity
    if noted.store is None and found.position:
        raise StoreMismatchError(
            f"{found.path}: no store is expected, as this node has noted none in {data.path / 'identity'}, found "
            f"{found.identity.hex()} with {found.position} commits: whose votes these are is not known; move the "
            "data directory away and start as a new node"
        )
    if found.position < noted.position:
        witness = "this data directory"
        raise StoreRolledBackError(found.path, found.position, noted.position, witness)


class Committing:
    """An open store, and which of the node's commits wait for it."""

    def __init__(self, path: Path, identity: bytes | None) -> None:
        """Open the store, or make it.

        Raises:
            StoreError: it cannot be used, or is not the one that is expected.
        """
        self._report: Callable[[Progress], None] | None = None
        self.path = path
        self._waiting: deque[_Waiting] = deque()
        self._committed: Callable[[int], None] = _nobody
        self._halt: Callable[[Stop], None] = _nobody
        self._on_room: Callable[[str], None] = _nobody
        self._lacks = ""
        self._gone = ""
        self._last_commit_ms: float | None = None
        self._store = Store.open(
            path, ballot_bytes=BALLOT_BYTES, report=self._on_progress, identity=identity
        )

    @property
    def identity(self) -> bytes:
        """Return which store this is: kept with the node's own identity, so that no other is taken for it."""
        return self._store.identity

    @property
    def position(self) -> int:
        """Return how many commits it holds that survive a power cut."""
        return self._store.synced_position

    @property
    def numbers(self) -> Mapping[str, int]:
        """Return the named numbers, as they were when it was opened."""
        return self._store.numbers

    def __iter__(self) -> Iterator[StoredRecord]:
        """Yield every record.

        Raises:
            StoreError: what is read is not what was written.
        """
        return self._store.read_all()

    def begin(
        self,
        committed: Callable[[int], None],
        halt: Callable[[Stop], None],
        on_room: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Tell of commits from now on; call in trio's thread, before the first.

        `on_room` is told why nothing new may be taken on, and "" when it may be again.
        """
        self._committed, self._halt, self._on_room = committed, halt, on_room
        self._report = report_to_trio(self._handle)

    async def run(self) -> None:
        """Look at the disk now and again, for as long as the node runs."""
        while True:
            self._look(is_at_place=True)
            await trio.sleep(ROOM_LOOK_S if self._lacks else LOOK_S)

    def commit(self, effect: Commit) -> None:
        """Queue a commit.

        Raises:
            StoreError: it cannot be queued; then nothing of it is, or will be, stored.
        """
        if self._report is None:
            raise LocalProtocolError("begin before the first commit")
        ticket = self._store.write(effect.records, numbers=effect.numbers, forget=effect.forget)
        self._waiting.append(_Waiting(ticket, effect.number, trio.current_time()))
        self._look()

    def facts(self) -> dict[str, Any]:
        """Return what `status` says of the store."""
        return {
            "path": os.fsencode(self.path).decode("utf-8", "backslashreplace"),
            "size_bytes": _size_of(self.path),
            "commits": self.position,
            "last_commit_ms": self._last_commit_ms,
            "lacks": self._lacks,
        }

    def close(self) -> None:
        """Store what waits, and let another in. Harmless when repeated."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _on_progress(self, progress: Progress) -> None:
        if self._report is not None:  # in the writer's thread
            self._report(progress)

    def _handle(self, progress: Progress) -> None:
        done = None
        while self._waiting and self._waiting[0].ticket <= progress.ticket:
            done = self._waiting.popleft()
        if done is not None:
            self._last_commit_ms = round((trio.current_time() - done.since) * 1000, 3)
            self._committed(done.number)
        if progress.error is not None:
            if isinstance(progress.error, StoreReplacedError):
                self._gone = self._lacks = str(progress.error)
            self._halt(Stop(1, str(progress.error)))
        elif self._lacks:
            self._look()

    def _look(self, *, is_at_place: bool = False) -> None:
        """Look at the disk. `is_at_place`: and whether the store is still there, which is not asked for each commit."""
        if is_at_place or self._lacks:
            self._check_place()
        if self._gone:  # for good: whatever stands there later is not what this node has voted by
            self._lacks = self._gone
            return
        before, self._lacks = self._lacks, self._find_lack()
        if bool(before) != bool(self._lacks):
            self._on_room(self._lacks)

    def _check_place(self) -> None:
        """End the node if its store was removed or replaced: as the next commit would."""
        if self._gone:
            return
        try:
            self._store.check_place()
        except StoreReplacedError as error:
            self._gone = str(error)
            self._halt(Stop(1, self._gone))

    def _find_lack(self) -> str:
        if not self._store.has_room:
            return f"the disk of {self.path} is slower than what is asked of it"
        try:
            system = os.statvfs(self.path)
        except OSError as error:
            return f"{self.path} cannot be looked at: {error.strerror}"
        # What waits is written to the log first, and copied into the database later.
        free_bytes = max(0, system.f_bavail * system.f_frsize - 2 * self._store.waiting_bytes)
        if free_bytes >= ROOM_BYTES:
            return ""
        return (
            f"{self.path} has {free_bytes / _MIB:.1f} MiB of free disk, {ROOM_BYTES // _MIB} MiB are expected: free "
            "some room"
        )


def _size_of(path: Path) -> int:
    size_bytes = 0
    for name in (DATABASE, LOG):
        try:
            size_bytes += (path / name).stat().st_size
        except OSError:  # no log: nothing was written since it was opened
            continue
    return size_bytes


def _nobody(_: object) -> None:
    raise LocalProtocolError("nobody is told of commits before `begin`")
