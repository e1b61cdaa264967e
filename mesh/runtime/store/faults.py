"""Everything that can go wrong with a store, as errors that say what to do.

One rule stands behind all of them: a write that failed is never reported as committed, and after one that
failed the store takes no other until it is opened again. Then the disk says what is known, and nothing else.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from mesh.errors import MeshError


class StoreError(MeshError):
    """The store of registers cannot be used, or no longer. What was reported as committed is committed."""


class StoreDiskError(StoreError):
    """The disk did not take what was written: full, read-only or broken.

    Attributes:
        code: SQLite's name of the fault, as SQLITE_FULL.
    """

    def __init__(self, message: str, code: str) -> None:
        self.code = code
        super().__init__(message)


class StoreDamagedError(StoreError):
    """What is on disk is not what was written there: no vote may rest on it."""


class StoreInUseError(StoreError):
    """Another process has the store."""


class StoreMismatchError(StoreError):
    """The store is another than expected: of another node, of a newer release, no store at all."""


class StoreReplacedError(StoreError):
    """The store's files were removed or replaced under the node that has them open: what it commits is lost."""

    def __init__(self, path: Path, found: str) -> None:
        super().__init__(
            f"{path}: the file that this node opened there is expected, found: {found}; somebody removed or replaced "
            "the data directory of a running node, which votes no more and stops: look at who did so; if the directory "
            "was moved away as a whole, put it back and start the node again, else start as a new node, on an empty "
            "data directory"
        )


class StoreRolledBackError(StoreError):
    """The store is older than what a peer, or its own data directory, has seen of it: it has forgotten votes.

    Attributes:
        position: the commits that this store holds.
        seen: the commits that were seen.
    """

    def __init__(self, path: Path, position: int, seen: int, witness: str = "a peer") -> None:
        self.position, self.seen = position, seen
        super().__init__(
            f"{path} holds {position} commits, and {witness} has seen {seen}: an older copy of the disk was restored, "
            "or writes were lost; this node must not vote by it: start it as a new node, on an empty data directory"
        )


class StoreBusyError(StoreError):
    """More waits to be written than may wait. Nothing was queued, and the store goes on."""


class StoreFailedError(StoreError):
    """The store failed before, or is closed, and takes no writes. Nothing was queued."""


_FREE: Final = "free some room, then start the node again"
_WRITABLE: Final = "make it writable for this user, then start the node again"
_BROKEN: Final = (
    "look at the system's log for faults of the disk; if it has any, move the data directory away and start as a "
    "new node on another disk, else start the node again"
)
_RESTORE: Final = (
    "do not repair it by hand, and restore no copy: older votes would be forgotten; move the data directory away "
    "and start as a new node (the other voters hold the records)"
)


def damaged(path: Path, expected: str, found: str) -> StoreDamagedError:
    """Return the error for a store whose bytes are not what was written."""
    return StoreDamagedError(
        f"{path} is damaged: {expected} is expected, found {found}; {_RESTORE}"
    )


# Where the names of tables rotted, Python cannot even read what SQLite says of them.
SQLITE_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)


def explain(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> StoreError:
    """Return what SQLite found, as an error of ours."""
    if isinstance(error, UnicodeDecodeError):
        return damaged(path, "a database that is whole", "names of tables that are no text")
    code = getattr(error, "sqlite_errorname", None) or "SQLITE_ERROR"
    kind = "_".join(code.split("_")[:2])
    match kind:
        case "SQLITE_FULL":
            return StoreDiskError(
                f"{path}: a disk with room left is expected, found it full; {_FREE}", code
            )
        case "SQLITE_READONLY" | "SQLITE_CANTOPEN" | "SQLITE_PERM" | "SQLITE_AUTH":
            return StoreDiskError(
                f"{path}: a file that can be written is expected, found: {error} ({code}); {_WRITABLE}",
                code,
            )
        case "SQLITE_CORRUPT" | "SQLITE_NOTADB" | "SQLITE_FORMAT":
            return damaged(path, "a database that is whole", f"{error} ({code})")
        case "SQLITE_BUSY" | "SQLITE_LOCKED" | "SQLITE_PROTOCOL":
            return StoreInUseError(
                f"{path} is held by another program: only the node that owns it may write to it; stop that program "
                "(a database shell?), then start the node again"
            )
        case "SQLITE_IOERR":
            return StoreDiskError(
                f"{path}: a disk that works is expected, found: {error} ({code}); {_BROKEN}", code
            )
        case _:
            return StoreError(
                f"{path}: SQLite {sqlite3.sqlite_version} refused: {error} ({code}); its tables are damaged, or SQLite is "
                "too old, as `mesh doctor` says"
            )
