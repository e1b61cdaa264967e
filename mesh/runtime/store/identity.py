"""The one row that says which store this is, and how many commits it holds.

The **position** rises by one with each commit and is part of it. Whoever was told of position 812 knows that a
store at 790 is an older copy: a snapshot was restored, or the disk lost what it had acknowledged.
"""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zlib import crc32

from mesh.errors import LocalProtocolError
from mesh.runtime.store.faults import StoreMismatchError, damaged
from mesh.runtime.store.record import BALLOT_BYTES_MAX, NUMBER_MAX, number_checksum

IDENTITY_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """Which store, the width of its ballots, and its position."""

    identity: bytes
    ballot_bytes: int
    position: int

    def stamp(self, connection: sqlite3.Connection, position: int) -> None:
        """Write a position within the transaction that reaches it."""
        connection.execute(
            "UPDATE store SET position = ?, checksum = ?", (position, self._checksum(position))
        )

    def insert(self, connection: sqlite3.Connection) -> None:
        """Write the row of a new store."""
        connection.execute(
            "INSERT INTO store VALUES (1, ?, ?, ?, ?)",
            (self.identity, self.ballot_bytes, self.position, self._checksum(self.position)),
        )

    def _checksum(self, position: int) -> int:
        return crc32(b"%d %d " % (self.ballot_bytes, position) + self.identity)


def read_identity(connection: sqlite3.Connection, path: Path) -> StoreIdentity | None:
    """Return which store this is; None: it was not finished, and holds nothing.

    Raises:
        StoreDamagedError: the row is not as it was written, or is gone.
        sqlite3.Error: it cannot be read.
    """
    row = connection.execute(
        "SELECT identity, ballot_bytes, position, checksum FROM store"
    ).fetchone()
    if row is None:
        (records,) = connection.execute("SELECT count(*) FROM registers").fetchone()
        if records:
            raise damaged(
                path, "the row that says which store this is", f"none, and {records} records"
            )
        return None
    identity, ballot_bytes, position, checksum = row
    kinds = (type(identity), type(ballot_bytes), type(position))
    if kinds == (bytes, int, int):
        found = StoreIdentity(identity, ballot_bytes, position)
        if found._checksum(position) == checksum:  # noqa: SLF001 - its own class
            return found
    raise damaged(
        path, "the row that says which store this is, as it was written", "another checksum"
    )


def found_store(
    connection: sqlite3.Connection, path: Path, ballot_bytes: int, expected: bytes | None
) -> StoreIdentity:
    """Return which store this is; a new one is given its identity here.

    Raises:
        StoreMismatchError: another was expected, or one with other ballots. Nothing was changed.
        StoreDamagedError: as `read_identity`.
    """
    found = read_identity(connection, path)
    if expected is not None and (found is None or found.identity != expected):
        raise missing(path, expected, None if found is None else found.identity)
    if found is None:
        if not 0 < ballot_bytes <= BALLOT_BYTES_MAX:
            raise LocalProtocolError(
                f"ballots of 1 to {BALLOT_BYTES_MAX} bytes are expected, found {ballot_bytes}"
            )
        found = StoreIdentity(secrets.token_bytes(IDENTITY_BYTES), ballot_bytes, 0)
        found.insert(connection)
    if found.ballot_bytes != ballot_bytes:
        raise StoreMismatchError(
            f"{path} keeps ballots of {found.ballot_bytes} bytes, {ballot_bytes} are expected: it is of another "
            "release of Mesh; start that, or start as a new node, on an empty data directory"
        )
    return found


def missing(path: Path, expected: bytes, found: bytes | None = None) -> StoreMismatchError:
    """Return the error for a store that is not the one that this node had."""
    return StoreMismatchError(
        f"{path}: the store {expected.hex()} is expected, found {'none' if found is None else found.hex()}: the votes "
        "of this node are not here; put the right one back if the node has not run without it, else start as a new "
        "node, on an empty data directory"
    )


def read_numbers(connection: sqlite3.Connection, path: Path) -> dict[str, int]:
    """Return the named integers.

    Raises:
        StoreDamagedError: one is not as it was written.
        sqlite3.Error: they cannot be read.
    """
    found: dict[str, int] = {}
    for name, value, checksum in connection.execute("SELECT name, value, checksum FROM numbers"):
        is_number = type(name) is str and type(value) is int and 0 <= value <= NUMBER_MAX
        if not is_number or number_checksum(name, value) != checksum:
            raise damaged(
                path, "each number as it was written", f"another checksum at {name!r:.80}"
            )
        found[name] = value
    return found
