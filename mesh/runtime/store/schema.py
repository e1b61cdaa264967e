"""The tables of the store, and how those of an older release are brought up to date.

    registers  one row for each key: the record and its checksum
    numbers    named integers: a boot's counter of ballots, the roster's number; each only ever rises
    store      one row: which store this is, how many commits it holds, how wide its ballots are

A file says that it is ours (`application_id`) and its version (`user_version`), where SQLite keeps them.
Version n is what `MIGRATIONS[:n]` made of an empty file; each step is done whole, in one transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from mesh.runtime.store.faults import StoreMismatchError

APPLICATION_ID: Final = 0x4D455348
"""'MESH', at its place in the file's header."""

Migration: TypeAlias = Callable[[sqlite3.Connection], None]


def _first_tables(connection: sqlite3.Connection) -> None:
    """Make an empty file version 1. Rows in the order they came, keys in an index: three times as fast in groups
    as a table in the order of its keys, which are hashes.
    """  # noqa: D205 - a reason, not a summary
    connection.execute(
        "CREATE TABLE registers (key BLOB NOT NULL PRIMARY KEY, promised BLOB, ballot BLOB,"
        " seq INTEGER NOT NULL, value BLOB, checksum INTEGER NOT NULL)"
    )
    connection.execute(
        "CREATE TABLE numbers (name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL, checksum INTEGER NOT NULL)"
    )
    connection.execute(
        "CREATE TABLE store (only INTEGER PRIMARY KEY CHECK (only = 1), identity BLOB NOT NULL,"
        " ballot_bytes INTEGER NOT NULL, position INTEGER NOT NULL, checksum INTEGER NOT NULL)"
    )


MIGRATIONS: Final[tuple[Migration, ...]] = (_first_tables,)


def version_of(connection: sqlite3.Connection, path: Path, known_max: int = len(MIGRATIONS)) -> int:
    """Return the version of a file; 0: it is empty. Nothing is changed.

    Raises:
        StoreMismatchError: it is a database of something else, or of a newer release.
        sqlite3.Error: it cannot be read.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if (application, version, tables) == (0, 0, 0):
        return 0
    if application != APPLICATION_ID or version < 1:
        raise StoreMismatchError(
            f"{path} is no store of Mesh: application id {APPLICATION_ID:#x} is expected, found {application:#x}; "
            "move the file away, or name another directory with --data"
        )
    if version > known_max:
        raise StoreMismatchError(
            f"{path} has version {version}, written by a newer Mesh: versions up to {known_max} are read here; "
            "upgrade this host, or name another directory with --data"
        )
    return int(version)


def migrate(
    connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] = MIGRATIONS
) -> int:
    """Bring a file up to the latest version, step by step; return the version that it had.

    Raises:
        StoreMismatchError: it is of something else, or of a newer release; it is as it was.
        sqlite3.Error: a step failed; the file has the version before that step.
    """
    found = version_of(connection, path, len(migrations))
    for version, step in enumerate(migrations[found:], found + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            step(connection)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return found
