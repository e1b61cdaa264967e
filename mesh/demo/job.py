"""The demo's work: compress and hash files, one line of JSON for each.

A command that may run again says where it begins, because what a lost attempt had printed already was
delivered: only what follows the last `BEGIN` line counts.

Run as `python -m mesh.demo.job PACE ROOT FILE…`, anywhere in the mesh; the command is ordinary and
knows nothing of Mesh. It is the polite kind: it runs at a low priority, so that a busy host stays
usable. PACE is the time in seconds that each file takes at least.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

BEGIN: Final = "begin"
NICE: Final = 10
PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Digest:
    """What the work finds out about one file."""

    name: str  # relative to the root
    sha256: str
    bytes: int
    compressed_bytes: int

    @classmethod
    def of(cls, root: Path, name: str) -> Self:
        """Do the work for one file."""
        sha256, compressor = hashlib.sha256(), lzma.LZMACompressor()
        count = compressed_bytes = 0
        with (root / name).open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                sha256.update(piece)
                count += len(piece)
                compressed_bytes += len(compressor.compress(piece))
        compressed_bytes += len(compressor.flush())
        return cls(name, sha256.hexdigest(), count, compressed_bytes)

    def to_line(self) -> str:
        """Return the line of JSON."""
        return json.dumps([self.name, self.sha256, self.bytes, self.compressed_bytes])

    @classmethod
    def from_line(cls, line: str) -> Self:
        """Return the digest of its line; raises ValueError if it is none."""
        found = json.loads(line)
        if not isinstance(found, list) or len(found) != 4:
            raise ValueError(f"four values are expected, found {line[:80]!r}")
        name, sha256, count, compressed_bytes = found
        return cls(name, sha256, count, compressed_bytes)


def counted_lines(output: str) -> list[str]:
    """Return the lines of the last attempt in a task's output."""
    return output.rpartition(f"\n{BEGIN}\n")[2].splitlines()


def main(arguments: Sequence[str]) -> int:
    """Print `BEGIN`, then the digest of every file given, in the order given."""
    pace, root, *names = arguments
    os.nice(NICE)
    print(f"\n{BEGIN}", flush=True)
    due = time.monotonic()
    for name in names:
        due += float(pace)
        time.sleep(max(0.0, due - time.monotonic()))
        print(Digest.of(Path(root), name).to_line(), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
