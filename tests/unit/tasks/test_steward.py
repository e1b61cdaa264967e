"""A voter's steward: who is offered what, when, and what ends an offer."""

from dataclasses import replace
from itertools import pairwise

import pytest

from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveView
from mesh.tasks.body import task_key
from mesh.tasks.changes import Release
from mesh.tasks.form import of_value, to_value
from mesh.wire.register_messages import Owner
from mesh.wire.task_messages import AttemptCause, Decline
from tests.unit.tasks.made import ANNA, NOON, TOKEN, claimed, ended, new
from tests.unit.tasks.stewarded import CONFIG, OWN, SECOND, THIRD, TIMES, Stewarded, member

P, Q, R = NodeId(21), NodeId(22), NodeId(23)


def home_of(view: LiveView, task_id: str) -> list[NodeId]:
    """Return the members in the order in which a task asks them."""
    wants = of_value(new(task_id=task_id)).head.wants
    return [one.node_id for one in view.candidates(wants)]


def test_ready_task_is_offered_to_its_home_at_once() -> None:
    world = Stewarded(member(P), member(Q), member(R))
    ballot = world.hold("t", new(task_id="t"))
    ((to, offer),) = world.offers
    assert to == home_of(world.view, "t")[0]
    assert (offer.task_id, offer.ballot, offer.seq) == ("t", ballot, 0)
    assert (offer.attempt, offer.cause, offer.needs) == (1, AttemptCause.FIRST, (("gpu", 1),))
    assert not offer.has_more


def test_second_voter_offers_after_a_stagger_if_it_sees_no_claim() -> None:
    world = Stewarded(member(P), member(SECOND, 0), place=1)
    world.hold("t", new(task_id="t"))
    world.wait(CONFIG.stagger_s - 0.01)
    assert not world.offers
    world.wait(0.02 + CONFIG.offer_retry_s)
    assert len(world.take()) == 1


def test_second_voter_of_one_that_is_gone_offers_at_once() -> None:
    world = Stewarded(member(P), place=1)
    world.hold("t", new(task_id="t"))
    assert world.take() == [(P, "t")]


def test_second_voter_offers_at_once_what_waits_for_the_first_when_that_seems_gone() -> None:
    world = Stewarded(member(P), member(SECOND, 0), place=1)
    world.hold("t", new(task_id="t"))
    world.wait(CONFIG.stagger_s / 2)
    assert not world.offers
    world.lose(SECOND)
    assert world.take() == [(P, "t")]


def test_second_voter_says_who_sees_to_what_waits_for_somebody_that_may_have_a_slot() -> None:
    world = Stewarded(member(P), member(SECOND, 0), place=1)
    for task_id in ("t", "u"):
        world.hold(task_id, new(task_id=task_id))
    world.wait(CONFIG.stagger_s + 0.01)
    waits = {world.steward.waits_for(task_key(task_id)) for task_id in ("t", "u")} - {"an answer"}
    assert waits == {f"an offer by {member(SECOND).name}, which sees to it first"}


def test_third_voter_waits_a_stagger_less_for_each_before_it_that_seems_gone() -> None:
    world = Stewarded(member(P), member(SECOND, 0), member(THIRD, 0), place=2)
    world.hold("t", new(task_id="t"))
    world.lose(SECOND)
    world.wait(CONFIG.stagger_s - 0.01)
    assert not world.offers
    world.lose(THIRD)
    assert world.take() == [(P, "t")]


def test_what_is_due_later_is_not_offered_sooner_because_the_first_voter_is_gone() -> None:
    world = Stewarded(member(P), member(SECOND, 0), place=1)
    world.hold("t", new(task_id="t", not_before=NOON + 60))
    world.lose(SECOND)
    world.wait(59.9)
    assert not world.offers
    world.wait(0.2)
    assert world.take() == [(P, "t")]


def test_second_voter_offers_nothing_that_was_claimed_meanwhile() -> None:
    world = Stewarded(member(P), member(SECOND, 0), place=1)
    ready = new(task_id="t")
    world.hold("t", ready)
    world.hold("t", claimed(ready))
    world.wait(TIMES.voter_s)
    assert not world.offers


