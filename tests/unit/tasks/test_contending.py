"""A member that is called: what it declines, when it bids, and that nothing is left of a contest at its end."""

from __future__ import annotations

import pytest

from mesh.contest.fitness import DEFAULT_WEIGHTS, STEP
from mesh.contest.rank import MARGIN
from mesh.wire.contest_messages import SCORE_MAX, WEIGHED, Bid, Settled, VitalsTold, Weighing
from mesh.wire.register_messages import Accept, Prepare, Renew
from mesh.wire.task_messages import Decline, OfferAnswer
from mesh.wire.work_messages import SlotsFree
from tests.unit.tasks.called import (
    GHOST,
    PATIENCE_S,
    WINDOW_S,
    P,
    Q,
    R,
    answers,
    bids,
    call_of,
    crew_of,
    hear,
    is_called,
    told,
)
from tests.unit.tasks.crew import CONFIG, A, B, C, Crew

CPU = DEFAULT_WEIGHTS.cpu / DEFAULT_WEIGHTS.total
"""The share of idle processors in a fitness."""

# What it declines.


def test_a_call_to_which_it_will_bid_is_not_answered() -> None:
    crew = crew_of(1)
    assert answers(crew, P, call_of(crew, P, Q)) == []
    assert is_called(crew, P)


@pytest.mark.parametrize("has_more", [True, False])
def test_a_call_for_what_it_cannot_take_now_is_declined_at_once_and_who_has_more_is_told_later(
    *, has_more: bool
) -> None:
    crew = crew_of(1, 0)
    hear(crew, P, call_of(crew, P, window_us=1))
    crew.wait(0.1)
    (start,) = crew.nodes[P].starts()
    other = call_of(crew, P, task_id="u", wants={"has_more": has_more})
    assert answers(crew, P, other) == [OfferAnswer("u", 1, Decline.BUSY, 0)]
    assert not is_called(crew, P)
    crew.heard.clear()
    crew.exit(P, start.run_id)
    assert ((A, SlotsFree(1)) in crew.heard) is has_more


@pytest.mark.parametrize(
    ("wants", "decline"),
    [
        ({"pool": "image"}, Decline.UNSUITED),
        ({"needs": (("gpu", 1),)}, Decline.UNSUITED),
        ({"node_class": "dedicated"}, Decline.UNSUITED),
    ],
)
def test_a_call_for_what_it_never_can_take_is_declined_at_once(
    wants: dict[str, object], decline: Decline
) -> None:
    crew = crew_of(1)
    (answer,) = answers(crew, P, call_of(crew, P, Q, wants=wants))
    assert answer == OfferAnswer("t", 1, decline, 1)
    assert not is_called(crew, P)


def test_who_drains_or_has_it_declines_a_call() -> None:
    crew = crew_of(2)
    hear(crew, P, call_of(crew, P, window_us=1))
    crew.wait(0.1)
    assert crew.nodes[P].starts()
    (answer,) = answers(crew, P, call_of(crew, P, Q))
    assert isinstance(answer, OfferAnswer)
    assert answer.decline is Decline.TAKEN
    crew.do(crew.nodes[P], lambda tasks, now: tasks.drain(now, now + 9))
    (answer,) = answers(crew, P, call_of(crew, P, Q, task_id="u"))
    assert isinstance(answer, OfferAnswer)
    assert answer.decline is Decline.DRAINING


# Its turn.


def test_who_takes_itself_for_the_first_speaks_within_a_tenth_of_the_window() -> None:
    crew = crew_of(1)
    hear(crew, P, call_of(crew, P, told(Q, 0), told(R, 1, 200), GHOST))
    crew.wait(WINDOW_S / 10 + 0.001)
    assert {to for to, _ in bids(crew)} == {A}
    assert len(crew.nodes[P].starts()) == 1


def test_who_is_behind_waits_for_the_others() -> None:
    crew = crew_of(1, 1, 1)
    crew.nodes[P].busy_pct = 100
    hear(crew, P, call_of(crew, told(P, 1, 100), Q, R, window_us=10**6))
    crew.wait(0.89)
    assert not bids(crew), "two are fitter"
    crew.wait(0.15)
    assert {one.score for _, one in bids(crew)} == {round(SCORE_MAX * (1 - STEP) * (1 - CPU))}


