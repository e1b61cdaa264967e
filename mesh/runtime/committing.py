"""A node's registers on its disk: what it had when it began, and each commit of its own, told when it is done.

The store is opened before the node is built, which is told what was kept; its commits are reported to the driver
once there is one (`begin`), in trio's thread. A store that fails ends the node: what it has promised since, nobody
may rely on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self

from mesh.core.ballot import BALLOT_BYTES
from mesh.core.effects import Commit, Stop
from mesh.core.stored import StoredRecord
from mesh.errors import LocalProtocolError
from mesh.runtime.store.store import Store
from mesh.runtime.store.wake import report_to_trio
from mesh.runtime.store.writer import Progress


class Committing:
    """An open store, and which of the node's commits wait for it."""

    def __init__(self, path: Path, identity: bytes | None) -> None:
        """Open the store, or make it.

        Raises:
            StoreError: it cannot be used, or is not the one that is expected.
        """
        self._report: Callable[[Progress], None] | None = None
        self._waiting: deque[tuple[int, int]] = deque()  # ticket and commit, in order
        self._committed: Callable[[int], None] = _nobody
        self._halt: Callable[[Stop], None] = _nobody
        self._store = Store.open(
            path, ballot_bytes=BALLOT_BYTES, report=self._on_progress, identity=identity
        )

    @property
    def identity(self) -> bytes:
        """Return which store this is: kept with the node's own identity, so that no other is taken for it."""
        return self._store.identity

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

    def begin(self, committed: Callable[[int], None], halt: Callable[[Stop], None]) -> None:
        """Tell of commits from now on; call in trio's thread, before the first."""
        self._committed, self._halt = committed, halt
        self._report = report_to_trio(self._handle)

    def commit(self, effect: Commit) -> None:
        """Queue a commit.

        Raises:
            StoreError: it cannot be queued; then nothing of it is, or will be, stored.
        """
        if self._report is None:
            raise LocalProtocolError("begin before the first commit")
        ticket = self._store.write(effect.records, numbers=effect.numbers, forget=effect.forget)
        self._waiting.append((ticket, effect.number))

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
        number = None
        while self._waiting and self._waiting[0][0] <= progress.ticket:
            number = self._waiting.popleft()[1]
        if number is not None:
            self._committed(number)
        if progress.error is not None:
            self._halt(Stop(1, str(progress.error)))


def _nobody(_: object) -> None:
    raise LocalProtocolError("nobody is told of commits before `begin`")
