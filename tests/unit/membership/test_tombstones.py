"""What a table knows of the forgotten: what outranks what, what is compared, and how many there may be."""

import pytest

from mesh.membership import table as table_module
from mesh.membership import tombstones as tombstones_module
from mesh.membership.digest import bucket_hashes
from mesh.membership.paging import page
from mesh.membership.table import MemberTable
from mesh.wire.records import Cause, Standing, State, is_proof
from tests.unit.membership.pump import card_bytes, node_id

ME = node_id(1)
FORGOTTEN = (State.FORGOTTEN, Cause.NONE)
SILENT = (State.DEAD, Cause.SILENT)


def table_of(*numbers: int) -> MemberTable:
    table = MemberTable(ME)
    for number in (1, *numbers):
        table.apply_card(0.0, card_bytes(number))
    return table


def forget(table: MemberTable, number: int, *, at: float = 1.0, incarnation: int = 0) -> None:
    table.apply_verdict(at, node_id(number), (1, incarnation, *FORGOTTEN))
    table.check_invariants()


def state(table: MemberTable, number: int = 2) -> State | None:
    member = table.get(node_id(number))
    return None if member is None else member.state


def tombstone(number: int, *, age_s: int = 0, incarnation: int = 0) -> Standing:
    card = card_bytes(number)
    return Standing(1, incarnation, *FORGOTTEN, age_s, card, node_id(9))


@pytest.mark.parametrize("verdict", [SILENT, (State.DEAD, Cause.ENDED), (State.LEFT, Cause.NONE)])
def test_to_be_forgotten_outranks_every_way_of_being_gone(verdict: tuple[State, Cause]) -> None:
    table = table_of(2)
    table.apply_verdict(1.0, node_id(2), (1, 0, *verdict))
    forget(table, 2)
    assert state(table) is State.FORGOTTEN
    assert table.apply_verdict(2.0, node_id(2), (1, 0, *verdict)) is None
    assert state(table) is State.FORGOTTEN


@pytest.mark.parametrize("incarnation", [0, 3])
def test_nothing_that_was_said_up_to_the_same_incarnation_brings_it_back(incarnation: int) -> None:
    table = table_of(2)
    forget(table, 2, incarnation=3)
    table.apply_card(2.0, card_bytes(2, incarnation=incarnation))
    for told in ((State.SUSPECT, Cause.NONE), (State.DEAD, Cause.ENDED), (State.LEFT, Cause.NONE)):
        table.apply_verdict(2.0, node_id(2), (1, incarnation, *told))
    table.check_invariants()
    assert state(table) is State.FORGOTTEN


@pytest.mark.parametrize("later", [{"incarnation": 4}, {"boot": 2}])
def test_a_later_word_of_the_member_itself_brings_it_back(later: dict[str, int]) -> None:
    table = table_of(2)
    forget(table, 2, incarnation=3)
    change = table.apply_card(2.0, card_bytes(2, **later))
    assert change is not None
    assert change.is_return
    table.check_invariants()
    assert state(table) is State.ALIVE
    assert len(table.tombstones) == 0


@pytest.mark.parametrize("cause", list(Cause))
def test_to_be_forgotten_is_no_proof(cause: Cause) -> None:
    assert not is_proof(State.FORGOTTEN, cause)


def test_the_forgotten_are_neither_living_nor_gone() -> None:
    table = table_of(2, 3)
    view = table_of(3).view_hash
    table.apply_verdict(1.0, node_id(2), (1, 0, *SILENT))
    forget(table, 2)
    assert table.living == [node_id(3)]
    assert table.gone == []
    assert table.recently_dead(1.0, 60.0, 3) == []
    assert table.view_hash == view
    table.remove(node_id(2))
    table.check_invariants()
    assert state(table) is None


def test_what_is_compared_of_the_forgotten_depends_on_neither_card_nor_way() -> None:
    one, other = table_of(2, 3), table_of(2, 3)
    one.apply_card(1.0, card_bytes(2, incarnation=2))
    for table in (one, other):
        forget(table, 2, incarnation=4)
    assert one.tombstones.hash == other.tombstones.hash != 0
    assert bucket_hashes(one) == bucket_hashes(other)
    forget(one, 3)
    assert one.tombstones.hash != other.tombstones.hash
    assert bucket_hashes(one) != bucket_hashes(other)


