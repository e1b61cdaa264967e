"""SWIM's round: every member is pinged once in it, in an order that nobody can predict.

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

    __slots__ = ("_left", "_rng", "_round", "_seen")

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._round: list[NodeId] = []  # those who had their turn stay, behind the rest
        self._left = 0  # how many are before them: the next is the last of these
        self._seen: set[NodeId] | None = None  # the same, made when somebody comes

    def insert(self, node_id: NodeId) -> None:
        """Give a member that is new in this round a random place in the rest of it.

        One that only was away keeps to its place: were it given one more at each return, those who come
        and go would fill the round, and whoever died meanwhile would wait for its end.
        """
        if self._seen is None:
            self._seen = set(self._round)
        if node_id not in self._seen:
            self._seen.add(node_id)
            self._round.insert(self._rng.randint(0, self._left), node_id)
            self._left += 1

    def next(self, table: MemberTable) -> Member | None:
        """Return the next living member, starting a new round when this one is over; None if nobody lives."""
        for _ in range(2):
            while self._left:
                self._left -= 1
                member = table.get(self._round[self._left])
                if member is not None and member.is_living:
                    return member
            self._round = list(table.living)
            self._left = len(self._round)
            self._seen = None
            self._rng.shuffle(self._round)
        return None
