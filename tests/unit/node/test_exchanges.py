"""Exchanges: bounded, closed once, and work leaves room for membership."""

from __future__ import annotations

import pytest

from mesh.core.ids import NodeId
from mesh.core.requests import Ask
from mesh.node.delivery import Parcel
from mesh.node.exchanges import (
    EXCHANGES_MAX,
    WORK_EXCHANGES_MAX,
    WORK_EXCHANGES_PEER_MAX,
    Exchanges,
)
from mesh.runtime.streams import AskLimits
from mesh.wire.swim_messages import SyncRoot
from tests.unit.membership.pump import address


def work(number: int = 1) -> Ask:
    return Ask(address(number), Parcel((b"x",)), None, 1.0)


def membership(number: int = 1) -> Ask:
    return Ask(address(number), SyncRoot(1), ("sync", NodeId(1)), 1.0)


def test_an_exchange_is_closed_once() -> None:
    exchanges = Exchanges()
    ask = work()
    number = exchanges.open(ask)
    assert number is not None
    assert exchanges.close(number) is ask
    assert exchanges.close(number) is None
    exchanges.check_invariants()


def test_work_leaves_room_for_membership() -> None:
    exchanges = Exchanges(count_max=10, work_max=7)
    opened = [exchanges.open(work(number)) for number in range(1, 10)]
    assert opened.count(None) == exchanges.refused == 2
    assert all(exchanges.open(membership()) is not None for _ in range(3))
    assert exchanges.open(membership()) is None
    exchanges.check_invariants()


def test_work_leaves_room_for_membership_at_each_peer() -> None:
    exchanges = Exchanges()
    opened = [exchanges.open(work()) for _ in range(WORK_EXCHANGES_PEER_MAX + 1)]
    assert opened[-1] is None
    assert exchanges.open(membership()) is not None
    assert exchanges.open(work(2)) is not None
    assert opened[0] is not None
    exchanges.close(opened[0])
    assert exchanges.open(work()) is not None
    exchanges.check_invariants()


@pytest.mark.parametrize(
    ("less", "more"),
    [
        (WORK_EXCHANGES_MAX, EXCHANGES_MAX),
        (WORK_EXCHANGES_PEER_MAX, AskLimits().pending_max),
    ],
)
def test_the_bounds_leave_something(less: int, more: int) -> None:
    assert 0 < less < more
