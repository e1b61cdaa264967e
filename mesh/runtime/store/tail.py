"""Commits that the log has lost: whole ones that stand behind the place where it breaks off.

SQLite's log (the file `-wal`) is a row of frames, each a page with a checksum over all before it. After a crash
the log is read up to the first frame that does not fit, and what stands behind is dropped in silence. That is
right for the commit under way when the power failed. It is wrong when a bit turned in the middle: commits that
were acknowledged would be gone, and nobody would say so. The two differ in what stands behind the break: one
commit may be under way, never two.

    whole  whole  whole | torn            one commit under way: nothing that was acknowledged is missing
    whole  ROTTEN | commit  commit        acknowledged votes are missing

A power cut may do the same to writes that asked for no fsync. They are missing then, too.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE_BYTES: Final = 4096
"""The size of a page in every store."""

_HEADER: Final = struct.Struct(">8I")  # magic, version, page size, rounds, two salts, two checksums
_FRAME: Final = struct.Struct(">II8s8s")  # page, pages after a commit (else 0), salts, checksums
_STEP_BYTES: Final = _FRAME.size + PAGE_BYTES
_MAGIC_LITTLE_ENDIAN: Final = 0x377F0682
_MAGIC_BIG_ENDIAN: Final = 0x377F0683


@dataclass(frozen=True, slots=True)
class Tail:
    """Where the commits of a log's latest round end: frame numbers, from 1, in order."""

    commits: tuple[int, ...]

    def lost_after(self, frames: int) -> int:
        """Return how many commits are lost for certain, if SQLite could read so many frames; 0: none."""
        behind = sum(frame > frames for frame in self.commits)
        return behind - 1 if behind > 1 else 0


def read_tail(log: Path) -> Tail:
    """Read where commits end in a log, whole or not. It costs a read for each frame; no log has none.

    Raises:
        OSError: it cannot be read.
    """
    try:
        file = log.open("rb")
    except FileNotFoundError:
        return Tail(())
    with file:
        header, number = file.read(_HEADER.size), 0
        commits: list[int] = []
        salts = header[16:24] if _is_whole(header) else None
        while True:
            file.seek(_HEADER.size + number * _STEP_BYTES)
            head = file.read(_FRAME.size)
            if len(head) < _FRAME.size:
                return Tail(tuple(commits))
            number += 1
            _, pages, found, _ = _FRAME.unpack(head)
            if salts is None:  # nobody can say which round the log is in, but its first frame
                salts = found
            if pages and found == salts:
                commits.append(number)


def _is_whole(header: bytes) -> bool:
    """Say whether a log's header has the checksum that it ought to have."""
    if len(header) < _HEADER.size:
        return False
    magic = _HEADER.unpack(header)[0]
    if magic not in {_MAGIC_LITTLE_ENDIAN, _MAGIC_BIG_ENDIAN}:
        return False
    words = struct.unpack(">6I" if magic == _MAGIC_BIG_ENDIAN else "<6I", header[:24])
    first = second = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return (first, second) == _HEADER.unpack(header)[6:]
