"""Tasks that wait in a queue for each customer: while nothing happens, they cost no more than those of one queue."""

from __future__ import annotations

from dataclasses import replace

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.registers.record import Record
from mesh.tasks.body import Terms, task_key
from mesh.tasks.changes import created
from mesh.tasks.form import to_value
from mesh.wire.task_messages import Decline, Offer, OfferAnswer
from tests.unit.tasks.made import NOON, SPEC
from tests.unit.tasks.stewarded import CONFIG, OWN, Stewarded, member

P = NodeId(21)
LANES = 1_000
SECONDS = 5


def _wait(world: Stewarded, number: int) -> None:
    """Let a task wait in a queue of its own."""
    spec = replace(SPEC, task_id=f"t{number}", queue=f"customer-{number}")
    key, ballot = task_key(spec.task_id), Ballot(1, 1, number + 1, OWN)
    record = Record(ballot, ballot, 0, to_value(created(spec, Terms(), NOON)))
    world.records.voter._records[key] = record
    world.steward.handle_changed(world.now, key, record)


def _decline(world: Stewarded, steps: list[object]) -> int:
    """Have P be too busy for each offer; return how many were made."""
    count = 0
    while steps:
        for step in steps:
            assert isinstance(step, tuple)
            to, offer = step
            assert isinstance(offer, Offer)
            count += 1
            answer = OfferAnswer(offer.task_id, offer.attempt, Decline.BUSY, 0)
            world.steward.handle_message(world.now, to, answer)
        steps = list(world.steward.offer_ready(world.now))
    return count


def test_queues_that_wait_for_a_busy_member_do_not_each_ask_it_every_second() -> None:
    world = Stewarded(member(P, 0))
    for number in range(LANES):
        _wait(world, number)
        _decline(world, list(world.steward.offer_ready(world.now)))
    asked = 0
    while (due := world.steward.next_timeout()) is not None and due < SECONDS:
        world.now = max(world.now, due)
        asked += _decline(world, list(world.steward.handle_timeout(world.now)))
    each_s = asked / SECONDS
    print(
        f"\n{each_s:.0f} offers a second, of {LANES} queues at one voter, to a member that is busy"
    )
    assert each_s <= CONFIG.offers_max
