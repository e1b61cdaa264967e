"""The table of members: knowledge only ever grows."""

import random

import pytest

from mesh.errors import DecodeError
from mesh.membership.table import MemberTable
from mesh.wire.records import Cause, State
from tests.unit.membership.pump import address, card_bytes, node_id

ME = node_id(1)
SUSPECT = (State.SUSPECT, Cause.NONE)
SILENT = (State.DEAD, Cause.SILENT)
CRASHED = (State.DEAD, Cause.CRASHED)
LEFT = (State.LEFT, Cause.NONE)


@pytest.fixture
def table() -> MemberTable:
    table = MemberTable(ME)
    table.apply_card(0.0, card_bytes(1))
    table.apply_card(0.0, card_bytes(2))
    return table


def state(table: MemberTable, number: int = 2) -> State:
    member = table.get(node_id(number))
    assert member is not None
    return member.state


def test_first_card_of_a_member_adds_it_alive(table: MemberTable) -> None:
    change = table.apply_card(5.0, card_bytes(3))
    assert change is not None
    assert change.before is None
    assert state(table, 3) is State.ALIVE
    assert table.size == 3


def test_same_card_again_changes_nothing(table: MemberTable) -> None:
    assert table.apply_card(1.0, card_bytes(2)) is None


def test_verdict_on_somebody_unknown_adds_nobody(table: MemberTable) -> None:
    assert table.apply_verdict(1.0, node_id(9), (1, 0, *SUSPECT)) is None
    assert table.get(node_id(9)) is None


def test_suspect_with_stale_incarnation_is_ignored(table: MemberTable) -> None:
    table.apply_card(1.0, card_bytes(2, incarnation=3))
    assert table.apply_verdict(2.0, node_id(2), (1, 2, *SUSPECT)) is None
    assert state(table) is State.ALIVE


@pytest.mark.parametrize("boot", [1, 3])
def test_suspect_with_another_boot_is_ignored(boot: int) -> None:
    table = MemberTable(ME)
    table.apply_card(0.0, card_bytes(2, boot=2))
    assert table.apply_verdict(1.0, node_id(2), (boot, 9, *SUSPECT)) is None
    assert state(table) is State.ALIVE


def test_refutation_outranks_suspicion_and_death(table: MemberTable) -> None:
    for verdict in (SUSPECT, SILENT):
        member = table.get(node_id(2))
        assert member is not None
        table.apply_verdict(1.0, node_id(2), (1, member.incarnation, *verdict))
        assert state(table) is verdict[0]
        table.apply_card(2.0, card_bytes(2, incarnation=member.incarnation + 1))
        assert state(table) is State.ALIVE


def test_death_is_not_taken_back_by_a_suspicion_of_the_same_incarnation(table: MemberTable) -> None:
    table.apply_verdict(1.0, node_id(2), (1, 0, *SILENT))
    assert table.apply_verdict(2.0, node_id(2), (1, 0, *SUSPECT)) is None
    assert state(table) is State.DEAD


def test_stronger_cause_of_death_stays(table: MemberTable) -> None:
    table.apply_verdict(1.0, node_id(2), (1, 0, *CRASHED))
    assert table.apply_verdict(2.0, node_id(2), (1, 0, *SILENT)) is None
    member = table.get(node_id(2))
    assert member is not None
    assert member.cause is Cause.CRASHED


def test_farewell_outranks_death(table: MemberTable) -> None:
    table.apply_verdict(1.0, node_id(2), (1, 0, *SILENT))
    table.apply_verdict(2.0, node_id(2), (1, 0, *LEFT))
    assert state(table) is State.LEFT


def test_restart_with_a_higher_boot_supersedes_everything(table: MemberTable) -> None:
    table.apply_verdict(1.0, node_id(2), (1, 7, *LEFT))
    change = table.apply_card(2.0, card_bytes(2, boot=2))
    assert change is not None
    assert change.is_restart
    assert change.before is not None
    assert change.before[0] == 1
    assert state(table) is State.ALIVE
    assert table.apply_card(3.0, card_bytes(2, boot=1, incarnation=8)) is None


def test_later_card_of_a_dead_session_does_not_revive_it(table: MemberTable) -> None:
    table.apply_verdict(1.0, node_id(2), (1, 5, *SILENT))
    table.apply_card(2.0, card_bytes(2, incarnation=4, address=address(9)))
    member = table.get(node_id(2))
    assert member is not None
    assert (member.state, member.incarnation, member.address) == (State.DEAD, 5, address(9))


def test_since_counts_from_the_change_of_state_only(table: MemberTable) -> None:
    table.apply_card(7.0, card_bytes(2, incarnation=1))
    member = table.get(node_id(2))
    assert member is not None
    assert member.since == 0.0
    table.apply_verdict(9.0, node_id(2), (1, 1, *SUSPECT))
    assert member.since == 9.0


def test_bytes_that_are_no_card_change_nothing(table: MemberTable) -> None:
    with pytest.raises(DecodeError):
        table.apply_card(1.0, b"\x93\x01\x02\x03")
    assert len(table) == 2


def test_choose_never_returns_this_node_nor_the_one_excepted() -> None:
    table = MemberTable(ME)
    for number in range(1, 12):
        table.apply_card(0.0, card_bytes(number))
    rng = random.Random(1)
    for count in range(13):
        chosen = [m.node_id for m in table.choose(rng, count, but=node_id(5))]
        assert len(chosen) == len(set(chosen)) == min(count, 9)
        assert ME not in chosen
        assert node_id(5) not in chosen


def test_gone_lists_the_latest_first() -> None:
    table = MemberTable(ME)
    for number in (2, 3, 4):
        table.apply_card(0.0, card_bytes(number))
    for number in (3, 2, 4):
        table.apply_verdict(1.0, node_id(number), (1, 0, *SILENT))
    assert table.gone == [node_id(4), node_id(2), node_id(3)]
    table.remove(node_id(2))
    assert table.gone == [node_id(4), node_id(3)]
    table.check_invariants()