def test_a_bid_goes_out_in_one_breath_with_the_claim_and_says_how_it_came_about() -> None:
    crew = crew_of(1, 1, 1)
    node = crew.nodes[P]
    hear(crew, P, call_of(crew, P, Q, R))
    crew.heard.clear()
    crew.now += WINDOW_S * 2
    crew.do(node, lambda tasks, now: tasks.handle_timeout(now))
    assert {to for to, one in crew.heard if isinstance(one, Bid)} == {A, Q, R}
    assert {to for to, one in crew.heard if isinstance(one, Prepare)} == {A, B, C}
    assert (A, OfferAnswer("t", 1, Decline.NONE, 0)) in crew.heard
    (found,) = {one for _, one in bids(crew)}
    assert (found.task_id, found.attempt, found.round) == ("t", 1, 0)
    assert {name for name, _ in found.parts} == set(WEIGHED)


def test_of_those_called_the_fittest_alone_speaks_and_the_others_forget_it() -> None:
    crew = crew_of(1, 1, 1)
    loads = {P: 80, Q: 0, R: 50}
    for own, load in loads.items():
        crew.nodes[own].busy_pct = load
    call = call_of(crew, *(told(own, 1, load) for own, load in loads.items()))
    for own in loads:
        hear(crew, own, call)
    crew.wait(1)
    assert {one.score for _, one in bids(crew)} == {round((1 - STEP) * SCORE_MAX)}
    assert len(crew.nodes[Q].starts()) == 1
    assert {(to, one) for to, one in crew.heard if isinstance(one, Settled)} == {
        (to, Settled("t", 1)) for to in (A, P, R)
    }
    assert not any(is_called(crew, own) for own in loads)
    assert len(crew.body("t").attempts) == 1


def test_who_is_told_of_a_better_bid_speaks_when_no_grant_follows() -> None:
    crew = crew_of(1, 1)
    hear(crew, P, call_of(crew, P, Q))
    hear(crew, P, Bid("t", 1, 0, SCORE_MAX), Q)
    crew.wait(PATIENCE_S - 0.001)
    assert not bids(crew)
    crew.wait(WINDOW_S)
    assert len(crew.nodes[P].starts()) == 1


def test_who_waits_for_one_that_is_gone_speaks_at_once() -> None:
    crew = crew_of(1, 1)
    hear(crew, P, call_of(crew, P, Q))
    hear(crew, P, Bid("t", 1, 0, SCORE_MAX), Q)
    crew.nodes[P].view.drop(Q)
    crew.meet(crew.nodes[P], Q)
    crew.wait(WINDOW_S / 10)
    assert len(crew.nodes[P].starts()) == 1


def test_who_has_no_slot_any_more_when_its_time_comes_declines_then() -> None:
    crew = crew_of(1)
    hear(crew, P, call_of(crew, P, Q))
    crew.submit("u")
    (start,) = crew.nodes[P].starts()
    assert start.env["MESH_TASK_ID"] == "u"
    crew.heard.clear()
    crew.wait(WINDOW_S * 1.5)
    assert not bids(crew)
    assert (A, OfferAnswer("t", 1, Decline.BUSY, 0)) in crew.heard
    assert not is_called(crew, P)


# By what it ranks itself.


def speaks_first(crew: Crew, *called: object, weights: Weighing = ()) -> bool:
    """Say whether P takes itself for the first of those called, and is told so."""
    hear(crew, P, call_of(crew, *called, window_us=10**6, weights=weights))  # type: ignore[arg-type]  # the test's own
    crew.wait(0.11)
    return bool(bids(crew))


def test_the_callers_word_of_how_tasks_fared_counts_for_oneself_too() -> None:
    failing, others = told(P, history=8), [told(Q, load=50), told(R, load=50)]
    assert not speaks_first(crew_of(1, 1, 1), failing, *others)
    assert speaks_first(crew_of(1, 1, 1), told(P), *others)


def test_the_weights_of_the_call_are_those_that_count() -> None:
    called = [told(P), told(Q, lag_ms=255)]
    idle = [told(P, lag_ms=255), told(Q, load=100)]
    assert speaks_first(crew_of(1, 1), *called, weights=(("lag", 1.0),))
    assert not speaks_first(crew_of(1, 1), *idle, weights=(("lag", 1.0),))
    assert speaks_first(crew_of(1, 1), *idle, weights=(("cpu", 1.0),))


