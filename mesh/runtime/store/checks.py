"""What a store holds and what is wrong with it, as somebody finds it who must not touch it.

A node may be at work in it: then this is as of its last commit, and nobody is kept from writing. Where no node
is, no file is made or changed, not even the index that SQLite would make for a log.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mesh.runtime.store.connection import DATABASE, LOG, LOG_INDEX, check_pages, reading
from mesh.runtime.store.faults import (
    SQLITE_ERRORS,
    StoreError,
    StoreMismatchError,
    damaged,
    explain,
)
from mesh.runtime.store.identity import StoreIdentity, read_identity, read_numbers
from mesh.runtime.store.record import ALL_ROWS, from_row
from mesh.runtime.store.schema import version_of


@dataclass(frozen=True, slots=True)
class Inspection:
    """A store in which nothing wrong was found."""

    version: int
    store: StoreIdentity
    numbers: dict[str, int]
    records: int
    size_bytes: int
    """Of the database and its log."""


def inspect(directory: Path) -> Inspection:
    """Read all of a store, every page and every checksum. It takes about a second for 100,000 records.

    Raises:
        StoreError: what is wrong with it, or why that cannot be said.
    """
    database = directory / DATABASE
    if not database.exists():
        raise StoreMismatchError(
            f"{database}: a database is expected, found none: the votes of this node are not here; put the right "
            "one back if the node has not run without it, else start as a new node, on an empty data directory"
        )
    had_log = (directory / LOG).exists()
    try:
        return _read(directory)
    except (*SQLITE_ERRORS, StoreError) as error:
        if (directory / LOG).exists() and not had_log:
            return inspect(directory)  # a node was started meanwhile: half of this was old
        if isinstance(error, StoreError):
            raise
        raise explain(error, database) from error


def _read(directory: Path) -> Inspection:
    database = directory / DATABASE
    with reading(directory, is_foreign=True) as connection:
        connection.execute("BEGIN")  # one commit for all that follows
        version = version_of(connection, database)
        if wrong := check_pages(connection):
            raise damaged(database, "a database that is whole", wrong)
        store = read_identity(connection, database) if version else None
        if store is None:
            raise StoreError(
                f"{database} holds nothing yet: its first start was cut short; start the node again"
            )
        numbers = read_numbers(connection, database)
        records = 0
        for row in connection.execute(ALL_ROWS):
            from_row(row, database, store.ballot_bytes)
            records += 1
    return Inspection(version, store, numbers, records, _size_of(directory))


def lacks_index(directory: Path) -> bool:
    """Say whether there is a log whose index is gone: it can be read only by who may make that anew, a node."""
    return (directory / LOG).exists() and not (directory / LOG_INDEX).exists()


def _size_of(directory: Path) -> int:
    files = (directory / DATABASE, directory / LOG)
    return sum(file.stat().st_size for file in files if file.exists())
