"""A voter takes a setting only as something that is open: it can always be changed, and is never over."""

from __future__ import annotations

import pytest

from mesh.core.ids import NodeId
from mesh.registers.kinds import HOOKS, LONG_QUEUES, QUEUES, is_setting, may_hold
from mesh.registers.record import Record
from mesh.registers.roster import proposing, successor_key
from mesh.registers.voter import Store
from mesh.wire.register_messages import Accept, Accepted, Prepare, Promised, Value
from mesh.wire.roster_messages import Roster
from tests.unit.registers.asked import EPOCH, FINAL, OPEN, P_HAS, P, Q, accept, ballot, voter
from tests.unit.registers.keepers import UPKEEP, Keepers, final

SETTING = QUEUES + b"thumbs"
LONG = LONG_QUEUES + b"h" * 32


@pytest.mark.parametrize("key", [SETTING, LONG, HOOKS + b"shortage"])
def test_a_setting_is_open(key: bytes) -> None:
    assert is_setting(key)
    assert [may_hold(key, value) for value in (OPEN, P_HAS, FINAL)] == [True, False, False]


@pytest.mark.parametrize("key", [b"task/queue", b"taskx/q", b"queue", b"\x00roster/9", b"lock/a"])
def test_nothing_else_is_a_setting(key: bytes) -> None:
    assert not is_setting(key)


def test_a_task_is_whatever_it_is_and_a_roster_s_register_holds_the_roster_that_follows() -> None:
    assert all(may_hold(b"task/t", value) for value in (OPEN, P_HAS, FINAL))
    roster = proposing(Roster(EPOCH + 1, (P,)))(None)
    assert roster is not None
    assert may_hold(successor_key(EPOCH), roster)
    assert not may_hold(successor_key(EPOCH + 1), roster)
    assert not may_hold(successor_key(EPOCH), OPEN)


@pytest.mark.parametrize("value", [P_HAS, FINAL])
def test_a_voter_neither_accepts_nor_takes_a_setting_that_could_not_be_changed(
    value: Value,
) -> None:
    asked = voter()
    assert asked.handle(0.0, Accept(SETTING, EPOCH, ballot(1), 0, value)) == []
    assert asked.fill(SETTING, ballot(1), 0, value) == []
    assert not asked.holds(SETTING)


def test_a_setting_is_changed_again_and_again_by_whoever_asks() -> None:
    asked = voter()
    for n, who in ((1, P), (2, Q), (3, P)):
        (_, promised) = asked.handle(0.0, Prepare(SETTING, ballot(n, who), 0))
        assert isinstance(promised, Promised)
        value = Value(OPEN.standing, b"%d" % n)
        stored, accepted = asked.handle(0.0, Accept(SETTING, EPOCH, ballot(n, who), 0, value))
        assert stored == Store(SETTING, Record(ballot(n, who), ballot(n, who), 0, value))
        assert isinstance(accepted, Accepted)
    assert asked.handle(0.0, accept(1, FINAL)), "all else may be final as ever"


def test_a_setting_outlasts_all_that_is_purged_and_comes_to_a_voter_that_lacks_it() -> None:
    desks = Keepers(expires=lambda _key, _record: 0.0)
    absent, *others = desks.by_node
    desks.put(SETTING, OPEN, *others)
    desks.put(b"task/over", final(b"done"))
    desks.wait(4 * UPKEEP.message_life_s)
    assert desks.held(b"task/over") == [None] * 3
    assert desks.held(SETTING) == [OPEN] * 3, f"{NodeId(absent)} was shipped it"
    desks.check()
