"""Whether an open store is still what stands at its path: what is committed to a file without a name is lost.

    rm -rf DIR        the open files live on, unnamed, and take commits with every fsync, until they are closed
    a second node     makes other files by the same names: the path is there again, and the votes are not

So not the path is asked for, but which file it names: device and inode, which nobody else gets while it is open.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from mesh.runtime.store.connection import DATABASE, LOG
from mesh.runtime.store.faults import StoreReplacedError
from mesh.runtime.store.lock import LOCK

NAMES: Final = (DATABASE, LOG, LOCK)
"""The commits are in the first two; without the last, another may write to them."""


class Place:
    """The files of an open store, by which their names are held against them. Of no thread."""

    def __init__(self, directory: Path, lock_fd: int) -> None:
        """Note which files are there; call once they are open.

        Raises:
            OSError: one of them is not there.
            StoreReplacedError: the lock that is held is not the one that is there.
        """
        self.directory = directory
        self._files = {directory / name: (directory / name).stat() for name in NAMES}
        self._files[directory / LOCK] = os.fstat(lock_fd)
        self.check()

    def check(self) -> None:
        """Raise StoreReplacedError if a file of the store is not there any more, or another by its name.

        It takes a microsecond or a few for each file: once for each group of commits, and not for each record.
        """
        for path, opened in self._files.items():
            try:
                found = path.stat()
            except OSError as error:
                raise StoreReplacedError(path, error.strerror or str(error)) from error
            if not os.path.samestat(found, opened):
                raise StoreReplacedError(path, "another file")