def test_second_voter_of_one_that_seems_alive_offers_one_task_at_a_time() -> None:
    world = Stewarded(member(SECOND, 0), member(P, 4), place=2)
    for number in range(50):
        world.hold(f"t{number}", new(task_id=f"t{number}"))
    world.wait(2 * CONFIG.stagger_s + 2 * CONFIG.offer_retry_s)
    assert 1 <= len(world.take()) <= 4
    world.view.drop(SECOND)
    world.steward.handle_member_down(world.now, SECOND)
    world.hear_free(P, 40)
    assert len(world.offers) > 30


def test_scheduled_task_is_offered_when_it_is_due() -> None:
    world = Stewarded(member(P))
    world.hold("t", new(task_id="t", not_before=NOON + 60))
    world.wait(59.9)
    assert not world.offers
    world.wait(0.2)
    assert world.take() == [(P, "t")]


def test_task_that_was_declined_goes_to_the_next_and_waits_where_none_is_left() -> None:
    world = Stewarded(member(P), member(Q))
    world.hold("t", new(task_id="t"))
    first, second = home_of(world.view, "t")
    world.answer(first, "t", Decline.BUSY)
    world.answer(second, "t", Decline.BUSY)
    assert world.take() == [(first, "t"), (second, "t")]
    world.hear_free(first, 1)
    assert world.take() == [(first, "t")]


def test_member_that_says_nothing_is_passed_over_after_a_while() -> None:
    world = Stewarded(member(P), member(Q))
    world.hold("t", new(task_id="t"))
    first, second = home_of(world.view, "t")
    world.wait(CONFIG.offer_timeout_s + 0.01)
    assert world.take()[:2] == [(first, "t"), (second, "t")]


def test_member_that_is_gone_is_waited_for_no_longer() -> None:
    world = Stewarded(member(P), member(Q))
    world.hold("t", new(task_id="t"))
    first, second = home_of(world.view, "t")
    world.wait(0.01)
    world.view.drop(second)
    world.steward.handle_member_down(world.now, second)
    world.look()
    assert world.take() == [(first, "t")], "who is asked is still there"
    world.view.put(member(second))
    world.view.drop(first)
    world.steward.handle_member_down(world.now, first)
    world.look()
    assert world.take() == [(second, "t")]
    world.steward.handle_member_down(world.now, first)
    world.wait(CONFIG.offer_timeout_s - 0.1)
    assert world.take() == []


def test_member_that_claims_has_longer_to_be_seen_with_it() -> None:
    world = Stewarded(member(P), member(Q))
    world.hold("t", new(task_id="t"))
    first = home_of(world.view, "t")[0]
    world.answer(first, "t", Decline.NONE)
    world.wait(CONFIG.claim_timeout_s - 0.1)
    assert world.take() == [(first, "t")]


def test_nobody_is_offered_more_than_it_has_slots_for() -> None:
    world = Stewarded(member(P, 2))
    for number in range(10):
        world.hold(f"t{number}", new(task_id=f"t{number}"))
    assert world.take() == [(P, "t0"), (P, "t1")]


def test_slot_that_a_claim_took_is_not_offered_for_again_before_news() -> None:
    world = Stewarded(member(P, 1))
    ready = new(task_id="a")
    world.view.drop(P)
    world.hold("a", ready)
    world.hold("b", new(task_id="b"))
    world.view.put(member(P, 1))
    world.steward.handle_member_up(P)
    world.look()
    world.answer(P, "a", Decline.NONE, 0)
    world.hold("a", claimed(ready, Owner(P, 1)))
    assert world.take() == [(P, "a")]
    world.hear_free(P, 1)
    assert world.take() == [(P, "b")]


def test_lease_that_ran_out_is_offered_as_a_lapse() -> None:
    world = Stewarded(member(P))
    world.hold("t", claimed(new(task_id="t")))
    world.wait(TIMES.voter_s + TIMES.grace_s - 0.01)
    assert not world.offers
    world.wait(0.02)
    ((_, offer),) = world.offers
    assert (offer.attempt, offer.cause) == (2, AttemptCause.LAPSE)


