"""Which living members are at an address: an index, made anew when it is asked for and somebody came or moved."""

from __future__ import annotations

from mesh.core.address import Address
from mesh.core.ids import NodeId
from mesh.membership.member import Member
from mesh.membership.table import MemberTable


class AddressIndex:
    """Answers from one pass over the members for each that comes or moves; who never asks pays nothing."""

    def __init__(self, table: MemberTable) -> None:
        self._table = table
        self._moves = -1
        self._first: dict[Address, NodeId] = {}
        self._more: dict[Address, list[NodeId]] = {}  # nearly always empty

    def at(self, address: Address) -> list[Member]:
        """Return the living others that say they are there: one, or several that are in conflict, or none."""
        if self._table.moves != self._moves:
            self._moves = self._table.moves
            self._read()
        first = self._first.get(address)
        ids = () if first is None else (first, *self._more.get(address, ()))
        found = (self._table.get(node_id) for node_id in ids)
        return [member for member in found if member is not None and member.place >= 0]

    def _read(self) -> None:
        """Note where everybody is, the dead too: they may return."""
        self._first, self._more = {}, {}
        for member in self._table:
            if self._first.setdefault(member.address, member.node_id) != member.node_id:
                self._more.setdefault(member.address, []).append(member.node_id)
