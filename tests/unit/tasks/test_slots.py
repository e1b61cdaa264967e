"""Who waits for a slot is told in turn."""

from __future__ import annotations

from mesh.core.ids import NodeId
from mesh.tasks.config import TasksConfig
from mesh.tasks.slots import Slots

A, B, C, D = NodeId(1), NodeId(2), NodeId(3), NodeId(4)
NOTHING: tuple[tuple[str, int], ...] = ()


def slots(count: int, **offers: int) -> Slots:
    return Slots(count, offers, TasksConfig(waiters_max=2))


def test_who_waits_longest_is_told_first_and_the_slot_is_held_for_it() -> None:
    mine = slots(1)
    mine.note(A)
    mine.note(B)
    assert mine.take_told(0.0) == [A]
    assert not mine.can_run_now(NOTHING, B)
    assert mine.can_run_now(NOTHING, A)


def test_who_does_not_come_loses_the_slot_to_the_next_one() -> None:
    mine = slots(1)
    mine.note(A)
    mine.note(B)
    mine.take_told(0.0)
    due = mine.next_timeout()
    assert due is not None
    assert mine.take_told(due) == [B]
    assert mine.can_run_now(NOTHING, B)
    assert mine.next_timeout() == due + TasksConfig().tell_pause_s


def test_slot_that_is_held_for_one_that_does_not_come_is_anybodys_then_though_nobody_waits() -> (
    None
):
    mine = slots(1)
    mine.note(A)
    assert mine.take_told(0.0) == [A]
    assert not mine.can_run_now(NOTHING, B)
    due = mine.next_timeout()
    assert due == TasksConfig().tell_pause_s
    assert mine.take_told(due) == []
    assert mine.can_run_now(NOTHING, B)
    assert mine.free_for(B) == 1


def test_each_hold_ends_once_and_a_node_that_holds_nothing_sleeps_on() -> None:
    mine = Slots(3, {}, TasksConfig())
    now, ends = 0.0, 0
    for voter in (A, B, C, D):
        mine.note(voter)
    mine.take_told(now)
    while (due := mine.next_timeout()) is not None:
        assert due > now
        now, ends = due, ends + 1
        mine.take_told(now)
    assert ends == 2  # of the first three at once, and of the fourth


def test_one_voter_stands_in_the_line_once_and_the_line_is_bounded() -> None:
    mine = slots(5)
    for voter in (A, A, B, C):
        mine.note(voter)
    assert mine.turned_away == 1
    assert mine.take_told(0.0) == [A, B]


def test_a_voter_may_try_for_what_nobody_waits_for_before_it() -> None:
    mine = slots(3)
    mine.note(A)
    assert mine.free_for(A) == 3
    assert mine.free_for(B) == 2
    mine.take_told(0.0)
    assert mine.free_for(B) == 2


def test_who_waits_or_was_told_may_try_for_what_those_behind_it_wait_for() -> None:
    mine = Slots(2, {}, TasksConfig())
    for voter in (A, B, C):
        mine.note(voter)
    assert [mine.free_for(voter) for voter in (A, B, C, D)] == [2, 1, 0, 0]
    assert mine.take_told(0.0) == [A, B]
    assert [mine.free_for(voter) for voter in (A, B, C, D)] == [1, 1, 0, 0]
    mine.check_invariants()


def test_amounts_are_taken_and_given_back() -> None:
    mine = slots(4, gpu=2)
    needs = (("gpu", 2),)
    assert mine.can_run_now(needs, A)
    mine.take(needs)
    assert not mine.can_run_now(needs, A)
    assert mine.can_ever_run(needs)
    assert mine.can_run_now(NOTHING, A)
    mine.give_back(needs)
    assert mine.can_run_now(needs, A)
    mine.check_invariants()
