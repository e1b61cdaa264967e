"""One register as it is kept on a disk: bytes, which whoever keeps them does not understand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """What is kept of one key. Ballots are bytes of one width, compared from the left; they mean nothing here.

    `(ballot, seq)` names one value, and neither it nor `promised` ever goes down: the store refuses.
    """

    key: bytes
    promised: bytes | None
    ballot: bytes | None
    seq: int
    value: bytes | None

    @property
    def size_bytes(self) -> int:
        """Return about what this takes while it waits, and on disk."""
        return 100 + len(self.key) + len(self.value or b"")
