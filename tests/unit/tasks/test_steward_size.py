"""A steward of 100,000 ready tasks: what each costs in memory, and that no event costs more for them."""

import gc
import time
import tracemalloc

import pytest

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.registers.record import Record
from mesh.tasks.body import task_key
from mesh.wire.register_messages import Owner, Value
from mesh.wire.task_messages import Offer
from mesh.wire.work_messages import SlotsFree
from tests.unit.tasks.made import NOON, claimed, new
from tests.unit.tasks.stewarded import OWN, Stewarded, member

P = NodeId(21)
READY, SCHEDULED = new(), new(not_before=NOON + 1e6)
MANY = 100_000
FEW = 1_000
SAMPLE = 5_000
"""Of which the memory is measured: it is the same for each."""


def _fill(world: Stewarded, count: int, value: Value = READY) -> None:
    """Let a voter hold so many ready tasks, which differ in their keys alone."""
    for number in range(count):
        key = task_key(f"task-{number:06}")
        record = Record(Ballot(1, 1, number + 1, OWN), Ballot(1, 1, number + 1, OWN), 0, value)
        world.records.voter._records[key] = record
        world.steward.handle_changed(0.0, key, record)


def _turn_s(world: Stewarded, count: int) -> float:
    """Return the time that a task takes from being offered until its claim is seen, over so many of them."""
    world.view.put(member(P, 1))
    world.steward.handle_member_up(P)
    gc.collect()
    gc.disable()  # a collection looks at all that this process ever made, which is no matter of an event's cost
    try:
        return _time_turns(world, count)
    finally:
        gc.enable()


def _time_turns(world: Stewarded, count: int) -> float:
    began = time.process_time()
    for number in range(count):
        (step,) = world.steward.offer_ready(world.now)
        assert isinstance(step, tuple)
        _, offer = step
        assert isinstance(offer, Offer)
        key = task_key(f"task-{number:06}")
        ballot = Ballot(1, 1, offer.ballot.n + 10**6, P)
        leased = Record(ballot, ballot, 0, claimed(new(), Owner(P, 1)))
        world.steward.handle_changed(world.now, key, leased)
        world.steward.handle_timeout(world.now)
        world.steward.next_timeout()
        world.steward.handle_message(world.now, P, SlotsFree(1))
    return (time.process_time() - began) / count


@pytest.mark.parametrize("value", [READY, SCHEDULED], ids=["ready", "scheduled"])
def test_a_task_takes_less_than_a_kibibyte_at_its_voter(value: Value) -> None:
    world = Stewarded()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        _fill(world, SAMPLE, value)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    each = (after - before) / SAMPLE
    print(f"\n{each:.0f} bytes a task, with its record but for the value's body")
    assert each < 1024


def test_no_event_costs_more_with_a_hundred_thousand_ready_tasks() -> None:
    few, many = Stewarded(), Stewarded()
    _fill(few, FEW)
    _fill(many, MANY)
    few_s, many_s = _turn_s(few, 300), _turn_s(many, 300)
    print(
        f"\n{1e6 * few_s:.0f} us a turn with {FEW} ready tasks, {1e6 * many_s:.0f} us with {MANY}"
    )
    assert many_s < 5 * few_s
    many.steward.check_invariants()
