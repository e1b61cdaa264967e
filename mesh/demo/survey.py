"""Which files the demo works on, and in which batches."""

from __future__ import annotations

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
_SKIPPED_DIRECTORIES: Final = {"__pycache__", "site-packages", "dist-packages"}


@dataclass(frozen=True, slots=True)
class Survey:
    """The files to work on, in order, and the same in batches: one batch, one task."""

    root: Path
    names: tuple[str, ...]
    batches: tuple[tuple[str, ...], ...]


def survey(directory: Path | None, files_max: int | None) -> Survey:
    """Look for regular, readable files below `directory`; None: the standard library's modules.

    Raises:
        ConfigError: there are none.
    """
    root = Path(sysconfig.get_path("stdlib")) if directory is None else directory.absolute()
    suffix = ".py" if directory is None else ""
    found = sorted(_files(root, suffix))[:files_max]
    if not found:
        raise ConfigError(
            f"a directory with readable files is expected, found none below {root}; name another one"
        )
    return Survey(root, tuple(name for name, _ in found), tuple(_batches(found)))


def _files(root: Path, suffix: str) -> Iterator[tuple[str, int]]:
    for directory, subdirectories, names in os.walk(root):
        if suffix:
            subdirectories[:] = [
                name for name in subdirectories if name not in _SKIPPED_DIRECTORIES
            ]
        for name in names:
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
    for name, count in found:
        if batch and (len(batch) == BATCH_FILES_MAX or batch_bytes + count > BATCH_BYTES_MAX):
            yield tuple(batch)
            batch, batch_bytes = [], 0
        batch.append(name)
        batch_bytes += count
    yield tuple(batch)
