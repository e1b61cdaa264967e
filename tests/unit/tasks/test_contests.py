"""A voter's steward and its contests: when there is one, who is called, and that each ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mesh.contest.caller import Story
from mesh.core.ids import NodeId
from mesh.queues.settings import Strategy
from mesh.tasks.body import task_key
from mesh.tasks.changes import Release
from mesh.wire.contest_messages import CALLED_MAX, WINDOW_US_MAX, Bid, Call, VitalsTold
from mesh.wire.records import DEDICATED, EMERGENCY
from mesh.wire.register_messages import Owner
from mesh.wire.task_messages import AttemptCause, Decline, OfferAnswer
from tests.unit.tasks.made import ANNA, NOON, TOKEN, claimed, ended, new
from tests.unit.tasks.stewarded import CONFIG, OWN, SECOND, TIMES, Stewarded, member

P, Q, R, S = NodeId(21), NodeId(22), NodeId(23), NodeId(24)
ALL = (P, Q, R, S)


def contested(*nodes: NodeId, free: int = 1) -> Stewarded:
    """Return a world in which task t is called out among these."""
    world = Stewarded(*(member(one, free) for one in nodes))
    world.strategies["default"] = Strategy.CONTEST
    world.hold("t", new(task_id="t"))
    return world


def called(world: Stewarded) -> list[NodeId]:
    """Return who was called since the last look, and forget it."""
    found = [to for to, _ in world.calls]
    world.calls.clear()
    world.offers.clear()
    return found


def asked_alone(world: Stewarded) -> list[NodeId]:
    """Return who was made a plain offer since the last look, and forget it."""
    calls = {(to, call.offer.task_id) for to, call in world.calls}
    found = [to for to, offer in world.offers if (to, offer.task_id) not in calls]
    world.calls.clear()
    world.offers.clear()
    return found


def say(
    world: Stewarded, sender: NodeId, decline: Decline, free: int = 0, attempt: int = 1
) -> None:
    message = OfferAnswer("t", attempt, decline, free)
    world.steward.handle_message(world.now, sender, message)
    world.look()


def bid(world: Stewarded, sender: NodeId, attempt: int = 1) -> None:
    world.steward.handle_message(world.now, sender, Bid("t", attempt, 0, 60_000))
    world.look()


def win(world: Stewarded, node: NodeId) -> None:
    world.hold("t", claimed(new(task_id="t"), Owner(node, 1)), node=node)


def story(world: Stewarded) -> Story:
    found = world.steward._offers.story("t")
    assert found is not None
    return found


def under_way(world: Stewarded) -> int:
    return len(world.steward._offers.calling)


# When there is a contest.


def test_a_queue_that_wants_contests_has_its_tasks_called_out_from_the_start() -> None:
    world = contested(*ALL)
    assert sorted(called(world)) == list(ALL)
    assert under_way(world) == 1


def test_a_home_is_asked_first_and_when_it_declines_the_others_are_called() -> None:
    world = Stewarded(*map(member, ALL))
    world.hold("t", new(task_id="t"))
    (home,) = asked_alone(world)
    say(world, home, Decline.BUSY)
    assert sorted(called(world)) == sorted(set(ALL) - {home})


def test_a_home_that_is_silent_is_followed_by_a_contest_of_the_others() -> None:
    world = Stewarded(*map(member, ALL))
    world.hold("t", new(task_id="t"))
    (home,) = asked_alone(world)
    world.wait(CONFIG.offer_timeout_s - 0.01)
    assert not world.offers
    world.wait(0.02)
    assert sorted(called(world)) == sorted(set(ALL) - {home})


def test_a_home_that_is_gone_is_followed_by_a_contest_of_the_others_at_once() -> None:
    world = Stewarded(*map(member, ALL))
    world.hold("t", new(task_id="t"))
    (home,) = asked_alone(world)
    world.view.drop(home)
    world.steward.handle_member_down(world.now, home)
    world.look()
    assert sorted(called(world)) == sorted(set(ALL) - {home})


def test_a_lease_that_ran_out_is_called_out_with_its_cause() -> None:
    world = Stewarded(*map(member, ALL))
    world.hold("t", claimed(new(task_id="t")))
    world.wait(TIMES.voter_s + TIMES.grace_s + 0.01)
    assert {(call.offer.attempt, call.offer.cause) for _, call in world.calls} == {
        (2, AttemptCause.LAPSE)
    }
    assert sorted(called(world)) == list(ALL)


def test_what_was_let_go_is_called_out_and_a_retry_is_not() -> None:
    world = Stewarded(*map(member, ALL))
    released = Release(NOON + 3, ANNA, 1, TOKEN, "it is leaving")(claimed(new(task_id="t")))
    assert released is not None
    world.hold("t", released)
    assert sorted(called(world)) == list(ALL)
    other = Stewarded(*map(member, ALL))
    other.hold("t", ended(claimed(new(retries=1, task_id="t")), 1))
    other.wait(16)
    assert len(asked_alone(other)) == 1


def test_with_one_that_may_have_a_slot_there_is_a_plain_offer() -> None:
    world = contested(P, Q)
    for one in called(world):
        say(world, one, Decline.BUSY)
    world.hear_free(Q, 1)
    assert asked_alone(world) == [Q]
    single = contested(P)
    assert asked_alone(single) == [P]
    assert under_way(single) == 0


def test_members_that_take_part_are_called_whatever_their_class() -> None:
    ones = [member(one) for one in (P, Q)]
    meta = ones[0].meta
    dedicated = replace(meta, node_class=DEDICATED, queues=("default",))
    kept = (dedicated, replace(meta, node_class=EMERGENCY))
    world = Stewarded(*(replace(one, meta=meta) for one, meta in zip(ones, kept, strict=True)))
    world.strategies["default"] = Strategy.CONTEST
    world.hold("t", new(task_id="t"))
    assert sorted(called(world)) == [P, Q]


# How it goes on.


def test_a_claim_that_is_seen_ends_the_contest_and_its_story_says_who_won() -> None:
    world = contested(*ALL)
    bid(world, R)
    say(world, R, Decline.NONE)
    win(world, R)
    assert under_way(world) == 0
    assert (story(world).winner, story(world).bids) == (R, 1)
    called(world)
    world.wait(TIMES.voter_s - 0.1)
    assert not world.offers


def test_when_all_decline_the_next_ring_is_called_and_then_it_waits_for_news() -> None:
    ids = [NodeId(n) for n in range(21, 31)]
    world = contested(*ids)
    rounds = []
    while ring := called(world):
        rounds.append(ring)
        for one in ring:
            say(world, one, Decline.BUSY)
    assert [len(ring) for ring in rounds] == [4, 4, 2]
    assert sorted(one for ring in rounds for one in ring) == ids
    assert under_way(world) == 0
    assert world.steward.waits_for(task_key("t")).startswith("a free slot")
    world.hear_free(P, 1)
    assert asked_alone(world) == [P]


def test_who_says_nothing_is_followed_by_the_next_ring_and_then_one_is_asked_alone() -> None:
    world = contested(*ALL, NodeId(25), NodeId(26))
    assert len(called(world)) == 4
    world.wait(2 * CONFIG.grant_s)
    assert {call.round for _, call in world.calls} == {1}
    assert len(called(world)) == 2
    world.wait(CONFIG.grant_s + 0.02)
    assert len(asked_alone(world)) == 1, "no word of another's can hold that up"
    assert under_way(world) == 0
    world.wait(CONFIG.offer_timeout_s)
    assert called(world), "and after that there is a contest again"


def test_a_contest_lasts_no_longer_than_its_bound_whatever_bids_are_made() -> None:
    world = contested(*ALL)
    while world.now < CONFIG.contest_s_max - 0.1:
        for one in ALL:
            bid(world, one)
        world.wait(0.04)
    world.wait(0.3)
    assert under_way(world) == 0


def test_who_was_called_and_says_that_it_is_over_ends_the_contest_for_a_while() -> None:
    world = contested(*ALL)
    called(world)
    say(world, P, Decline.OVER)
    assert under_way(world) == 0
    world.wait(CONFIG.taken_pause_s_max - 0.01)
    assert not world.offers
    world.wait(0.02)
    assert len(asked_alone(world)) == 1


@pytest.mark.parametrize("nodes", [(P,), ALL])
def test_a_claim_that_is_said_again_and_again_is_waited_for_once(nodes: tuple[NodeId, ...]) -> None:
    world = contested(*nodes)
    called(world)
    for _ in range(22):
        for one in nodes:
            say(world, one, Decline.NONE)
        world.wait(CONFIG.claim_timeout_s / 10)
    assert world.offers


def test_who_was_called_and_says_that_it_is_taken_leaves_its_owner_a_moment_to_be_seen() -> None:
    world = contested(*ALL)
    called(world)
    bid(world, S)
    say(world, P, Decline.TAKEN)
    assert under_way(world) == 1
    win(world, S)
    found = story(world)
    assert (found.winner, found.bids, found.is_first_window) == (S, 1, True)


def test_a_claim_is_waited_for_however_long_grants_take_and_patience_learns_of_it() -> None:
    world, slow_s = contested(*ALL), 10 * CONFIG.grant_s
    patience_s = world.steward._offers.calling.caller.patience_s
    for _ in range(3):
        called(world)
        bid(world, S)
        say(world, S, Decline.NONE)
        world.wait(slow_s)
        assert (under_way(world), world.offers) == (1, []), "nobody else is asked meanwhile"
        win(world, S)
        assert story(world).winner == S
        assert world.steward._offers.calling.caller.patience_s > max(patience_s, slow_s)
        world.hold("t", new(task_id="t"))


@pytest.mark.parametrize("decline", Decline)
def test_who_was_not_called_has_no_say(decline: Decline) -> None:
    world = contested(*ALL)
    called(world)
    deadline = world.steward.next_timeout()
    say(world, NodeId(99), decline, free=9)
    bid(world, NodeId(99))
    assert under_way(world) == 1
    assert world.steward.next_timeout() == deadline
    assert not story(world).said


def test_an_answer_about_another_attempt_has_no_say() -> None:
    world = contested(*ALL)
    say(world, P, Decline.OVER, attempt=2)
    bid(world, P, attempt=2)
    assert under_way(world) == 1
    assert not story(world).said


def test_a_member_that_is_gone_is_waited_for_no_longer_and_the_others_go_on() -> None:
    world = contested(*ALL)
    called(world)
    for one in ALL[:3]:
        world.view.drop(one)
        world.steward.handle_member_down(world.now, one)
        world.look()
    assert under_way(world) == 1
    assert not world.offers
    win(world, S)
    assert story(world).winner == S


def test_a_voter_that_takes_a_later_roster_leaves_no_contest_behind() -> None:
    world = contested(*ALL)
    world.records.at = None
    world.steward.adopt(world.now)
    world.look()
    assert (under_way(world), len(world.steward)) == (0, 0)
    world.records.at = 0
    world.steward.adopt(world.now)
    called(world)
    world.look()
    assert under_way(world) == 1
    assert sorted(called(world)) == list(ALL)


def test_a_second_voter_calls_as_soon_as_the_first_is_gone() -> None:
    world = Stewarded(*map(member, ALL), member(SECOND, 0), place=1)
    world.strategies["default"] = Strategy.CONTEST
    world.hold("t", new(task_id="t"))
    assert not world.calls
    world.lose(SECOND)
    assert sorted(called(world)) == list(ALL)


def test_no_more_contests_are_held_than_there_are_slots() -> None:
    world = contested(*ALL)
    for number in range(20):
        world.hold(f"t{number}", new(task_id=f"t{number}"))
    tasks = {to: offer.task_id for to, offer in world.offers}
    assert under_way(world) == len(ALL) - 1
    assert len(set(tasks.values())) == len(ALL), "the last slot is offered to the one that has it"


# What is known of slots.


def slot_of(world: Stewarded, node: NodeId) -> int | None:
    return world.steward._queue.slots._free.get(node)


@pytest.mark.parametrize("winner", [P, Q])
def test_whoever_wins_has_a_slot_less_whether_it_was_expected_to_win_or_not(winner: NodeId) -> None:
    world = contested(P, Q, free=3)
    bid(world, winner)
    say(world, winner, Decline.NONE, free=2)
    win(world, winner)
    other = Q if winner == P else P
    assert (slot_of(world, winner), slot_of(world, other)) == (2, None)


def test_what_members_tell_of_themselves_is_known_where_contests_are_held() -> None:
    world = contested(*ALL)
    world.wait(0.01)
    world.steward.handle_message(world.now, P, VitalsTold(0, 90))
    assert slot_of(world, P) == 0
    world.steward.handle_message(world.now, Q, VitalsTold(1, 90))
    win(world, R)
    world.steward.handle_message(world.now, R, VitalsTold(1, 3))
    called(world)
    world.hold("u", new(task_id="u"))
    told = {one.node_id: (one.busy_pct, one.age_ds) for one in world.calls[0][1].called}
    assert (told[R], told[Q]) == ((3, 0), (90, 0))
    world.steward.end(world.now, Q, 1)
    assert world.steward._offers.calling.listener.told(Q) is None


def test_calls_fit_into_what_is_read_however_far_members_are() -> None:
    world = Stewarded(*(member(NodeId(n)) for n in range(21, 80)))
    world.strategies["default"] = Strategy.CONTEST
    world.hold("warm", new(task_id="warm"))
    world.wait(50.0)
    for n in range(21, 80):
        world.steward.handle_message(world.now, NodeId(n), VitalsTold(1, 255))
    world.calls.clear()
    world.hold("t", new(task_id="t"))
    world.wait(CONFIG.contest_s_max)
    rounds: dict[int, Call] = {call.round: call for _, call in world.calls}
    assert len(rounds) > 2
    for call in rounds.values():
        assert len(call.called) <= CALLED_MAX
        assert 1 <= call.window_us <= WINDOW_US_MAX
        assert call.window_us <= CONFIG.contest_s_max / 4 * 1e6
    assert OWN not in {one.node_id for call in rounds.values() for one in call.called}


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("is_told_first", [True, False])
def test_a_claim_takes_one_slot_whichever_word_of_it_comes_first(
    strategy: Strategy, *, is_told_first: bool
) -> None:
    world = contested(P, Q, free=3)
    win(world, P)
    world.wait(0.01)
    for one in (P, Q):
        world.steward.handle_message(world.now, one, VitalsTold(3, 0))
    world.strategies["default"] = strategy
    world.calls.clear()
    world.offers.clear()
    world.hold("u", new(task_id="u"))
    owner = world.offers[-1][0] if world.offers else P
    told, claims = VitalsTold(2, 0), OfferAnswer("u", 1, Decline.NONE, 2)
    for message in (told, claims) if is_told_first else (claims, told):
        world.steward.handle_message(world.now, owner, message)
    world.hold("u", claimed(new(task_id="u"), Owner(owner, 1)), node=owner)
    world.steward.handle_message(world.now, owner, told)
    assert slot_of(world, owner) == 2
