"""A process that writes to a store and says what was acknowledged, until it is done, fails or is killed.

    python -m tests.runtime.store.scribe DIR COUNT [fsync|memory|mixed]

It keeps a few writes under way. Each line is flushed: `open POSITION RECORDS`, `ack TICKET POSITION`,
`failed TYPE TEXT`. Keys count from 1 over all sessions; key 0 is written anew each time.
mixed: every third write asks for an fsync.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from mesh.runtime.store.faults import StoreError, StoreFailedError
from mesh.runtime.store.store import Store
from mesh.runtime.store.writer import Progress
from tests.runtime.store.told import WIDTH, accept

AHEAD_MAX = 4
PATIENCE_S = 30.0
VALUE = b"x" * 300


def say(line: str) -> None:
    """Print a line, with one call of the system."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(path: str, count: int, durability: str) -> int:
    ahead = threading.Semaphore(AHEAD_MAX)
    acknowledged = 0
    is_over = threading.Event()

    def report(progress: Progress) -> None:
        nonlocal acknowledged
        for ticket in range(acknowledged + 1, progress.ticket + 1):
            say(f"ack {ticket} {progress.position}")
            ahead.release()
        acknowledged = progress.ticket
        if progress.error is not None:
            say(f"failed {type(progress.error).__name__} {progress.error}")
            is_over.set()
            ahead.release()

    try:
        store = Store.open(Path(path), ballot_bytes=WIDTH, report=report)
    except StoreError as error:
        say(f"failed {type(error).__name__} {error}")
        return 1
    say(f"open {store.position} {sum(1 for _ in store.read_all())}")
    first = store.numbers.get("last", 0) + 1
    for n in range(first, first + count):
        ahead.acquire()
        if is_over.is_set():
            break
        records = [accept(b"%d" % n, 1, value=VALUE), accept(b"0", n, value=VALUE)]
        is_synced = durability == "fsync" or (durability == "mixed" and n % 3 == 0)
        try:
            store.write(records, numbers={"last": n}, durability="fsync" if is_synced else "memory")
        except StoreFailedError:  # a write before this one failed, and its report is on its way
            is_over.wait(PATIENCE_S)
            break
    store.close()
    return 1 if is_over.is_set() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3] if sys.argv[3:] else "fsync"))