def test_voter_ahead_that_is_gone_is_given_no_time_to_offer_a_lapsed_lease() -> None:
    for is_gone in (True, False):
        ahead = [] if is_gone else [member(SECOND, 0)]
        world = Stewarded(member(P), *ahead, place=1)
        world.hold("t", claimed(new(task_id="t")))
        world.wait(TIMES.voter_s + TIMES.grace_s + 0.01)
        assert world.take() == ([(P, "t")] if is_gone else [])
        world.wait(CONFIG.stagger_s + CONFIG.offer_retry_s)
        assert is_gone or {task_id for _, task_id in world.take()} == {"t"}


@pytest.mark.parametrize("place", [0, 1])
def test_what_somebody_had_and_could_not_finish_goes_before_what_nobody_had(place: int) -> None:
    world = Stewarded(place=place)
    world.hold("lost", claimed(new(task_id="lost")))
    for number in range(3):
        world.hold(f"t{number}", new(task_id=f"t{number}"))
    released = Release(NOON + 2, ANNA, 1, TOKEN, "it is leaving")(claimed(new(task_id="back")))
    assert released is not None
    world.hold("back", released)
    world.wait(TIMES.voter_s + TIMES.grace_s + 3 * CONFIG.stagger_s)
    world.view.put(member(P, 4))
    world.steward.handle_member_up(P)
    world.look()
    assert {task for _, task in world.take()[:2]} == {"lost", "back"}


def test_lease_that_is_renewed_is_not_offered() -> None:
    world = Stewarded(member(P))
    ballot = world.hold("t", claimed(new(task_id="t")))
    for _ in range(20):
        world.wait(TIMES.voter_s / 2)
        world.renew("t", ballot)
    assert not world.offers


def test_lease_that_revives_while_it_waits_is_not_offered() -> None:
    world = Stewarded()
    ballot = world.hold("t", claimed(new(task_id="t")))
    world.wait(TIMES.voter_s + TIMES.grace_s + 1)
    world.renew("t", ballot)
    world.view.put(member(P))
    world.steward.handle_member_up(P)
    world.look()
    assert not world.offers
    world.wait(TIMES.voter_s + TIMES.grace_s + 1)
    assert world.take()[0] == (P, "t")


def test_proof_of_its_owners_end_offers_a_lease_at_once_as_a_crash() -> None:
    world = Stewarded(member(P))
    world.hold("t", claimed(new(task_id="t")))
    for boot in (ANNA.boot - 1, ANNA.boot):
        assert not world.offers
        world.records.voter.end(ANNA.node_id, boot)
        world.steward.end(world.now, ANNA.node_id, boot)
        world.look()
    ((_, offer),) = world.offers
    assert offer.cause is AttemptCause.CRASH


def test_task_that_is_over_is_offered_no_more() -> None:
    world = Stewarded()
    leased = claimed(new(task_id="t"))
    ballot = world.hold("t", leased)
    world.write("t", ballot, 1, ended(leased))
    assert len(world.steward) == 0
    assert world.steward.next_timeout() is None


def test_retry_is_offered_when_its_pause_is_over() -> None:
    world = Stewarded(member(P))
    leased = claimed(new(1, task_id="t"))
    ballot = world.hold("t", leased)
    world.write("t", ballot, 1, ended(leased, 1))
    world.wait(14.9)
    assert not world.offers
    world.wait(0.2)
    ((_, offer),) = world.offers
    assert (offer.attempt, offer.cause) == (2, AttemptCause.RETRY)


def test_task_that_is_taken_elsewhere_is_offered_again_after_longer_and_longer_pauses() -> None:
    world = Stewarded(member(P))
    world.hold("t", new(task_id="t"))
    asked_at = []
    for _ in range(6):
        while not world.offers:
            world.wait(0.1)
        asked_at.append(world.now)
        world.answer(P, "t", Decline.TAKEN, 1)
        world.take()
    pauses = [after - before for before, after in pairwise(asked_at)]
    assert pauses == sorted(pauses)
    assert pauses[0] < 2 * CONFIG.taken_pause_s
    assert pauses[-1] <= CONFIG.taken_pause_s_max + 0.2


