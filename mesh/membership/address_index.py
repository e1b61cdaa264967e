"""Which living members are at an address: an index of the table, made when it is asked for and has changed."""

from __future__ import annotations

from mesh.core.address import Address
from mesh.core.ids import NodeId
from mesh.membership.member import Member
from mesh.membership.table import MemberTable


class AddressIndex:
    """Answers from one pass over the living for each change of them; who never asks pays nothing."""

    def __init__(self, table: MemberTable) -> None:
        self._table = table
        self._view = 0
        self._by_address: dict[Address, list[NodeId]] = {}

    def at(self, address: Address) -> list[Member]:
        """Return the living others that say they are there: one, or several that are in conflict, or none."""
        if self._table.view_hash != self._view:
            self._view = self._table.view_hash
            self._by_address = {}
            for node_id in self._table.living:
                member = self._table.get(node_id)
                if member is not None:
                    self._by_address.setdefault(member.address, []).append(node_id)
        found = (self._table.get(node_id) for node_id in self._by_address.get(address, ()))
        return [member for member in found if member is not None and member.is_living]
