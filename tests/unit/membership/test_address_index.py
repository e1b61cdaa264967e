"""Who is at an address, while members come, go, move and share one."""

from __future__ import annotations

from mesh.core.address import Address
from mesh.membership.address_index import AddressIndex
from mesh.membership.table import MemberTable
from mesh.wire.records import Cause, State, encode_card
from tests.unit.membership.pump import address, card, card_bytes, node_id

ELSEWHERE = Address("10.9.9.9", 7946)


def ids_at(index: AddressIndex, where: Address) -> list[int]:
    return [member.node_id for member in index.at(where)]


def test_members_are_found_where_they_are_and_nowhere_once_they_are_gone() -> None:
    table = MemberTable(node_id(1))
    index = AddressIndex(table)
    assert ids_at(index, address(2)) == []
    for number in (1, 2, 3):
        table.apply_card(0.0, card_bytes(number))
    assert ids_at(index, address(2)) == [node_id(2)]
    assert ids_at(index, address(1)) == [], "this node asks about others"
    table.apply_verdict(1.0, node_id(2), (1, 0, State.DEAD, Cause.SILENT))
    assert ids_at(index, address(2)) == []


def test_member_that_moves_is_found_at_its_new_address_alone() -> None:
    table = MemberTable(node_id(1))
    index = AddressIndex(table)
    table.apply_card(0.0, card_bytes(2))
    assert ids_at(index, address(2)) == [node_id(2)]
    table.apply_card(1.0, encode_card(card(2, incarnation=1, address=ELSEWHERE)))
    assert ids_at(index, address(2)) == []
    assert ids_at(index, ELSEWHERE) == [node_id(2)]


def test_two_that_claim_one_address_are_both_there() -> None:
    table = MemberTable(node_id(1))
    for number in (2, 3):
        table.apply_card(0.0, encode_card(card(number, address=ELSEWHERE)))
    assert sorted(ids_at(AddressIndex(table), ELSEWHERE)) == sorted([node_id(2), node_id(3)])