def test_a_tombstone_is_as_old_here_as_it_was_there_and_telling_makes_none_younger() -> None:
    table = table_of(2)
    table.apply(1_000.0, tombstone(2, age_s=600))
    member = table.get(node_id(2))
    assert member is not None
    assert member.since == 400.0
    age_s = 600
    for now in (1_000.4, 1_000.8, 1_001.1):
        told = member.standing(now)
        assert told.age_s >= max(age_s, now - 400.0)
        age_s = told.age_s
    assert told.by == member.tombstone(now).by == node_id(9)


def test_who_returns_is_not_said_to_be_forgotten_by_anybody() -> None:
    table = table_of(2)
    table.apply(1.0, tombstone(2))
    table.apply_card(2.0, card_bytes(2, incarnation=1))
    member = table.get(node_id(2))
    assert member is not None
    assert member.by == 0


def test_tombstones_run_out_after_their_time() -> None:
    table = table_of(2, 3)
    forget(table, 2, at=10.0)
    forget(table, 3, at=20.0)
    assert table.tombstones.expired(69.9, 60.0) == []
    assert table.tombstones.expired(70.0, 60.0) == [node_id(2)]


# Room.


def test_one_tombstone_too_many_pushes_out_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tombstones_module, "TOMBSTONES_MAX", 2)
    table = table_of(2, 3, 4)
    for number, at in ((3, 1.0), (2, 2.0), (4, 3.0)):
        forget(table, number, at=at)
    assert [state(table, n) for n in (2, 3, 4)] == [State.FORGOTTEN, None, State.FORGOTTEN]


def test_an_older_tombstone_than_all_that_are_kept_is_not_taken_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tombstones_module, "TOMBSTONES_MAX", 2)
    table = table_of(2, 3)
    forget(table, 2, at=50.0)
    forget(table, 3, at=60.0)
    assert table.apply(70.0, tombstone(4, age_s=30)) is None
    assert table.apply(70.0, tombstone(5, age_s=5)) is not None
    table.check_invariants()
    assert [state(table, n) for n in (2, 3, 4, 5)] == [None, State.FORGOTTEN, None, State.FORGOTTEN]


def test_a_newcomer_to_a_full_table_pushes_out_a_tombstone_before_anybody_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_module, "MEMBERS_MAX", 4)
    table = table_of(2, 3, 4)
    table.apply_verdict(1.0, node_id(3), (1, 0, *SILENT))
    forget(table, 2, at=5.0)
    table.apply_card(6.0, card_bytes(7))
    table.check_invariants()
    assert (state(table, 2), state(table, 3), state(table, 7)) == (None, State.DEAD, State.ALIVE)
    table.apply_card(7.0, card_bytes(8))
    assert (state(table, 3), state(table, 8)) == (None, State.ALIVE)
    assert table.apply_card(8.0, card_bytes(9)) is None
    assert table.turned_away == 1


def test_a_tombstone_pushes_nobody_out_of_a_full_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "MEMBERS_MAX", 3)
    table = table_of(2, 3)
    table.apply_verdict(1.0, node_id(3), (1, 0, *SILENT))
    assert table.apply(2.0, tombstone(4)) is None
    assert (state(table, 3), state(table, 4), table.turned_away) == (State.DEAD, None, 0)


def test_the_forgotten_go_last_into_a_frame() -> None:
    table = table_of(2, 3, 4)
    forget(table, 4, at=9.0)
    table.apply_verdict(3.0, node_id(3), (1, 0, *SILENT))
    standings = [member.standing(10.0) for member in table]
    whole = page(standings)
    assert [s.state for s in whole[-2:]] == [State.DEAD, State.FORGOTTEN]
    room = sum(len(s.card) + 33 for s in whole[:3])
    assert State.FORGOTTEN not in {s.state for s in page(standings, room)}
