"""Calls, bids and words of members that do not mean well: they cost a task a moment, and its runs nothing."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest.bidder import CALLS_OF_ONE_MAX
from mesh.contest.caller import RINGS
from mesh.contest.vitals import LISTENERS_MAX
from mesh.core.effects import StartProcess
from mesh.core.ids import NodeId
from mesh.queues.commands import SetQueue
from mesh.queues.settings import Strategy
from mesh.tasks.body import task_key
from mesh.wire.contest_messages import (
    SCORE_MAX,
    WINDOW_US_MAX,
    AskVitals,
    Bid,
    Call,
    Called,
    Settled,
    VitalsTold,
)
from mesh.wire.task_messages import Decline, Offer, OfferAnswer, TaskState
from tests.unit.tasks.called import (
    GHOST,
    WINDOW_S,
    P,
    Q,
    bids,
    call_of,
    crew_of,
    hear,
    is_called,
    said,
)
from tests.unit.tasks.crew import CONFIG, TIMES, A, B, C, Crew


@pytest.mark.parametrize("window_us", [1, WINDOW_US_MAX])
@pytest.mark.parametrize("attempt", [0, 1, 2**32 - 1])
def test_a_strange_call_bars_nobody_from_the_right_one(window_us: int, attempt: int) -> None:
    crew = crew_of(1)
    named = [NodeId(1_000 + n) for n in range(31)]
    strange = call_of(crew, P, *named, window_us=window_us, attempt=attempt, round_number=255)
    hear(crew, P, strange, sender=C)
    hear(crew, P, call_of(crew, P))
    crew.wait(WINDOW_S)
    assert len(crew.nodes[P].starts()) == 1
    assert len(crew.body("t").attempts) == 1
    assert crew.body("t").attempt == 1
    assert not is_called(crew, P)


def test_a_call_that_names_nobody_one_knows_is_one_for_oneself() -> None:
    crew = crew_of(1)
    hear(crew, P, call_of(crew, *(NodeId(1_000 + n) for n in range(32))))
    crew.wait(WINDOW_S / 10 + 0.001)
    assert len(crew.nodes[P].starts()) == 1


def test_a_call_for_a_task_that_does_not_exist_comes_to_nothing() -> None:
    crew = crew_of(1)
    record = crew.nodes[A].desk.voter.record(task_key("t"))
    hear(crew, P, call_of(crew, P, task_id="ghost", ballot=record.ballot, window_us=1))
    crew.wait(0.01)
    assert bids(crew)
    crew.wait(TIMES.doubt_s + CONFIG.claim_timeout_s)
    assert [one.env["MESH_TASK_ID"] for one in crew.nodes[P].starts()] == ["t"]
    assert (crew.nodes[P].tasks.used, is_called(crew, P)) == (1, False)


def test_what_a_liar_settles_delays_the_task_by_a_contest_and_no_longer() -> None:
    crew = Crew({P: 1, Q: 1})
    crew.give(A, lambda number: SetQueue(number, "default", Strategy.CONTEST))
    crew.wait(1)

    def lies(to: NodeId, message: object) -> bool:
        """Let each call be followed at once by a word that all is settled, from Q, which was called too."""
        if isinstance(message, Call) and to == P:
            told = Settled(message.offer.task_id, message.offer.attempt)
            node = crew.nodes[P]
            crew.do(node, lambda tasks, now: tasks.handle_message(now, Q, told))
        return isinstance(message, Call) or (to == Q and isinstance(message, Offer))

    crew.loses = lies
    crew.submit("t", own=B)
    # Then one is asked alone: Q, which says nothing to that, or P; and who says nothing is passed over.
    crew.wait(2 * CONFIG.grant_s + 2 * (CONFIG.offer_timeout_s + 1.5 * CONFIG.offer_retry_s))
    assert len(crew.nodes[P].starts()) == 1


def test_who_goes_on_saying_that_it_claims_holds_a_task_up_for_one_claim() -> None:
    liars = [NodeId(100 + n) for n in range(RINGS[0])]
    crew = Crew(dict.fromkeys(liars, 8) | {P: 8})
    crew.give(A, lambda number: SetQueue(number, "default", Strategy.CONTEST))
    crew.wait(1)
    crew.loses = lambda to, _: to in liars
    crew.nodes[P].busy_pct = 100  # so the least fit, and called last
    for own, one in product((A, B, C), (*liars, P)):
        hear(crew, own, VitalsTold(8, 100 if one == P else 0, 0, 120), sender=one)
    crew.submit("t")
    begun_at = crew.now
    while not crew.nodes[P].starts():
        assert crew.now < begun_at + CONFIG.claim_timeout_s + 1.0
        for own, liar in product((A, B, C), liars):
            hear(crew, own, OfferAnswer("t", 1, Decline.NONE, 0), sender=liar)
        crew.wait(0.25)
    assert crew.now > begun_at + CONFIG.claim_timeout_s, "it was waited for that once"


def test_a_hundred_thousand_calls_of_one_member_are_bounded_and_counted() -> None:
    crew = crew_of(1, 1)
    tasks = crew.nodes[P].tasks
    flood = [
        call_of(crew, P, task_id=f"ghost{n}", window_us=WINDOW_US_MAX, attempt=n)
        for n in range(1_000)
    ]
    for _ in range(100):
        assert not said(tasks.handle_message(crew.now, C, *flood))
    dropped = tasks.view()["counters"]["dropped_calls"]
    assert dropped == 100 * (len(flood) - CALLS_OF_ONE_MAX)
    tasks.check_invariants(crew.now)
    hear(crew, P, call_of(crew, P))
    crew.wait(WINDOW_S)
    assert len(crew.nodes[P].starts()) == 1, "the others' are heard"


def test_voters_without_end_that_want_to_be_told_are_bounded_and_counted() -> None:
    """None of those that were promised to be told is dropped for one more: its silence would mean that nothing changes."""
    crew = crew_of(1)
    for n in range(LISTENERS_MAX + 9):
        hear(crew, P, AskVitals(120), sender=NodeId(1_000 + n))
    counters = crew.nodes[P].tasks.view()["counters"]
    assert counters["dropped_listeners"] == 9


_task_ids = st.sampled_from(["t", "u", "x" * 128])
_senders = st.sampled_from([A, B, C, P, Q, GHOST])
_called = st.builds(
    Called, _senders, st.integers(0, 65_535), st.integers(0, 255), st.integers(0, 65_535)
)
_attempts = st.integers(0, 3) | st.just(2**32 - 1)
_rounds = st.integers(0, 255)
_words = st.one_of(
    st.tuples(
        st.just("call"),
        _task_ids,
        st.lists(_called, min_size=1, max_size=6, unique_by=lambda one: one.node_id),
        _attempts,
        _rounds,
        st.sampled_from([1, 1_000, 1_000_000]),
    ),
    st.builds(Bid, _task_ids, _attempts, _rounds, st.integers(0, SCORE_MAX)),
    st.builds(Settled, _task_ids, _attempts),
    st.builds(AskVitals, st.integers(0, 600)),
    st.builds(VitalsTold, st.integers(0, 65_535), st.integers(0, 255)),
    st.builds(
        OfferAnswer, _task_ids, _attempts, st.sampled_from([Decline.NONE, Decline.BUSY]), _rounds
    ),
)


@given(said_of=st.lists(st.tuples(_senders, _words, st.sampled_from([0.0, 0.01])), max_size=12))
@settings(max_examples=25, deadline=None)
def test_whatever_is_said_in_a_contest_its_task_runs_once_and_nothing_is_left(
    said_of: list[tuple[NodeId, object, float]],
) -> None:
    crew = Crew({P: 1, Q: 1})
    crew.give(A, lambda number: SetQueue(number, "default", Strategy.CONTEST))
    crew.wait(1)
    crew.submit("t")
    for sender, word, pause_s in said_of:
        message = word
        if isinstance(word, tuple):
            _, task_id, called, attempt, number, window_us = word
            message = call_of(
                crew,
                *called,
                task_id=task_id,
                attempt=attempt,
                round_number=number,
                window_us=window_us,
            )
        for own in (A, P, Q):
            if own != sender:
                hear(crew, own, message, sender)
        crew.wait(pause_s)
    starts: list[tuple[NodeId, StartProcess]] = []
    for _ in range(round(2 * CONFIG.contest_s_max)):
        starts += [(own, start) for own in (P, Q) for start in crew.nodes[own].starts()]
        if any(start.env["MESH_TASK_ID"] == "t" for _, start in starts):
            break
        crew.wait(1)
    (of_t,) = [(own, one) for own, one in starts if one.env["MESH_TASK_ID"] == "t"]
    crew.exit(of_t[0], of_t[1].run_id)
    crew.wait(4)
    assert crew.body("t").state is TaskState.DONE
    assert not is_called(crew, P)
    assert not is_called(crew, Q)
    assert not crew.nodes[P].starts() + crew.nodes[Q].starts()
