"""Who is told of a member's vitals, when, and for how long that is believed."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest import vitals as v
from mesh.contest.vitals import Listener, Teller
from mesh.core.ids import NodeId
from mesh.wire.contest_messages import AskVitals, VitalsTold

ANNA, BERT = NodeId(1), NodeId(2)
ASK, NO_MORE = AskVitals(v.ASKED_S), AskVitals(0)


def asked(*listeners: NodeId, free: int = 2, load: int = 10) -> Teller:
    """Return a teller that has told these, at 0.0, and has said it again."""
    teller = Teller()
    for one in listeners:
        teller.handle(0.0, one, ASK)
    teller.step(0.0, free, load)
    teller.step(v.REPEAT_S, free, load)
    assert teller.next_deadline() is None
    return teller


def test_nobody_is_told_where_nobody_asks() -> None:
    teller = Teller()
    assert teller.step(0.0, 2, 10) == teller.step(9.0, 0, 99) == []
    assert teller.next_deadline() is None


def test_who_asks_is_told_at_once_and_once_more() -> None:
    teller = Teller()
    teller.handle(5.0, ANNA, ASK)
    assert teller.next_deadline() == 5.0
    assert teller.step(5.0, 2, 10) == [(ANNA, VitalsTold(2, 10))]
    assert teller.step(5.1, 2, 10) == []
    assert teller.next_deadline() == 5.0 + v.REPEAT_S
    assert teller.step(5.0 + v.REPEAT_S, 2, 12) == [(ANNA, VitalsTold(2, 10))]
    assert teller.next_deadline() is None


def test_a_change_is_told_at_once_and_the_next_a_moment_later_with_all_since() -> None:
    teller = asked(ANNA)
    assert teller.step(10.0, 1, 10) == [(ANNA, VitalsTold(1, 10))]
    assert teller.step(10.01, 1, 20) == []
    assert teller.next_deadline() == 10.0 + v.TELL_PAUSE_S
    assert teller.step(10.0 + v.TELL_PAUSE_S, 1, 30) == [(ANNA, VitalsTold(1, 30))]


def test_a_change_of_slots_waits_less_than_one_of_the_load_and_takes_that_along() -> None:
    teller = asked(ANNA)
    assert teller.step(10.0, 1, 10) == [(ANNA, VitalsTold(1, 10))]
    assert teller.step(10.01, 1, 20) == []
    assert teller.step(10.015, 0, 20) == []
    assert teller.next_deadline() == 10.0 + v.TELL_SLOTS_PAUSE_S
    assert teller.step(10.0 + v.TELL_SLOTS_PAUSE_S, 0, 20) == [(ANNA, VitalsTold(0, 20))]


def test_a_load_that_moves_a_little_is_no_change_but_little_by_little_it_is() -> None:
    teller = asked(ANNA, load=10)
    assert teller.step(10.0, 2, 10 + v.TOLD_STEP_PCT - 1) == []
    assert teller.next_deadline() is None
    assert teller.step(11.0, 2, 10 + v.TOLD_STEP_PCT) == [(ANNA, VitalsTold(2, 14))]


def test_what_is_not_so_any_more_is_not_said_again() -> None:
    teller = asked(ANNA)
    assert teller.step(10.0, 1, 10)
    assert teller.step(10.5, 0, 10) == [(ANNA, VitalsTold(0, 10))]
    assert teller.step(10.5 + v.REPEAT_S, 0, 10) == [(ANNA, VitalsTold(0, 10))]
    assert teller.next_deadline() is None


def test_who_asked_long_ago_or_wants_no_more_is_told_no_more() -> None:
    teller = asked(ANNA, BERT)
    teller.handle(10.0, BERT, NO_MORE)
    assert teller.step(10.0, 1, 10) == [(ANNA, VitalsTold(1, 10))]
    assert teller.step(float(v.ASKED_S), 2, 10) == []
    assert teller.next_deadline() is None


@pytest.mark.parametrize("pause_s", [0.0, v.REPEAT_S / 2])
def test_with_the_last_listener_gone_nothing_is_waited_for(pause_s: float) -> None:
    teller = Teller()
    teller.handle(0.0, ANNA, AskVitals(1))
    if pause_s:
        teller.step(0.0, 2, 10)
    teller.handle(pause_s, ANNA, NO_MORE)
    assert teller.step(pause_s, 2, 10) == []
    assert teller.next_deadline() is None


def test_a_repeat_that_outlasts_its_listener_is_not_waited_for() -> None:
    teller = Teller()
    teller.handle(0.0, ANNA, AskVitals(1))
    teller.step(0.0, 2, 10)
    teller.step(0.9, 1, 10)
    teller.step(1.2, 2, 10)  # the time is over: nobody is told
    assert teller.step(5.0, 2, 10) == []
    assert teller.next_deadline() is None


def test_listeners_are_bounded_and_those_whose_time_is_over_make_room() -> None:
    teller = Teller()
    for number in range(v.LISTENERS_MAX + 1):
        teller.handle(0.0, NodeId(10 + number), AskVitals(5))
    told = teller.step(0.0, 2, 10)
    assert len(told) == v.LISTENERS_MAX
    assert NodeId(10 + v.LISTENERS_MAX) not in dict(told)
    teller.handle(1.0, NodeId(10), AskVitals(5))
    assert teller.step(1.0, 2, 10)[0] == (NodeId(10), VitalsTold(2, 10)), "it is one of them"
    teller.handle(6.5, ANNA, ASK)
    assert teller.step(6.5, 2, 10) == [(ANNA, VitalsTold(2, 10))]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "no more", "change", "wait"]),
        st.integers(0, 4),
        st.sampled_from([0.0, 0.1, 0.3, 1.0, 2.0]),
    ),
    max_size=30,
)


@settings(max_examples=80, deadline=None)
@given(steps=STEPS)
def test_whatever_is_asked_each_deadline_is_done_with_and_whoever_listens_knows_the_latest(
    steps: list[tuple[str, int, float]],
) -> None:
    teller, now, free = Teller(), 0.0, 1
    until: dict[NodeId, float] = {}
    knows: dict[NodeId, int] = {}
    for what, number, pause_s in [*steps, ("wait", 0, 2.0)]:
        if what == "ask":
            until[NodeId(1 + number)] = now + 2
            teller.handle(now, NodeId(1 + number), AskVitals(2))
        elif what == "no more":
            until.pop(NodeId(1 + number), None)
            teller.handle(now, NodeId(1 + number), NO_MORE)
        elif what == "change":
            free = number
        end = now + pause_s
        for _ in range(20):
            told = teller.step(now, free, 10)
            assert {to for to, _ in told} <= {to for to, at in until.items() if now < at}
            knows |= {to: message.free_slots for to, message in told}  # type: ignore[attr-defined]  # all are VitalsTold
            due = teller.next_deadline()
            if due is None or due > end:
                break
            assert due > now, "it is asked for the same moment again"
            now = due
        else:
            raise AssertionError("it wants to be asked all the time")
        now = end
        if pause_s >= v.TELL_PAUSE_S:
            teller.step(now, free, 10)
            assert all(knows[to] == free for to, at in until.items() if now < at)


# A voter's side.


def test_a_voter_asks_from_its_first_contest_on_all_at_once_if_they_are_few() -> None:
    listener = Listener()
    assert listener.next_deadline() is None
    assert listener.ask(0.0, [ANNA]) == []
    listener.use(1.0)
    assert listener.next_deadline() == 1.0
    assert listener.ask(1.0, [ANNA, BERT]) == [(ANNA, ASK), (BERT, ASK)]


def test_a_large_mesh_is_asked_in_parts() -> None:
    listener, members = Listener(), [NodeId(n) for n in range(1, 121)]
    listener.use(0.0)
    sizes: list[int] = []
    now = 0.0
    while len(sizes) < 3:
        sizes.append(len(listener.ask(now, members)))
        due = listener.next_deadline()
        assert due is not None
        assert due > now
        now = due
    assert sizes == [50, 50, 20]
    assert now == pytest.approx(2 * v.ASK_PAUSE_S + v.USED_S / 10)


def test_a_voter_that_goes_on_holding_contests_asks_again_and_one_that_does_not_asks_no_more() -> (
    None
):
    listener = Listener()
    times: list[float] = []
    listener.use(0.0)
    while (due := listener.next_deadline()) is not None:
        if due < 100:
            listener.use(due)
        times += [due for _ in listener.ask(due, [ANNA])]
        assert due < 300
    assert times[0] == 0.0
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert all(v.ASK_AGAIN_S <= pause < v.ASK_AGAIN_S + v.USED_S / 10 + 0.1 for pause in pauses)
    assert 100 < times[-1] < 100 + v.USED_S
    listener.use(400.0)
    assert listener.ask(400.0, [ANNA]) == [(ANNA, ASK)]


def told_listener() -> Listener:
    """Return a voter that asked at 0.0, and was answered 10 ms later."""
    listener = Listener()
    listener.use(0.0)
    listener.ask(0.0, [ANNA])
    listener.handle(0.01, ANNA, VitalsTold(2, 10))
    return listener


def test_what_was_told_is_believed_until_the_question_has_aged() -> None:
    listener = told_listener()
    assert listener.told(0.02, BERT) is None
    assert listener.told(0.02, ANNA) == (2, 10, 0.01, v.ASKED_S)
    assert listener.told(v.ASKED_S - 0.01, ANNA) is not None
    assert listener.told(v.ASKED_S, ANNA) is None


def test_a_question_that_is_not_answered_makes_nothing_believed_for_longer() -> None:
    listener = told_listener()
    listener.use(v.ASK_AGAIN_S)
    assert listener.ask(v.ASK_AGAIN_S, [ANNA])
    assert listener.told(v.ASKED_S + 1, ANNA) is None
    listener.handle(v.ASKED_S + 2, ANNA, VitalsTold(1, 10))
    told = listener.told(v.ASKED_S + 2, ANNA)
    assert told == (1, 10, 0.01, v.ASK_AGAIN_S + v.ASKED_S)


def test_an_answer_that_came_with_its_repeat_alone_is_no_round_trip() -> None:
    listener = Listener()
    listener.use(0.0)
    listener.ask(0.0, [ANNA])
    listener.handle(0.01 + v.REPEAT_S, ANNA, VitalsTold(2, 10))
    told = listener.told(2.0, ANNA)
    assert told is not None
    assert told.rtt_s is None


def test_who_was_not_asked_is_not_heard_and_who_is_gone_is_asked_anew() -> None:
    listener = told_listener()
    listener.handle(0.02, BERT, VitalsTold(9, 0))
    assert listener.told(0.02, BERT) is None
    listener.forget(ANNA)
    assert listener.told(0.02, ANNA) is None
    due = listener.next_deadline()
    assert due is not None
    assert listener.ask(due, [ANNA]) == [(ANNA, ASK)]
