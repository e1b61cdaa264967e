"""What the store of registers costs on this disk: commits a second, and how long a start reads.

    python bench/store.py [DIR]          # a directory on the disk that is meant; default: the current one

Each figure is of records of 300 bytes. "one by one" waits for each commit before the next write; "ahead" keeps
64 writes waiting, as a busy voter does.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
import tracemalloc
from pathlib import Path

from mesh.core.stored import StoredRecord
from mesh.runtime.store.queue import Durability
from mesh.runtime.store.store import Store
from mesh.runtime.store.writer import Progress

WIDTH = 32
VALUE_BYTES = 300
SECONDS = 3.0
RECORDS = 100_000
AHEAD = 64


class Commits:
    """Counts commits, and lets whoever writes wait for them."""

    def __init__(self) -> None:
        self.position = 0
        self.longest_s = 0.0
        self._last = time.perf_counter()
        self._ticket = 0
        self._changed = threading.Condition()

    def __call__(self, progress: Progress) -> None:
        """Take a report."""
        assert progress.error is None, progress.error
        now = time.perf_counter()
        with self._changed:
            self.longest_s = max(self.longest_s, now - self._last)
            self._last = now
            self._ticket, self.position = progress.ticket, progress.position
            self._changed.notify_all()

    def wait(self, ticket: int) -> None:
        """Wait until a ticket is committed."""
        with self._changed:
            self._changed.wait_for(lambda: self._ticket >= ticket)

    def begin(self) -> None:
        """Forget the longest wait."""
        self.longest_s, self._last = 0.0, time.perf_counter()


def record(n: int) -> StoredRecord:
    """Return the n-th record; a key that comes again has a higher ballot."""
    key = (n * 0x9E3779B97F4A7C15 % (1 << 64)).to_bytes(8, "big") * 2
    ballot = time.monotonic_ns().to_bytes(WIDTH, "big")
    return StoredRecord(key, ballot, ballot, 0, os.urandom(VALUE_BYTES))


def measure(store: Store, commits: Commits, batch: int, ahead: int, durability: Durability) -> None:
    """Write for some seconds and print how fast that was."""
    commits.begin()
    began, first, writes = time.perf_counter(), store.position, 0
    while (spent_s := time.perf_counter() - began) < SECONDS:
        start = writes * batch
        ticket = store.write(
            [record((start + n) % RECORDS) for n in range(batch)], durability=durability
        )
        writes += 1
        commits.wait(ticket - ahead)
    commits.wait(ticket)
    spent_s = time.perf_counter() - began
    done = commits.position - first
    print(
        f"{durability:6}  batch {batch:3}  {'ahead' if ahead else 'one by one':10}  {writes / spent_s:7.0f} writes/s"
        f"  {done / spent_s:6.0f} commits/s  {writes * batch / spent_s:7.0f} records/s"
        f"  longest {commits.longest_s * 1000:.0f} ms"
    )


def main(place: Path) -> None:
    """Measure in a directory of its own, and remove it."""
    with tempfile.TemporaryDirectory(dir=place) as found:
        path = Path(found) / "store"
        commits = Commits()
        store = Store.open(path, ballot_bytes=WIDTH, report=commits)
        for start in range(0, RECORDS, 1000):
            ticket = store.write([record(n) for n in range(start, start + 1000)])
        commits.wait(ticket)
        for durability in ("fsync", "memory"):
            for ahead in (0, AHEAD):
                for batch in (1, 10, 100):
                    measure(store, commits, batch, ahead, durability)
        store.close()
        began = time.perf_counter()
        store = Store.open(path, ballot_bytes=WIDTH, report=commits)
        opened_s = time.perf_counter() - began
        began = time.perf_counter()
        count = sum(1 for _ in store.read_all())
        print(
            f"opened and checked in {opened_s:.2f} s, {count} records read in {time.perf_counter() - began:.2f} s"
        )
        tracemalloc.start()
        for _ in store.read_all():
            pass
        streamed = tracemalloc.get_traced_memory()[1]
        kept = list(store.read_all())
        held = tracemalloc.get_traced_memory()[0]
        print(
            f"memory: {streamed / 1024:.0f} KiB to read all, {held / len(kept):.0f} bytes for each that is kept by the reader"
        )
        size = sum(file.stat().st_size for file in path.iterdir())
        print(f"on disk: {size / 1024 / 1024:.0f} MiB")
        store.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if sys.argv[1:] else "."))
