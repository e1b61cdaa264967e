"""What a node takes on, and when it takes nothing."""

from dataclasses import replace

from mesh.core.address import Address
from mesh.core.ballot import Ballot
from mesh.core.effects import Emit
from mesh.core.ids import NodeId
from mesh.registers.record import NOTHING, Record
from mesh.tasks.config import TasksConfig
from mesh.tasks.intake import Intake
from mesh.wire.records import Availability, Card, Metadata
from mesh.wire.task_messages import AttemptCause, Decline, Offer
from mesh.wire.work_messages import SlotsFree
from tests.unit.tasks.made import claimed, ended, new
from tests.unit.tasks.stewarded import OWN, Stewarded, member

A, B, C, D = NodeId(31), NodeId(32), NodeId(33), NodeId(34)
META = Metadata(pool="image", labels=(("disk", "ssd"),), slots=1, offers=(("gpu", 1),))
CARD = Card(node_id=B, boot=1, incarnation=0, name="n2", address=Address("127.0.0.1", 1), meta=META)
LOW, HIGH = Ballot(1, 1, 3, A), Ballot(1, 1, 4, A)
OFFER = Offer(task_id="t", ballot=LOW, seq=0, attempt=1, cause=AttemptCause.FIRST)


def intake() -> Intake:
    return Intake(lambda: CARD, TasksConfig())


def test_offer_that_suits_is_taken_while_a_slot_is_free() -> None:
    mine = intake()
    assert mine.judge(A, OFFER, NOTHING) is Decline.NONE
    mine.take(A, OFFER)
    assert (mine.free, mine.used) == (0, 1)
    assert mine.judge(A, OFFER, NOTHING) is Decline.BUSY
    mine.note(A)
    assert mine.give_back(0.0, OFFER.needs) == [(A, SlotsFree(1))]
    mine.check_invariants()


def test_who_has_more_waits_in_line_from_the_start() -> None:
    mine = intake()
    mine.take(A, replace(OFFER, has_more=True))
    assert mine.give_back(0.0, OFFER.needs) == [(A, SlotsFree(1))]


def test_each_that_waits_is_told_of_a_slot_in_its_turn_though_others_wait_behind_it() -> None:
    mine = intake()
    mine.take(A, OFFER)
    for voter in (A, B, C):
        mine.note(voter)
    told = mine.give_back(0.0, OFFER.needs)
    while (due := mine.next_timeout()) is not None and len(told) < 3:
        told += mine.handle_timeout(due)
        mine.check_invariants()
    assert told == [(A, SlotsFree(1)), (B, SlotsFree(1)), (C, SlotsFree(1))]


def test_first_voter_in_line_offers_its_task_again_once_it_is_told_and_has_the_slot() -> None:
    mine, world = intake(), Stewarded(member(B, 1))
    mine.take(A, OFFER)
    world.hold("t", new(task_id="t"))
    ((_, declined),) = world.offers
    assert mine.judge(OWN, declined, NOTHING) is Decline.BUSY
    for voter in (OWN, C, D):
        mine.note(voter)
    world.answer(B, "t", Decline.BUSY, mine.free_for(OWN))
    assert world.take() == [(B, "t")]
    (step,) = mine.give_back(0.0, OFFER.needs)
    assert isinstance(step, tuple)
    told, word = step
    assert told == OWN
    assert isinstance(word, SlotsFree)
    world.hear_free(B, word.free_slots)
    ((to, again),) = world.offers
    assert (to, again.task_id) == (B, "t")
    assert mine.judge(OWN, again, NOTHING) is Decline.NONE
    assert mine.judge(C, again, NOTHING) is Decline.BUSY


def test_offer_of_another_pool_label_or_amount_does_not_fit() -> None:
    for unfit in (
        replace(OFFER, pool="sound"),
        replace(OFFER, node_class="dedicated"),
        replace(OFFER, labels=(("disk", "tape"),)),
        replace(OFFER, needs=(("gpu", 2),)),
    ):
        assert intake().judge(A, unfit, NOTHING) is Decline.UNSUITED
    fitting = replace(OFFER, pool="image", labels=(("disk", "ssd"),), needs=(("gpu", 1),))
    assert intake().judge(A, fitting, NOTHING) is Decline.NONE


def test_offer_that_is_older_than_a_lease_known_here_is_declined() -> None:
    leased = claimed(new())
    later, older = Record(HIGH, HIGH, 0, leased), Record(LOW, LOW, 0, leased)
    assert intake().judge(A, OFFER, later) is Decline.TAKEN
    assert intake().judge(A, OFFER, older) is Decline.NONE  # the lease that the voter found lapsed


def test_end_that_is_known_here_is_claimed_all_the_same_so_that_a_majority_comes_to_hold_it() -> (
    None
):
    known = Record(HIGH, HIGH, 1, ended(claimed(new())))
    assert intake().judge(A, OFFER, known) is Decline.NONE


def test_host_that_ran_short_rests_and_then_tells_who_waits() -> None:
    mine = intake()
    mine.take(A, OFFER)
    (warning,) = mine.judge_start(0.0, 1, 1, "no process could be had")
    assert isinstance(warning, Emit)
    assert mine.judge_start(0.1, 1, 1, "no process could be had") == []  # one rest covers both
    assert mine.give_back(0.1, OFFER.needs) == []
    assert mine.judge(A, OFFER, NOTHING) is Decline.BUSY
    mine.note(A)
    due = mine.next_timeout()
    assert due is not None
    assert mine.handle_timeout(due) == [(A, SlotsFree(1))]
    mine.check_invariants()


def test_draining_node_takes_nothing_and_tells_nobody() -> None:
    mine = intake()
    mine.take(A, OFFER)
    mine.note(B)
    mine.is_draining = True
    assert mine.free == 0
    assert mine.judge(A, OFFER, NOTHING) is Decline.DRAINING
    assert mine.give_back(0.0, OFFER.needs) == []


def test_who_waits_for_a_slot_of_a_node_that_begins_to_drain_is_told_of_none() -> None:
    mine = intake()
    mine.take(A, OFFER)
    mine.note(A)
    mine.note(B)
    assert mine.give_back(0.0, OFFER.needs) == [(A, SlotsFree(1))]  # the one is held for it
    assert mine.next_timeout() is not None
    mine.is_draining = True
    assert mine.next_timeout() is None


def test_who_became_unfit_a_moment_ago_is_offered_the_task_again_once_it_is_fit() -> None:
    """Who asks knows its card of before then, which is that of after, too."""
    world = Stewarded(member(B, 1))
    world.hold("t", new(task_id="t"))
    ((_, offer),) = world.offers
    fit = member(B, 1)
    unfit = replace(fit.meta, availability=Availability.UNFIT)
    mine = Intake(lambda: replace(CARD, meta=unfit), TasksConfig())
    decline = mine.judge(OWN, offer, NOTHING)
    world.answer(B, "t", decline, 1)
    world.take()
    for meta in (unfit, fit.meta):
        world.view.put(replace(fit, meta=meta))
        world.steward.handle_member_up(B)
        world.look()
    assert world.take() == [(B, "t")]
