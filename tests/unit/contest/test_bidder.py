"""A member that is called: when it speaks, and when it lets another speak."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest.bidder import CALLS_MAX, CALLS_OF_ONE_MAX, HEARD_MAX, HEARD_S, Bidder
from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.wire.contest_messages import SCORE_MAX, Bid, Call, Called, Settled
from mesh.wire.task_messages import AttemptCause, Offer

CALLER, ME, OTHER, THIRD = (NodeId(n) for n in (9, 1, 2, 3))
PATIENCE_S = 0.05
GOOD, FAIR, POOR = 60_000, 40_000, 10_000


def call_of(task_id: str = "t", attempt: int = 1, round_number: int = 0) -> Call:
    offer = Offer(
        task_id=task_id,
        ballot=Ballot(0, 1, 0, CALLER),
        seq=0,
        attempt=attempt,
        cause=AttemptCause.FIRST,
    )
    called = tuple(Called(one, 1, 0, 0) for one in (ME, OTHER, THIRD))
    return Call(offer, round_number, 2_000, round(PATIENCE_S * 1e6), called)


def called(now: float = 0.0, score: int = FAIR, wait_s: float = 0.01) -> Bidder:
    bidder = Bidder()
    bidder.handle_call(now, CALLER, call_of(), score=score, wait_s=wait_s, again_s=0.002)
    return bidder


def bid_of(score: int, attempt: int = 1) -> Bid:
    return Bid("t", attempt, 0, score)


def test_whoever_hears_nobody_bids_when_its_wait_is_over_and_once() -> None:
    bidder = called()
    assert bidder.next_deadline() == pytest.approx(0.01)
    assert bidder.handle_timeout(0.009) == []
    (turn,) = bidder.handle_timeout(0.01)
    assert (turn.caller, turn.call) == (CALLER, call_of())
    assert bidder.next_deadline() is None
    bidder.check_invariants()


def test_a_bid_goes_to_the_others_called_and_to_the_caller() -> None:
    assert called().rivals("t", ME) == (CALLER, OTHER, THIRD)
    assert called().rivals("another", ME) == ()


@pytest.mark.parametrize(("score", "is_better"), [(GOOD, True), (FAIR, True), (POOR, False)])
def test_a_bid_that_is_no_worse_suspends_and_a_worse_one_does_not(
    score: int, *, is_better: bool
) -> None:
    bidder = called()
    bidder.handle_bid(0.005, OTHER, bid_of(score))
    assert (bidder.handle_timeout(0.01) == []) is is_better
    bidder.check_invariants()


def test_whoever_is_suspended_bids_after_all_when_no_grant_is_told_in_time() -> None:
    bidder = called()
    bidder.handle_bid(0.005, OTHER, bid_of(GOOD))
    assert bidder.next_deadline() == pytest.approx(0.005 + PATIENCE_S + 0.002)
    assert len(bidder.handle_timeout(0.1)) == 1


def test_whoever_is_suspended_by_a_member_that_seems_gone_goes_on_at_once() -> None:
    bidder = called()
    bidder.handle_bid(0.005, OTHER, bid_of(GOOD))
    bidder.handle_member_down(0.006, THIRD)
    assert bidder.next_deadline() == pytest.approx(0.005 + PATIENCE_S + 0.002)
    bidder.handle_member_down(0.006, OTHER)
    assert bidder.next_deadline() == pytest.approx(0.008)


def test_a_grant_ends_it_and_an_older_one_does_not() -> None:
    bidder = called()
    bidder.handle_settled(0.005, OTHER, Settled("t", 0))
    assert len(bidder) == 1
    bidder.handle_settled(0.005, OTHER, Settled("t", 1))
    assert (len(bidder), bidder.next_deadline()) == (0, None)


def test_a_bid_or_grant_that_overtakes_the_call_counts() -> None:
    bidder = Bidder()
    bidder.handle_bid(0.0, OTHER, bid_of(GOOD))
    bidder.handle_call(0.001, CALLER, call_of(), score=FAIR, wait_s=0.01, again_s=0.002)
    assert bidder.handle_timeout(0.02) == []
    bidder = Bidder()
    bidder.handle_bid(0.0, OTHER, bid_of(GOOD))
    bidder.handle_settled(0.0005, OTHER, Settled("t", 1))
    bidder.handle_bid(0.0006, THIRD, bid_of(GOOD))
    bidder.handle_call(0.001, CALLER, call_of(), score=FAIR, wait_s=0.01, again_s=0.002)
    assert len(bidder) == 0
    late = 0.001 + HEARD_S
    bidder.handle_call(late, CALLER, call_of(), score=FAIR, wait_s=0.01, again_s=0.002)
    assert len(bidder.handle_timeout(late + 0.02)) == 1, "what was heard long ago counts no more"


def test_the_same_call_again_changes_nothing_and_a_later_one_replaces_it() -> None:
    bidder = called()
    bidder.handle_bid(0.005, OTHER, bid_of(GOOD))
    bidder.handle_call(0.006, CALLER, call_of(), score=FAIR, wait_s=0.01, again_s=0.002)
    assert bidder.next_deadline() == pytest.approx(0.005 + PATIENCE_S + 0.002)
    later = call_of(round_number=1)
    bidder.handle_call(0.007, CALLER, later, score=GOOD + 5_000, wait_s=0.001, again_s=0.002)
    (turn,) = bidder.handle_timeout(0.01)
    assert turn.call == later
    bidder.handle_call(0.02, CALLER, call_of(), score=FAIR, wait_s=0.01, again_s=0.002)
    assert bidder.next_deadline() is None, "an older round is over"


def test_with_too_many_contests_a_further_call_is_dropped_and_counted() -> None:
    bidder = Bidder()
    for number in range(CALLS_MAX + 3):
        caller, call = NodeId(100 + number % 20), call_of(task_id=f"t{number}")
        bidder.handle_call(0.0, caller, call, score=FAIR, wait_s=1, again_s=1)
    assert (len(bidder), bidder.dropped) == (CALLS_MAX, 3)
    for number in range(HEARD_MAX + 3):
        bidder.handle_bid(0.0, OTHER, Bid(f"u{number}", 1, 0, GOOD))
    bidder.check_invariants()


def test_one_caller_takes_no_more_than_its_part_of_the_room() -> None:
    bidder = Bidder()
    for number in range(CALLS_OF_ONE_MAX + 3):
        call = call_of(task_id=f"t{number}")
        bidder.handle_call(0.0, THIRD, call, score=FAIR, wait_s=60, again_s=60)
    assert (len(bidder), bidder.dropped) == (CALLS_OF_ONE_MAX, 3)
    bidder.handle_call(0.0, CALLER, call_of(), score=FAIR, wait_s=0.01, again_s=0.002)
    assert [turn.caller for turn in bidder.handle_timeout(0.01)] == [CALLER]
    bidder.check_invariants()


def test_a_call_of_the_distant_future_bars_no_other_callers() -> None:
    bidder = Bidder()
    bidder.handle_call(0.0, THIRD, call_of("t", 2**32 - 1, 255), score=1, wait_s=190, again_s=190)
    bidder.handle_call(0.1, CALLER, call_of(), score=FAIR, wait_s=0.01, again_s=0.002)
    (turn,) = bidder.handle_timeout(0.11)
    assert (turn.caller, turn.call) == (CALLER, call_of())
    bidder.end("t")
    assert (len(bidder), bidder.next_deadline()) == (0, None)


@pytest.mark.parametrize("is_early", [True, False])
def test_the_word_of_who_was_not_called_counts_for_nothing(*, is_early: bool) -> None:
    stranger, bidder = NodeId(77), Bidder() if is_early else called()
    bidder.handle_bid(0.001, stranger, bid_of(SCORE_MAX))
    bidder.handle_settled(0.001, stranger, Settled("t", 1))
    if is_early:
        bidder.handle_call(0.001, CALLER, call_of(), score=FAIR, wait_s=0.009, again_s=0.002)
    assert len(bidder.handle_timeout(0.01)) == 1


def test_a_bid_that_is_said_again_and_again_holds_nobody_up_for_longer() -> None:
    bidder = called()
    for number in range(100):
        bidder.handle_bid(0.005 + number / 1_000, OTHER, bid_of(SCORE_MAX))
    assert len(bidder.handle_timeout(0.005 + PATIENCE_S + 0.002)) == 1
    bidder = called()
    for number in range(100):
        sender = (OTHER, THIRD)[number % 2]
        bidder.handle_bid(0.005 + number / 1_000, sender, bid_of(SCORE_MAX))
    assert len(bidder.handle_timeout(0.006 + PATIENCE_S + 0.002)) == 1


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["call", "bid", "settled", "down", "time", "end"]),
        st.integers(0, 3),
        st.integers(0, 65_535),
        st.floats(0, 0.1),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(steps=STEPS)
def test_whatever_comes_each_part_is_looked_at_again_and_bids_at_most_once(
    steps: list[tuple[str, int, int, float]],
) -> None:
    bidder, now = Bidder(), 0.0
    turns: list[tuple[int, int]] = []
    for what, number, score, pause_s in steps:
        now += pause_s
        if what == "call":
            call = call_of(attempt=1 + number // 2, round_number=number % 2)
            caller = (CALLER, THIRD)[score % 2]
            bidder.handle_call(now, caller, call, score=score, wait_s=pause_s, again_s=pause_s)
        elif what == "bid":
            bidder.handle_bid(now, OTHER, bid_of(score, attempt=1 + number // 2))
        elif what == "settled":
            bidder.handle_settled(now, OTHER, Settled("t", number // 2))
        elif what == "down":
            bidder.handle_member_down(now, OTHER)
        elif what == "end":
            bidder.end("t")
        else:
            due = bidder.handle_timeout(now)
            turns.extend((turn.call.offer.attempt, turn.call.round) for turn in due)
        bidder.check_invariants()
        deadline = bidder.next_deadline()
        assert deadline is None or deadline <= now + 0.1 + PATIENCE_S + 1e-9
