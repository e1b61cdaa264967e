"""Who is told of a member's vitals, when, and for how long that is believed."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest import vitals as v
from mesh.contest.vitals import Listener, Rides, Teller
from mesh.core.ids import NodeId
from mesh.wire.contest_messages import AskVitals, VitalsTold

ANNA, BERT = NodeId(1), NodeId(2)
ASK, NO_MORE = AskVitals(v.ASKED_S), AskVitals(0)


def said(
    teller: Teller, now: float, free: int = 2, load: int = 10, lag: int = 0
) -> list[tuple[NodeId, tuple[int, int]]]:
    """Let a teller look; return who is told of which slots and load. Each is promised the rest of its time."""
    told = [(to, one) for to, one in teller.step(now, (free, load, lag))]
    assert all(isinstance(one, VitalsTold) and one.seconds <= v.ASKED_S for _, one in told)
    return [(to, (one.free_slots, one.busy_pct)) for to, one in told]  # type: ignore[attr-defined]  # it is one


def asked(*listeners: NodeId, free: int = 2, load: int = 10) -> Teller:
    """Return a teller that has told these, at 0.0, and has said it again."""
    teller = Teller()
    for one in listeners:
        teller.handle(0.0, one, ASK)
    said(teller, 0.0, free, load)
    said(teller, v.REPEAT_S, free, load)
    assert teller.next_deadline() is None
    return teller


def test_nobody_is_told_where_nobody_asks() -> None:
    teller = Teller()
    assert said(teller, 0.0, 2, 10) == said(teller, 9.0, 0, 99) == []
    assert teller.next_deadline() is None


def test_who_asks_is_told_at_once_and_once_more() -> None:
    teller = Teller()
    teller.handle(5.0, ANNA, ASK)
    assert teller.next_deadline() == 5.0
    assert said(teller, 5.0, 2, 10) == [(ANNA, (2, 10))]
    assert said(teller, 5.1, 2, 10) == []
    assert teller.next_deadline() == 5.0 + v.REPEAT_S
    assert said(teller, 5.0 + v.REPEAT_S, 2, 12) == [(ANNA, (2, 10))]
    assert teller.next_deadline() is None


def test_a_change_is_told_at_once_and_the_next_a_moment_later_with_all_since() -> None:
    teller = asked(ANNA)
    assert said(teller, 10.0, 1, 10) == [(ANNA, (1, 10))]
    assert said(teller, 10.01, 1, 20) == []
    assert teller.next_deadline() == 10.0 + v.TELL_PAUSE_S
    assert said(teller, 10.0 + v.TELL_PAUSE_S, 1, 30) == [(ANNA, (1, 30))]


def test_a_change_of_slots_waits_less_than_one_of_the_load_and_takes_that_along() -> None:
    teller = asked(ANNA)
    assert said(teller, 10.0, 1, 10) == [(ANNA, (1, 10))]
    assert said(teller, 10.01, 1, 20) == []
    assert said(teller, 10.015, 0, 20) == []
    assert teller.next_deadline() == 10.0 + v.TELL_SLOTS_PAUSE_S
    assert said(teller, 10.0 + v.TELL_SLOTS_PAUSE_S, 0, 20) == [(ANNA, (0, 20))]


def test_a_load_that_moves_a_little_is_no_change_but_little_by_little_it_is() -> None:
    teller = asked(ANNA, load=10)
    assert said(teller, 10.0, 2, 10 + v.TOLD_STEP_PCT - 1) == []
    assert teller.next_deadline() is None
    assert said(teller, 11.0, 2, 10 + v.TOLD_STEP_PCT) == [(ANNA, (2, 14))]


def test_a_lag_that_moves_a_little_is_no_change_and_one_that_doubles_is() -> None:
    teller = asked(ANNA)
    assert said(teller, 10.0, lag=v.TOLD_STEP_MS - 1) == []
    assert teller.next_deadline() is None
    assert said(teller, 11.0, lag=v.TOLD_STEP_MS) == [(ANNA, (2, 10))]
    teller.step(12.1, (2, 10, 10))
    for lag in (1, 11, 19):
        assert said(teller, 13.0, lag=lag) == [], lag
    assert said(teller, 14.0, lag=100) == [(ANNA, (2, 10))]
    teller.step(15.1, (2, 10, 100))
    assert said(teller, 16.0, lag=51) == []
    assert said(teller, 17.0, lag=50) == [(ANNA, (2, 10))]


def test_what_is_told_says_for_how_long_changes_are() -> None:
    teller = asked(ANNA)
    ((_, first),) = teller.step(10.5, (1, 10, 3))
    assert first == VitalsTold(1, 10, 3, v.ASKED_S - 11)
    ((_, again),) = teller.step(11.5, (1, 10, 3))
    assert again == VitalsTold(1, 10, 3, v.ASKED_S - 12)


def test_what_is_not_so_any_more_is_not_said_again() -> None:
    teller = asked(ANNA)
    assert said(teller, 10.0, 1, 10)
    assert said(teller, 10.5, 0, 10) == [(ANNA, (0, 10))]
    assert said(teller, 10.5 + v.REPEAT_S, 0, 10) == [(ANNA, (0, 10))]
    assert teller.next_deadline() is None


def test_who_asked_long_ago_or_wants_no_more_is_told_no_more() -> None:
    teller = asked(ANNA, BERT)
    teller.handle(10.0, BERT, NO_MORE)
    assert said(teller, 10.0, 1, 10) == [(ANNA, (1, 10))]
    assert said(teller, float(v.ASKED_S), 2, 10) == []
    assert teller.next_deadline() is None


@pytest.mark.parametrize("pause_s", [0.0, v.REPEAT_S / 2])
def test_with_the_last_listener_gone_nothing_is_waited_for(pause_s: float) -> None:
    teller = Teller()
    teller.handle(0.0, ANNA, AskVitals(1))
    if pause_s:
        said(teller, 0.0, 2, 10)
    teller.handle(pause_s, ANNA, NO_MORE)
    assert said(teller, pause_s, 2, 10) == []
    assert teller.next_deadline() is None


def test_a_repeat_that_outlasts_its_listener_is_not_waited_for() -> None:
    teller = Teller()
    teller.handle(0.0, ANNA, AskVitals(1))
    said(teller, 0.0, 2, 10)
    said(teller, 0.9, 1, 10)
    said(teller, 1.2, 2, 10)  # the time is over: nobody is told
    assert said(teller, 5.0, 2, 10) == []
    assert teller.next_deadline() is None


def test_listeners_are_bounded_and_those_whose_time_is_over_make_room() -> None:
    teller = Teller()
    for number in range(v.LISTENERS_MAX + 1):
        teller.handle(0.0, NodeId(10 + number), AskVitals(5))
    told = said(teller, 0.0, 2, 10)
    assert len(told) == v.LISTENERS_MAX
    assert NodeId(10 + v.LISTENERS_MAX) not in dict(told)
    assert teller.dropped == 1, "and that is seen"
    teller.handle(1.0, NodeId(10), AskVitals(5))
    assert said(teller, 1.0, 2, 10)[0] == (NodeId(10), (2, 10)), "it is one of them"
    teller.handle(6.5, ANNA, ASK)
    assert said(teller, 6.5, 2, 10) == [(ANNA, (2, 10))]


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
            told = said(teller, now, free, 10)
            assert {to for to, _ in told} <= {to for to, at in until.items() if now < at}
            knows |= {to: vitals[0] for to, vitals in told}
            due = teller.next_deadline()
            if due is None or due > end:
                break
            assert due > now, "it is asked for the same moment again"
            now = due
        else:
            raise AssertionError("it wants to be asked all the time")
        now = end
        if pause_s >= v.TELL_PAUSE_S:
            said(teller, now, free, 10)
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


PROMISED = v.ASKED_S


def told_listener() -> Listener:
    """Return a voter that asked at 0.0, and was answered 10 ms later."""
    listener = Listener()
    listener.use(0.0)
    listener.ask(0.0, [ANNA])
    listener.handle(0.01, ANNA, VitalsTold(2, 10, 7, PROMISED))
    return listener


def told(listener: Listener, node_id: NodeId = ANNA) -> v.Told:
    found = listener.told(node_id)
    assert found is not None
    return found


def test_what_was_told_does_not_age_as_long_as_changes_were_promised() -> None:
    listener = told_listener()
    assert listener.told(BERT) is None
    assert told(listener) == (2, 10, 7, 0.01, 0.01 + PROMISED)
    assert told(listener).age_s(PROMISED) == 0
    assert told(listener).age_s(PROMISED + 5.01) == pytest.approx(5)


def test_a_question_that_is_not_answered_makes_nothing_fresh_for_longer() -> None:
    listener = told_listener()
    listener.use(v.ASK_AGAIN_S)
    assert listener.ask(v.ASK_AGAIN_S, [ANNA])
    assert told(listener).age_s(PROMISED + 1.01) == pytest.approx(1)
    listener.handle(PROMISED + 2, ANNA, VitalsTold(1, 10, 7, 48))
    assert told(listener) == (1, 10, 7, 0.01, PROMISED + 50)


def test_what_rides_along_unasked_ages_from_when_it_came_and_breaks_no_promise() -> None:
    listener = told_listener()
    listener.handle(5.0, BERT, VitalsTold(1, 30))
    assert told(listener, BERT) == (1, 30, 0, None, 5.0)
    assert told(listener, BERT).age_s(7.0) == 2
    listener.handle(6.0, ANNA, VitalsTold(0, 90, 7))
    assert told(listener) == (0, 90, 7, 0.01, 0.01 + PROMISED)
    listener.handle(PROMISED + 3.0, ANNA, VitalsTold(1, 20, 7))
    assert told(listener).age_s(PROMISED + 4.0) == 1


def test_what_rides_along_after_a_question_that_was_lost_is_no_answer() -> None:
    listener = Listener()
    listener.use(0.0)
    listener.ask(0.0, [ANNA])
    listener.handle(0.01, ANNA, VitalsTold(1, 30))
    assert told(listener) == (1, 30, 0, None, 0.01)


def test_an_answer_that_came_with_its_repeat_alone_is_no_round_trip() -> None:
    listener = Listener()
    listener.use(0.0)
    listener.ask(0.0, [ANNA])
    listener.handle(0.01 + v.REPEAT_S, ANNA, VitalsTold(2, 10, 0, PROMISED - 1))
    assert told(listener).rtt_s is None


def test_who_is_gone_is_forgotten_and_asked_anew() -> None:
    listener = told_listener()
    listener.forget(ANNA)
    assert listener.told(ANNA) is None
    due = listener.next_deadline()
    assert due is not None
    assert listener.ask(due, [ANNA]) == [(ANNA, ASK)]


def test_of_too_many_members_the_one_heard_longest_ago_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(v, "TOLD_MAX", 2)
    listener = Listener()
    for now, one in enumerate((1, 2, 1, 3)):
        listener.handle(float(now), NodeId(one), VitalsTold(1, 0))
    assert [listener.told(NodeId(one)) is None for one in (1, 2, 3)] == [False, True, False]


# An owner's side.


def test_vitals_ride_along_once_a_second_to_each_voter() -> None:
    rides = Rides()
    assert [rides.is_due(now, ANNA) for now in (0.0, 0.5, 0.99, 1.0, 1.5)] == [
        True, False, False, True, False
    ]  # fmt: skip
    assert rides.is_due(1.5, BERT)
    assert len(rides) == 2
    assert rides.is_due(9.0, BERT)
    assert len(rides) == 1, "who gets none any more is forgotten"