@pytest.mark.parametrize(("more", "is_first"), [(MARGIN * 0.9, True), (MARGIN * 1.1, False)])
def test_who_was_placed_first_is_it_unless_it_is_clearly_less_fit_by_now(
    *, more: float, is_first: bool
) -> None:
    """It is placed just above an edge by idle processors alone, and `more` below that by now."""
    crew = crew_of(1, 1)
    now = round(100 * (1 - (3 / 8 - more) / (1 - STEP)))
    crew.nodes[P].busy_pct = now
    called = [told(P, load=56), told(Q, load=56)]  # the lot is with P
    assert speaks_first(crew, *called, weights=(("cpu", 1.0),)) is is_first
    if is_first:
        assert {one.score for _, one in bids(crew)} == {
            round((1 - STEP) * (1 - now / 100) * SCORE_MAX)
        }


def test_a_bid_counts_as_that_of_the_bucket_in_which_its_bidder_was_placed() -> None:
    """The bidder is a little less fit by now than was told of it: without that, both would speak."""
    crew = crew_of(1, 1)
    crew.nodes[P].busy_pct = 5
    hear(crew, P, call_of(crew, told(P, load=5), told(Q), weights=(("cpu", 1.0),)))
    hear(crew, P, Bid("t", 1, 0, round((6 / 8 - MARGIN / 2) * SCORE_MAX)), Q)
    crew.wait(PATIENCE_S - 0.001)
    assert not bids(crew)


# Its vitals.


def test_vitals_go_along_with_renewals_once_a_second_to_each_voter() -> None:
    crew = crew_of(2)
    node = crew.nodes[P]
    node.lag_ms = 12
    hear(crew, P, call_of(crew, P, window_us=1))
    crew.wait(0.1)
    assert node.starts()
    crew.heard.clear()
    crew.wait(5)
    renewals = [to for to, one in crew.heard if isinstance(one, Renew)]
    told_to = [to for to, one in crew.heard if isinstance(one, VitalsTold)]
    assert set(told_to) == {A, B, C} == set(renewals)
    assert 3 * 3 <= len(told_to) <= min(5 * 3, len(renewals))
    assert {one for _, one in crew.heard if isinstance(one, VitalsTold)} == {VitalsTold(1, 0, 12)}


# Its end.


def test_settled_is_said_once_a_majority_has_granted_it_and_not_before() -> None:
    crew = crew_of(1, 1)
    crew.loses = lambda _to, message: isinstance(message, Accept)
    hear(crew, P, call_of(crew, P, Q))
    hear(crew, Q, call_of(crew, P, Q))
    crew.wait(WINDOW_S * 2)
    assert bids(crew)
    assert not [one for _, one in crew.heard if isinstance(one, Settled)]
    assert not crew.nodes[P].starts() + crew.nodes[Q].starts()
    crew.loses = lambda _to, _message: False
    crew.wait(CONFIG.claim_timeout_s)
    assert Settled("t", 1) in [one for _, one in crew.heard]
    assert len(crew.nodes[P].starts() + crew.nodes[Q].starts()) == 1


def test_two_that_bid_at_one_moment_are_told_apart_by_the_quorum_and_nothing_is_left() -> None:
    crew = crew_of(1, 1)
    crew.loses = lambda _to, message: isinstance(message, Bid | Settled)
    for own in (P, Q):
        hear(crew, own, call_of(crew, P, Q))
    crew.wait(2)
    assert len(crew.nodes[P].starts() + crew.nodes[Q].starts()) == 1
    assert len(crew.body("t").attempts) == 1
    assert not is_called(crew, P)
    assert not is_called(crew, Q)
    assert crew.nodes[P].tasks.used + crew.nodes[Q].tasks.used == 1


def test_a_contest_that_somebody_else_won_is_forgotten_when_it_is_told_or_tried() -> None:
    crew = crew_of(1, 1)
    hear(crew, P, call_of(crew, P, Q))
    hear(crew, P, Settled("t", 1), Q)
    assert not is_called(crew, P)
    crew.wait(WINDOW_S * 2)
    assert not bids(crew)


def test_what_runs_here_by_a_plain_offer_meanwhile_is_bid_for_no_more() -> None:
    crew = crew_of(1)
    hear(crew, P, call_of(crew, P, Q))
    hear(crew, P, call_of(crew, P, Q).offer)
    assert len(crew.nodes[P].starts()) == 1
    assert not is_called(crew, P)
    crew.wait(WINDOW_S * 2)
    assert not bids(crew)
