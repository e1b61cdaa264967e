"""How SQLite is opened: once to write, and as often as wanted to read.

One connection writes and copies the log back, and no other ever does: where two do at once, SQLite before 3.51.3
may damage the file. Readers see the last commit and keep nobody from writing. SQLite holds locks that belong to the process, and
the kernel drops all of them when *any* descriptor of the same file is closed: so no code of ours opens the
database file of a running store in any other way than this.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mesh.runtime.store.tail import PAGE_BYTES

DATABASE: Final = "registers.db"
LOG: Final = f"{DATABASE}-wal"
LOG_INDEX: Final = f"{DATABASE}-shm"

BUSY_S: Final = 2.0
"""How long a foreign program that writes to the database is waited for."""

CACHE_KIB: Final = 4096


def open_writer(directory: Path) -> sqlite3.Connection:
    """Open the database to write; what the log holds of an earlier session is part of it.

    Raises:
        sqlite3.Error: it cannot be opened, or is no database.
    """
    # The thread that opens it hands it to the writer's thread, and does not use it again.
    connection = sqlite3.connect(
        directory / DATABASE, timeout=BUSY_S, isolation_level=None, check_same_thread=False
    )
    try:
        _set_up(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # of a new file
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise sqlite3.OperationalError(f"this file system keeps no write-ahead log (found {mode})")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS alone has one that is not full
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
    # The writer does it itself: SQLite would say nothing if it failed.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten, too


@contextmanager
def reading(directory: Path, *, is_foreign: bool = False) -> Iterator[sqlite3.Connection]:
    """Give a connection that only reads. `is_foreign`: of another process; no file is made or changed there.

    Raises:
        sqlite3.Error: it cannot be opened, or is no database.
    """
    options = "mode=ro"
    if is_foreign:
        # Without a log nobody has it open, and no index of a log is looked for, or made.
        options += "&readonly_shm=1" if (directory / LOG).exists() else "&immutable=1"
    uri = f"{(directory / DATABASE).absolute().as_uri()}?{options}"
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def check_pages(connection: sqlite3.Connection) -> str:
    """Return what SQLite finds wrong with its pages, "" for nothing: 0.2 s for 100,000 records.

    The quick check would do in a quarter of that, but does not compare the keys' index with the rows: by a wrong
    one a key would get a second row.

    Raises:
        sqlite3.Error: so much is wrong that it cannot go on.
    """
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)")]
    lines = [line for text in found for line in text.splitlines() if not line.startswith("***")]
    return "" if lines == ["ok"] else ", ".join(lines)
