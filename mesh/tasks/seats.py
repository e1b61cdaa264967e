"""What a steward reads of its node's desk: the records, and who votes on them."""

from __future__ import annotations

from typing import Protocol

from mesh.registers.voter import Voter
from mesh.wire.roster_messages import Roster


class Seats(Protocol):
    """What a steward reads of its node's desk."""

    voter: Voter

    def seats(self, key: bytes) -> Roster:
        """Return the voters of a register, best first."""

    def place(self, key: bytes) -> int | None:
        """Return this node's place among them."""
