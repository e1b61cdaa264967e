"""What a voter keeps of one register, on disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mesh.core.ballot import NO_BALLOT, Ballot
from mesh.wire.register_messages import Standing, Value


@dataclass(frozen=True, slots=True)
class Record:
    """One register at one voter.

    Invariant: `promised` is not below `ballot`; neither it nor (`ballot`, `seq`) ever goes down.
    """

    promised: Ballot = NO_BALLOT
    ballot: Ballot = NO_BALLOT
    """Of the value; NO_BALLOT: nothing was accepted."""

    seq: int = 0
    """Numbers the writes under one ballot."""

    value: Value | None = None

    @property
    def is_leased(self) -> bool:
        """Say whether somebody owns it, or did until the lease lapsed."""
        return self.value is not None and self.value.standing is Standing.LEASED

    @property
    def is_named(self) -> bool:
        """Say whether its owner was named by the write that created it, and has written nothing since.

        It may not know of it; it trusts nothing before a majority renewed that.
        """
        return self.is_leased and self.ballot.n == 0 and self.seq == 0


NOTHING: Final = Record()
"""Of a register that nobody has asked about."""
