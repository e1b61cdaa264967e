"""What is kept on a node's disk of its registers: bytes, which whoever keeps them does not understand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


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


@dataclass(frozen=True, slots=True)
class Kept:
    """All that a session begins with: what those before it have committed. Read once."""

    records: Iterable[StoredRecord] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)
