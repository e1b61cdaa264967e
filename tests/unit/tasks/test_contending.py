"""A member that is called: what it declines, when it bids, and that nothing is left of a contest at its end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest.bidder import CALLS_OF_ONE_MAX
from mesh.core.ballot import Ballot
from mesh.core.effects import StartProcess
from mesh.core.ids import NodeId
from mesh.queues.commands import SetQueue
from mesh.queues.settings import Strategy
from mesh.tasks.body import task_key
from mesh.tasks.effects import Outgoing, Send
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
from mesh.wire.register_messages import Accept, Prepare
from mesh.wire.task_messages import AttemptCause, Decline, Offer, OfferAnswer, TaskState
from mesh.wire.work_messages import SlotsFree
from tests.unit.tasks.crew import CONFIG, TIMES, A, B, C, Crew

P, Q, R = NodeId(8), NodeId(9), NodeId(10)
WINDOW_S, PATIENCE_S = 0.1, 0.05
GHOST = NodeId(77)


def crew_of(*slots: int, task_id: str = "t") -> Crew:
    """Return P, Q, R with so many slots, and a task that nobody was told of."""
    crew = Crew(dict(zip((P, Q, R), slots, strict=False)))
    crew.loses = lambda _to, message: isinstance(message, Offer | Call)
    crew.submit(task_id)
    crew.loses = lambda _to, _message: False
    crew.heard.clear()
    return crew


def call_of(
    crew: Crew,
    *called: NodeId | Called,
    task_id: str = "t",
    attempt: int = 1,
    round_number: int = 0,
    window_us: int = round(WINDOW_S * 1e6),
    ballot: Ballot | None = None,
    wants: dict[str, object] | None = None,
) -> Call:
    record = crew.nodes[A].desk.voter.record(task_key(task_id))
    offer = Offer(
        task_id=task_id,
        ballot=ballot or record.ballot,
        seq=record.seq,
        attempt=attempt,
        cause=AttemptCause.FIRST,
        **(wants or {}),  # type: ignore[arg-type]  # the test's own parts
    )
    named = tuple(one if isinstance(one, Called) else Called(one, 1, 0, 0) for one in called)
    return Call(offer, round_number, window_us, round(PATIENCE_S * 1e6), named)


def hear(crew: Crew, own: NodeId, message: object, sender: NodeId = A) -> None:
    """Let a node hear something, and all that follows happen."""
    crew.do(crew.nodes[own], lambda tasks, now: tasks.handle_message(now, sender, message))


def said(outputs: list[Outgoing]) -> list[tuple[NodeId, object]]:
    return [(one.to, each) for one in outputs if isinstance(one, Send) for each in one.messages]


def answers(crew: Crew, own: NodeId, call: Call) -> list[object]:
    """Return what a node says at once to a call."""
    return [one for _, one in said(crew.nodes[own].tasks.handle_message(crew.now, A, call))]


def bids(crew: Crew) -> list[tuple[NodeId, Bid]]:
    return [(to, one) for to, one in crew.heard if isinstance(one, Bid)]


def is_called(crew: Crew, own: NodeId) -> bool:
    """Say whether a node that votes on nothing takes part in a contest."""
    return crew.nodes[own].tasks.heeds_members


# What it declines.


def test_a_call_to_which_it_will_bid_is_not_answered() -> None:
    crew = crew_of(1)
    assert answers(crew, P, call_of(crew, P, Q)) == []
    assert is_called(crew, P)


def test_a_call_for_what_it_cannot_take_now_is_declined_at_once_and_its_caller_is_told_later() -> (
    None
):
    crew = crew_of(1, 0)
    hear(crew, P, call_of(crew, P, window_us=1))
    crew.wait(0.1)
    (start,) = crew.nodes[P].starts()
    other = call_of(crew, P, task_id="u")
    assert answers(crew, P, other) == [OfferAnswer("u", 1, Decline.BUSY, 0)]
    assert not is_called(crew, P)
    crew.heard.clear()
    crew.exit(P, start.run_id)
    assert (A, SlotsFree(1)) in crew.heard


@pytest.mark.parametrize(
    ("wants", "decline"),
    [
        ({"pool": "image"}, Decline.UNFIT),
        ({"needs": (("gpu", 1),)}, Decline.UNFIT),
        ({"node_class": "dedicated"}, Decline.UNFIT),
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
    hear(crew, P, call_of(crew, P, Called(Q, 0, 0, 0), Called(R, 1, 200, 0), GHOST))
    crew.wait(WINDOW_S / 10 + 0.001)
    assert {to for to, _ in bids(crew)} == {A}
    assert len(crew.nodes[P].starts()) == 1


def test_who_is_behind_waits_for_the_others() -> None:
    crew = crew_of(1, 1, 1)
    hear(crew, P, call_of(crew, P, Called(Q, 1, 0, 0), Called(R, 1, 0, 0), window_us=10**6))
    crew.nodes[P].tasks.load_pct = lambda: 100
    crew.heard.clear()
    late = call_of(crew, P, Q, R, round_number=1, window_us=10**6)
    hear(crew, P, late)
    crew.wait(0.89)
    assert not bids(crew), "two are fitter"
    crew.wait(0.15)
    assert {one.score for _, one in bids(crew)} == {round(0.6 * SCORE_MAX)}


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
    assert {name for name, _ in found.parts} == {"free_slots", "cpu", "match"}


def test_of_those_called_the_fittest_alone_speaks_and_the_others_forget_it() -> None:
    crew = crew_of(1, 1, 1)
    loads = {P: 80, Q: 0, R: 50}
    for own, load in loads.items():
        crew.nodes[own].tasks.load_pct = lambda load=load: load  # type: ignore[misc]  # a default binds it
    call = call_of(crew, *(Called(own, 1, load, 0) for own, load in loads.items()))
    for own in loads:
        hear(crew, own, call)
    crew.wait(1)
    assert {one.score for _, one in bids(crew)} == {SCORE_MAX}
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


# Who does not mean well.


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
    crew.wait(2 * CONFIG.grant_s + CONFIG.offer_timeout_s + 0.1)
    assert len(crew.nodes[P].starts()) == 1


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
