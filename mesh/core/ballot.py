"""Ballots: who asks, as a number that orders all who ever ask; people know it as the fencing token.

    domain │ epoch │ n │ node_id        compared from left to right

`domain` rises when the records' keeping is switched or a loss was accepted, so tokens neither go back nor
tie; `epoch` numbers the roster that is asked; `n` is one more than any that the asker knows of; the node's
id breaks ties. `n` = 0 is kept for the first voter of a key, which may create it without asking twice.

Source: ballots as (round, proposer) follow Paxos; a rising number that goes along with every request, [Chubby].
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final, NamedTuple

from mesh.core.ids import NodeId

_WIDTHS: Final = struct.Struct(">IIHIQ")
BALLOT_BYTES: Final = _WIDTHS.size

N_MAX: Final = (1 << 48) - 1
"""Of a million ballots a second for eight years."""


class Ballot(NamedTuple):
    """One asker's ballot. Compares as the tuple it is."""

    domain: int
    epoch: int
    n: int
    node_id: NodeId

    @property
    def token(self) -> int:
        """The fencing token: an integer that compares as the ballot does."""
        return int.from_bytes(self.pack(), "big")

    def pack(self) -> bytes:
        """Return `BALLOT_BYTES` bytes that compare as the ballot does."""
        return _WIDTHS.pack(
            self.domain, self.epoch, self.n >> 32, self.n & 0xFFFF_FFFF, self.node_id
        )

    @classmethod
    def unpack(cls, data: bytes) -> Ballot:
        """Return the ballot of these `BALLOT_BYTES` bytes."""
        domain, epoch, high, low, node_id = _WIDTHS.unpack(data)
        n = high << 32 | low
        return cls(domain, epoch, n, NodeId(node_id)) if n else first_ballot(domain, epoch, node_id)


@lru_cache(maxsize=256)
def first_ballot(domain: int, epoch: int, node_id: int) -> Ballot:
    """Return the ballot with `n` = 0: the same one again, since every new register that a voter keeps has it."""
    return Ballot(domain, epoch, 0, NodeId(node_id))


NO_BALLOT: Final = Ballot(0, 0, 0, NodeId(0))
"""Below every other."""