def test_word_that_a_task_is_over_ends_nothing_by_itself_but_there_is_no_hurry() -> None:
    world = Stewarded(member(P))
    world.hold("t", new(task_id="t"))
    world.answer(P, "t", Decline.OVER, 1)
    world.take()
    world.wait(CONFIG.taken_pause_s_max - 0.1)
    assert not world.offers
    world.wait(0.2)
    assert world.take() == [(P, "t")]


def test_promise_alone_changes_nothing() -> None:
    world = Stewarded(member(P))
    world.hold("t", new(task_id="t"))
    record = replace(world.record("t"), promised=world.record("t").ballot._replace(n=99))
    world.steward.handle_changed(world.now, b"task/t", record)
    world.look()
    assert world.take() == [(P, "t")]


def test_member_that_does_not_fit_is_not_asked_again_before_it_declares_more() -> None:
    world = Stewarded(member(P))
    world.hold("t", new(task_id="t"))
    world.answer(P, "t", Decline.UNSUITED)
    world.take()
    world.wait(20)
    assert not world.offers
    world.view.put(replace(member(P), meta=replace(member(P).meta, slots=9)))
    world.steward.handle_member_up(P)
    world.look()
    assert world.take() == [(P, "t")]


def test_voter_that_starts_again_offers_what_it_holds_oldest_first() -> None:
    world = Stewarded()
    for number in (3, 1, 2):
        body = replace(of_value(new(task_id=f"t{number}")), created=NOON + number)
        world.hold(f"t{number}", to_value(body))
    world.steward.adopt(world.now)
    world.view.put(member(P, 4))
    world.steward.handle_member_up(P)
    world.look()
    assert world.take() == [(P, "t1"), (P, "t2"), (P, "t3")]


def test_node_that_votes_on_a_task_no_more_forgets_it() -> None:
    world = Stewarded(member(P))
    world.hold("t", new(task_id="t"))
    world.records.at = None
    world.steward.adopt(world.now)
    assert len(world.steward) == 0


def test_record_that_cannot_be_read_is_left_alone() -> None:
    world = Stewarded(member(P))
    world.hold("t", replace(new(task_id="t"), body=b"\xc1"))
    assert len(world.steward) == 0


def test_what_a_task_waits_for_is_said_in_words() -> None:
    world = Stewarded()
    world.hold("t", new(task_id="t"))
    assert world.steward.waits_for(b"task/t") == ("a member that can run it: no member takes tasks")
    world.view.put(member(OWN, 0))
    world.steward.handle_member_up(OWN)
    world.look()
    assert world.steward.waits_for(b"task/t") == "an answer"
    world.answer(OWN, "t", Decline.BUSY)
    assert world.steward.waits_for(b"task/t") == "a free slot: n1 is busy"
    assert world.steward.waits_for(b"task/other") == ""


def test_task_that_all_who_fit_called_unfit_is_not_said_to_wait_for_a_slot_of_theirs() -> None:
    world = Stewarded(member(OWN))
    world.hold("t", new(task_id="t"))
    world.answer(OWN, "t", Decline.UNSUITED)
    assert world.steward.waits_for(b"task/t") == (
        "a member that can run it: n1 declined it, though it seemed to fit"
    )


@pytest.mark.parametrize("decline", [Decline.UNSUITED, Decline.UNSURE])
def test_nobody_is_named_for_a_task_whose_like_it_declined(decline: Decline) -> None:
    world = Stewarded(member(P, 4), member(Q, 1))
    world.hold("runs", claimed(new(task_id="runs"), Owner(Q, 1)), node=Q)
    task_id = next(one for one in map(str, range(99)) if home_of(world.view, one)[0] == P)
    world.hold(task_id, new(task_id=task_id))
    world.answer(P, task_id, decline, free=4)
    world.answer(Q, task_id, Decline.NONE)
    world.hold(task_id, claimed(new(task_id=task_id), Owner(Q, 1)), node=Q)
    like = of_value(new(task_id="like")).head
    assert world.steward.name_home(like) is None
    world.steward.handle_member_up(P)
    home = world.steward.name_home(like)
    assert (home is not None) == (decline is Decline.UNSURE)
