"""The store's lock: one process has it at a time, and the kernel takes it back however that one ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from mesh.runtime.store.faults import StoreDiskError, StoreInUseError

LOCK: Final = "lock"


def take_lock(directory: Path) -> int:
    """Return the descriptor that holds the lock until it is closed.

    Raises:
        StoreInUseError: another process has it; the text names that.
        StoreDiskError: it cannot be written.
    """
    path = directory / LOCK
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
    except BlockingIOError as error:
        holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(fd)
        raise StoreInUseError(
            f"{directory} is in use by process {holder}: each node needs a store of its own; stop that node, or name "
            "another data directory with --data"
        ) from error
    except OSError as error:
        os.close(fd)
        raise _unusable(path, error) from error
    return fd


def _unusable(path: Path, error: OSError) -> StoreDiskError:
    return StoreDiskError(
        f"{path}: a file that can be written and locked is expected, found: {error.strerror}; make room, or make it "
        "writable for this user, then start the node again",
        f"errno {error.errno}",
    )
