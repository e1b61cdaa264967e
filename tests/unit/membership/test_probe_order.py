"""Whom to probe next: a shuffled round in which nobody is left out."""

import random

from mesh.membership.probe_order import ProbeOrder
from mesh.membership.table import MemberTable
from mesh.wire.records import Cause, State
from tests.unit.membership.pump import card_bytes, node_id


def table_of(count: int) -> MemberTable:
    table = MemberTable(node_id(1))
    for number in range(1, count + 1):
        table.apply_card(0.0, card_bytes(number))
    return table


def test_every_member_is_probed_once_a_round_and_never_this_node() -> None:
    table = table_of(20)
    order = ProbeOrder(random.Random(1))
    for _ in range(3):
        probed = [order.next(table) for _ in range(19)]
        assert sorted(m.node_id for m in probed if m) == [node_id(n) for n in range(2, 21)]


def test_rounds_have_different_orders() -> None:
    table = table_of(20)
    order = ProbeOrder(random.Random(1))
    rounds = [[m.node_id for m in (order.next(table) for _ in range(19)) if m] for _ in range(2)]
    assert rounds[0] != rounds[1]


def test_newcomer_is_probed_within_the_round_it_came_in() -> None:
    table = table_of(10)
    order = ProbeOrder(random.Random(1))
    order.next(table)
    table.apply_card(0.0, card_bytes(30))
    order.insert(node_id(30))
    rest = [order.next(table) for _ in range(9)]
    assert node_id(30) in [m.node_id for m in rest if m]


def test_dead_are_skipped_and_nobody_is_next_when_nobody_lives() -> None:
    table = table_of(3)
    order = ProbeOrder(random.Random(1))
    assert order.next(table) is not None
    for number in (2, 3):
        table.apply_verdict(0.0, node_id(number), (1, 0, State.DEAD, Cause.SILENT))
    assert order.next(table) is None


def test_who_comes_and_goes_gets_one_place_a_round() -> None:
    table = table_of(10)
    order = ProbeOrder(random.Random(1))
    first = order.next(table)
    assert first is not None
    for _ in range(20):
        order.insert(first.node_id)
        order.insert(node_id(5 if first.node_id != node_id(5) else 6))
    rest = [m.node_id for m in (order.next(table) for _ in range(8)) if m]
    assert sorted([*rest, first.node_id]) == [node_id(n) for n in range(2, 11)]
