"""Whom to ping next: every member once a round, in an order that nobody can predict.

Each round goes through a fresh shuffle; a member that joins in the middle gets a random place in
what is left of it. So the time until a dead member is probed is bounded by two rounds.

Source: [SWIM §4.3] randomised round-robin probing.
"""

from __future__ import annotations

import random

from mesh.core.ids import NodeId
from mesh.membership.member import Member
from mesh.membership.table import MemberTable


class ProbeOrder:
    """The order of probes. Members that have gone since the shuffle are skipped."""

    __slots__ = ("_left", "_rng")

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._left: list[NodeId] = []  # taken from the end

    def insert(self, node_id: NodeId) -> None:
        """Give a new member a random place in the rest of this round."""
        self._left.insert(self._rng.randint(0, len(self._left)), node_id)

    def hasten(self, node_id: NodeId) -> None:
        """Make a member the next one."""
        self._left.append(node_id)

    def next(self, table: MemberTable) -> Member | None:
        """Return the next living member, starting a new round when this one is over; None if nobody lives."""
        for _ in range(2):
            while self._left:
                member = table.get(self._left.pop())
                if member is not None and member.is_living:
                    return member
            self._left = list(table.living)
            self._rng.shuffle(self._left)
        return None
