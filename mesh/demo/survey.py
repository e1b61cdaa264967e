"""Which files the demo works on, in which batches, and how long a file takes at least.

The demo has to end soon, and has to have something to interrupt. So of a large directory it takes the
first files only; and where there are few, the work on each is spun out, since compressing a handful of
small files is over before anybody could kill anything.
"""

from __future__ import annotations

import math
import os
import stat
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mesh.errors import ConfigError

BATCH_FILES_MAX: Final = 30
BATCH_BYTES_MAX: Final = 8 << 20
BATCHES_WANTED: Final = 24
FILES_MAX: Final = 3_000
BYTES_MAX: Final = 64 << 20
WORK_S: Final = 36.0
"""What all files together take at least, if each were worked on after the other."""

PACE_S_MAX: Final = 2.0
_SKIPPED_DIRECTORIES: Final = {"__pycache__", "site-packages", "dist-packages"}


@dataclass(frozen=True, slots=True)
class Survey:
    """The files to work on, in order, and the same in batches: one batch, one task."""

    root: Path
    names: tuple[str, ...]
    batches: tuple[tuple[str, ...], ...]
    has_more: bool = False  # there are further files, which are left alone

    @property
    def pace_s(self) -> float:
        """How long the work on one file is to take at least."""
        return min(PACE_S_MAX, WORK_S / len(self.names))


def survey(directory: Path | None, files_max: int | None) -> Survey:
    """Look for regular, readable files below `directory`; None: the standard library's modules.

    At most `files_max` of them, FILES_MAX, and as many as have BYTES_MAX together; at least one.

    Raises:
        ConfigError: there are none.
    """
    root = Path(sysconfig.get_path("stdlib")) if directory is None else directory.absolute()
    suffix = ".py" if directory is None else ""
    wanted = min(files_max or FILES_MAX, FILES_MAX)
    found: list[tuple[str, int]] = []
    room_bytes, has_more = BYTES_MAX, False
    for name, count in _files(root, suffix):
        if len(found) == wanted or (found and count > room_bytes):
            has_more = True
            break
        found.append((name, count))
        room_bytes -= count
    if not found:
        raise ConfigError(
            f"a directory with readable files is expected, found none below {root}; name another one"
        )
    return Survey(root, tuple(name for name, _ in found), tuple(_batches(found)), has_more)


def _files(root: Path, suffix: str) -> Iterator[tuple[str, int]]:
    """Yield name and size of each fit file: those of a directory in order, then its subdirectories."""
    for directory, subdirectories, names in os.walk(root):
        subdirectories[:] = sorted(
            name for name in subdirectories if not suffix or name not in _SKIPPED_DIRECTORIES
        )
        for name in sorted(names):
            path = Path(directory, name)
            if name.endswith(suffix) and _is_fit(path):
                yield str(path.relative_to(root)), path.stat().st_size


def _is_fit(path: Path) -> bool:
    """Say whether this is a regular file that can be read and whose name is valid UTF-8."""
    try:
        str(path).encode()
        return stat.S_ISREG(path.lstat().st_mode) and os.access(path, os.R_OK)
    except (OSError, UnicodeEncodeError):
        return False


def _batches(found: list[tuple[str, int]]) -> Iterator[tuple[str, ...]]:
    batch: list[str] = []
    batch_bytes = 0
    files_max = min(BATCH_FILES_MAX, math.ceil(len(found) / BATCHES_WANTED))
    for name, count in found:
        if batch and (len(batch) == files_max or batch_bytes + count > BATCH_BYTES_MAX):
            yield tuple(batch)
            batch, batch_bytes = [], 0
        batch.append(name)
        batch_bytes += count
    yield tuple(batch)
