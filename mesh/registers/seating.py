"""Which voters keep a register: of the roster, the best three by the register's cell.

A cell's voters are ranked as everything is placed (mesh.placement), so every node that knows the roster knows
them, and knows which of them is the first: who may create a register without asking twice, and who offers it.

The registers in which rosters are chosen are kept by all voters of their epoch.

Source: [HRW].
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from mesh.core.ids import NodeId
from mesh.placement.cells import cell_of
from mesh.placement.rendezvous import rank
from mesh.registers.roster import FULL, ROSTERS
from mesh.wire.roster_messages import Roster

KEYS_IN_MIND_MAX: Final = 4_096


@lru_cache(maxsize=KEYS_IN_MIND_MAX)
def cell_of_key(key: bytes) -> int:
    """Return the cell of a register. One that was asked for lately is remembered: a task is, a dozen times."""
    return cell_of(key.decode("latin-1"))  # any bytes are a text of as many letters


class Seating:
    """The seats of every register in one epoch after the other."""

    def __init__(self, own_id: NodeId, roster: Roster | None) -> None:
        self.roster = roster
        """The latest that is known; None: none yet."""

        self._own_id = own_id
        self._by_cell: dict[int, Roster] = {}

    def adopt(self, roster: Roster) -> bool:
        """Take a later roster; return False, and change nothing, for one that is not later."""
        if self.roster is not None and roster.epoch <= self.roster.epoch:
            return False
        self.roster = roster
        self._by_cell.clear()
        return True

    def seats(self, key: bytes) -> Roster:
        """Return the epoch and the voters of a register, best first; epoch 0 and none, while no roster is known."""
        roster = self.roster
        if roster is None:
            return Roster(0, ())
        if key.startswith(ROSTERS):
            return roster
        return self.seats_of_cell(cell_of_key(key))

    def seats_of_cell(self, cell: int) -> Roster:
        """Return the epoch and the voters of all registers of a cell, best first; epoch 0 and none, while no roster is known."""
        roster = self.roster
        if roster is None:
            return Roster(0, ())
        seats = self._by_cell.get(cell)
        if seats is None:
            ranked = rank(cell, ((voter, 1) for voter in roster.voters))
            seats = self._by_cell[cell] = Roster(roster.epoch, tuple(ranked[:FULL]))
        return seats

    def place(self, key: bytes) -> int | None:
        """Return this node's place among the voters of a register: 0 is the first; None: it is none of them."""
        voters = self.seats(key).voters
        return voters.index(self._own_id) if self._own_id in voters else None
