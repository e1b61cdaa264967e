"""One way to change a file of the data directory: replace it as a whole, readable by its owner alone."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, data: bytes, *, is_durable: bool = True) -> None:
    """Replace a file by way of `NAME.new` beside it; durable: on disk before this returns.

    Raises:
        OSError: it could not be written. The old file is whole.
    """
    fresh = path.with_name(f"{path.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK  # whoever put a pipe there is not waited for
    fd = os.open(fresh, flags, 0o600)
    try:
        os.fchmod(fd, 0o600)  # of one that was left there, too
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if is_durable:
            os.fsync(fd)
    finally:
        os.close(fd)
    fresh.rename(path)
    if is_durable:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
