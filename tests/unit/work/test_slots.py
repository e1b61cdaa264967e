"""Who waits for a slot is told in turn."""

from __future__ import annotations

from mesh.core.ids import NodeId
from mesh.wire.work_messages import Spec
from mesh.work.config import WorkConfig
from mesh.work.running.slots import Slots

A, B, C = NodeId(1), NodeId(2), NodeId(3)
SPEC = Spec(task_id="t", argv=("true",))


def slots(count: int, **offers: int) -> Slots:
    return Slots(count, offers, WorkConfig(waiters_max=2))


def test_who_waits_longest_is_told_first_and_the_slot_is_held_for_it() -> None:
    mine = slots(1)
    mine.note(A)
    mine.note(B)
    assert mine.take_told(0.0) == [A]
    assert not mine.can_run_now(SPEC, B)
    assert mine.can_run_now(SPEC, A)


def test_who_does_not_come_loses_the_slot_to_the_next_one() -> None:
    mine = slots(1)
    mine.note(A)
    mine.note(B)
    mine.take_told(0.0)
    due = mine.next_timeout()
    assert due is not None
    assert mine.take_told(due) == [B]
    assert mine.can_run_now(SPEC, B)
    assert mine.next_timeout() is None


def test_one_keeper_stands_in_the_line_once_and_the_line_is_bounded() -> None:
    mine = slots(5)
    for keeper in (A, A, B, C):
        mine.note(keeper)
    assert mine.turned_away == 1
    assert mine.take_told(0.0) == [A, B]


def test_a_keeper_may_try_for_what_nobody_waits_for_before_it() -> None:
    mine = slots(3)
    mine.note(A)
    assert mine.free_for(A) == 3
    assert mine.free_for(B) == 2
    mine.take_told(0.0)
    assert mine.free_for(B) == 2


def test_amounts_are_taken_and_given_back() -> None:
    mine = slots(4, gpu=2)
    spec = Spec(task_id="t", argv=("true",), needs=(("gpu", 2),))
    assert mine.can_run_now(spec, A)
    mine.take(spec)
    assert not mine.can_run_now(spec, A)
    assert mine.can_ever_run(spec)
    assert mine.can_run_now(SPEC, A)
    mine.give_back(spec)
    assert mine.can_run_now(spec, A)
    mine.check_invariants()
