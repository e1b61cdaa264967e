"""The key space in 256 cells, and who owns each: a table that one member more or less barely touches.

For every cell all members are kept in rank order (best score first); the first R are its owners. A new
member costs P hashes and is sorted in; a member that goes is taken out, and the next best is already
there. Nobody else moves.

Tasks are ranked by their own key (`live_view.py`), not by its cell: 256 homes would be too few for a
thousand members. The cells are for registers, whose voters are chosen by them; nothing else uses them.

Memory: 16 bytes for each cell and member, 4 KiB a member.

Source: [HRW]; one table entry per cell instead of one per key is ours.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from mesh.core.ids import NodeId
from mesh.placement.rendezvous import hash64, rank, score

CELLS: Final = 256  # fixed when a mesh is founded


def cell_of(key: str) -> int:
    """Return the cell of a key, 0 to 255."""
    return hash64(key) % CELLS


class CellTable:
    """The ranking of members in every cell, kept up to date one member at a time."""

    def __init__(self, owners_max: int = 3) -> None:
        self.owners_max = owners_max
        self._weights: dict[NodeId, int] = {}
        # Invariant: row i of _losses rises, and _ids[i] names its members in the same order.
        self._losses = [array("d") for _ in range(CELLS)]  # scores, negated
        self._ids = [array("Q") for _ in range(CELLS)]

    def __len__(self) -> int:
        return len(self._weights)

    def __contains__(self, node_id: NodeId) -> bool:
        return node_id in self._weights

    def owners(self, cell: int) -> tuple[NodeId, ...]:
        """Return the cell's best members, at most `owners_max`, best first."""
        return tuple(NodeId(node_id) for node_id in self._ids[cell][: self.owners_max])

    def add(self, node_id: NodeId, weight: int) -> list[int]:
        """Take a member in, or give it another weight. Return the cells whose owners changed.

        Weight 0 leaves it out. 256 hashes (512 when it was there already).
        """
        before = self.remove(node_id) if node_id in self._weights else []
        if weight <= 0:
            return before
        self._weights[node_id] = weight
        moved = set(before)
        for cell in range(CELLS):
            loss = -score(cell, node_id, weight)
            place = self._place(cell, loss, node_id)
            self._losses[cell].insert(place, loss)
            self._ids[cell].insert(place, node_id)
            if place < self.owners_max:
                moved.add(cell)
        return sorted(moved)

    def remove(self, node_id: NodeId) -> list[int]:
        """Take a member out; nothing happens if it is not in. Return the cells whose owners changed."""
        weight = self._weights.pop(node_id, None)
        if weight is None:
            return []
        moved = []
        for cell in range(CELLS):
            place = self._place(cell, -score(cell, node_id, weight), node_id)
            del self._losses[cell][place]
            del self._ids[cell][place]
            if place < self.owners_max:
                moved.append(cell)
        return moved

    def check_invariants(self) -> None:
        """Raise AssertionError unless the table equals one made from scratch. O(256 n log n)."""
        members: Iterable[tuple[NodeId, int]] = self._weights.items()
        for cell in range(CELLS):
            assert list(self._ids[cell]) == rank(cell, members), f"cell {cell} is out of order"
            assert len(self._losses[cell]) == len(self._ids[cell]), f"cell {cell} has odd rows"

    def _place(self, cell: int, loss: float, node_id: NodeId) -> int:
        """Return where (loss, node_id) stands, or belongs, in the cell's row."""
        losses, ids = self._losses[cell], self._ids[cell]
        place = bisect_left(losses, loss)
        while place < len(losses) and losses[place] == loss and ids[place] < node_id:
            place += 1
        return place
