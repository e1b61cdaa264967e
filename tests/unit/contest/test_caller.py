"""A voter that calls: whom, when the next, and what it remembers."""

from __future__ import annotations

import pytest

from mesh.contest.caller import PATIENCE_S_MIN, STORIES_MAX, Caller, Candidate, Step
from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.wire.contest_messages import Bid, Called
from mesh.wire.task_messages import AttemptCause, Decline, Offer

KEY = b"task/t"
WINDOW_S, PATIENCE_S, CLAIM_S = 0.002, 0.05, 5.0


def offer_of(task_id: str = "t", attempt: int = 1) -> Offer:
    return Offer(
        task_id=task_id,
        ballot=Ballot(0, 1, 0, NodeId(9)),
        seq=0,
        attempt=attempt,
        cause=AttemptCause.FIRST,
    )


def candidates(count: int) -> list[Candidate]:
    return [
        Candidate(Called(NodeId(n), 1, 10, 0), 1 - n / (2 * count)) for n in range(1, count + 1)
    ]


def opened(count: int = 10) -> tuple[Caller, Step]:
    caller = Caller(PATIENCE_S)
    return caller, caller.open(0.0, KEY, offer_of(), candidates(count), window_s=WINDOW_S)


def ids(step: Step | None) -> list[int]:
    assert step is not None
    assert step.call is not None
    return [one.node_id for one in step.call.called]


def test_the_first_four_are_called_then_four_then_many_then_it_is_given_up() -> None:
    caller, first = opened(count=50)
    assert ids(first) == [1, 2, 3, 4]
    rings = []
    for _ in range(4):
        deadline = caller.next_deadline()
        assert deadline is not None
        (step,) = caller.handle_timeout(deadline)
        rings.append(step)
        caller.check_invariants()
    assert ids(rings[0]) == [5, 6, 7, 8]
    assert ids(rings[1]) == list(range(9, 41))
    assert ids(rings[2]) == list(range(41, 51))
    assert rings[3] == Step(KEY, None)
    assert (len(caller), caller.next_deadline()) == (0, None)
    assert [one.call.round for one in rings[:3] if one.call is not None] == [1, 2, 3]


def test_a_round_lasts_until_the_last_rank_has_spoken_and_had_its_grant() -> None:
    caller, _ = opened()
    deadline = caller.next_deadline()
    assert deadline is not None
    assert deadline == pytest.approx(WINDOW_S * (1.16 + 0.1) + PATIENCE_S, rel=0.01)


def test_a_bid_gives_the_round_as_long_as_a_grant_takes() -> None:
    caller, _ = opened()
    caller.handle_bid(0.05, KEY, NodeId(2), Bid("t", 1, 0, 40_000))
    assert caller.next_deadline() == pytest.approx(0.05 + PATIENCE_S)
    caller.handle_bid(0.06, KEY, NodeId(2), Bid("t", 1, 0, 40_000))
    caller.handle_bid(0.06, KEY, NodeId(3), Bid("t", 2, 0, 40_000))
    assert caller.next_deadline() == pytest.approx(0.05 + PATIENCE_S), "one word counts once"


def test_the_bid_of_who_was_not_called_gives_no_time_and_counts_for_nothing() -> None:
    caller, _ = opened()
    before = caller.next_deadline()
    for number in range(5, 105):
        caller.handle_bid(0.05, KEY, NodeId(number), Bid("t", 1, 0, 65_535))
    story = caller.story("t")
    assert story is not None
    assert (caller.next_deadline(), story.bids) == (before, 0)
    assert not caller.was_called(KEY, NodeId(5))
    caller.handle_timeout(before or 0.0)
    assert caller.was_called(KEY, NodeId(5))
    assert caller.was_called(KEY, NodeId(1)), "its bid may come late"
    caller.close(0.2, KEY, None)
    assert not caller.was_called(KEY, NodeId(5))


def test_who_says_again_and_again_that_it_claims_is_waited_for_once() -> None:
    caller, _ = opened()
    for now in (0.01, 1.0, 4.0):
        assert caller.handle_answer(now, KEY, NodeId(1), Decline.NONE, CLAIM_S) is None
        assert caller.next_deadline() == pytest.approx(0.01 + CLAIM_S)
    caller.handle_answer(4.5, KEY, NodeId(2), Decline.NONE, CLAIM_S)
    assert caller.next_deadline() == pytest.approx(4.5 + CLAIM_S), "another's word is its own"
    caller.open(5.0, KEY, offer_of(attempt=2), candidates(4), window_s=WINDOW_S)
    caller.handle_answer(5.01, KEY, NodeId(1), Decline.NONE, CLAIM_S)
    assert caller.next_deadline() == pytest.approx(5.01 + CLAIM_S), "and so is the next contest"


def test_when_all_of_a_round_decline_the_next_is_called_at_once() -> None:
    caller, _ = opened(count=6)
    for number in (1, 2, 3):
        assert caller.handle_answer(0.001, KEY, NodeId(number), Decline.BUSY, CLAIM_S) is None
    assert caller.handle_answer(0.001, KEY, NodeId(3), Decline.BUSY, CLAIM_S) is None
    assert caller.handle_answer(0.001, KEY, NodeId(6), Decline.BUSY, CLAIM_S) is None, (
        "it was not called"
    )
    step = caller.handle_answer(0.001, KEY, NodeId(4), Decline.BUSY, CLAIM_S)
    assert ids(step) == [5, 6]
    assert caller.handle_member_down(0.002, NodeId(5)) == []
    assert caller.handle_member_down(0.002, NodeId(6)) == [Step(KEY, None)]


def test_a_story_says_who_was_called_who_bid_and_what_came_of_it() -> None:
    caller, _ = opened()
    caller.handle_bid(0.003, KEY, NodeId(1), Bid("t", 1, 0, 65_535, (("cpu", 255),)))
    caller.handle_answer(0.004, KEY, NodeId(2), Decline.BUSY, CLAIM_S)
    story = caller.story("t")
    assert story is not None
    assert (story.bids, story.winner) == (1, None)
    over = caller.close(0.011, KEY, NodeId(1))
    assert over is story is caller.story("t")
    assert (story.winner, story.after_s, story.is_first_window) == (1, 0.011, True)
    assert story.said[0] == (0.003, 1, 1.0, (("cpu", 1.0),), Decline.NONE)
    assert story.said[1].decline is Decline.BUSY
    assert caller.close(0.012, KEY, NodeId(1)) is None


def test_patience_follows_the_grants_that_were_seen() -> None:
    caller, now = Caller(PATIENCE_S), 0.0
    for _ in range(100):
        caller.open(now, KEY, offer_of(), candidates(4), window_s=WINDOW_S)
        caller.handle_bid(now + 0.001, KEY, NodeId(1), Bid("t", 1, 0, 1))
        caller.close(now + 0.011, KEY, NodeId(1))
        now += 1
    assert caller.patience_s == pytest.approx(0.015, rel=0.05)
    for _ in range(200):
        caller.open(now, KEY, offer_of(), candidates(4), window_s=WINDOW_S)
        caller.handle_bid(now, KEY, NodeId(1), Bid("t", 1, 0, 1))
        caller.close(now, KEY, NodeId(1))
        now += 1
    assert caller.patience_s == PATIENCE_S_MIN


def test_a_grant_after_the_first_window_is_no_success_of_it() -> None:
    caller, _ = opened()
    caller.handle_timeout(1.0)
    story = caller.close(1.001, KEY, NodeId(5))
    assert story is not None
    assert (story.rounds, story.is_first_window) == (2, False)


def test_stories_are_bounded_and_a_new_contest_ends_the_one_before() -> None:
    caller = Caller(PATIENCE_S)
    for number in range(STORIES_MAX + 10):
        caller.open(0.0, KEY, offer_of(f"t{number}"), candidates(1), window_s=WINDOW_S)
    assert (len(caller), len(caller.stories)) == (1, STORIES_MAX)
    assert caller.stories[-1].task_id == f"t{STORIES_MAX + 8}"
    assert caller.story("t0") is None
