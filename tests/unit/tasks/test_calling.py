"""Whom a voter calls, how long a rank waits then, and what it learns of it."""

from __future__ import annotations

import math

import pytest

from mesh.contest.known import Known
from mesh.contest.window import C_S_MIN, FACTOR_MAX
from mesh.core.address import Address
from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveMember, LiveView
from mesh.tasks.calling import Calling
from mesh.tasks.config import TasksConfig
from mesh.tasks.effects import Step
from mesh.wire.contest_messages import HISTORY_MAX, AskVitals, Bid, Call, VitalsTold, Weighing
from mesh.wire.records import Metadata
from mesh.wire.task_messages import AttemptCause, Decline, Offer

CONFIG = TasksConfig()
KEY = b"task/t"
IDS = tuple(NodeId(n) for n in range(1, 7))
RTT_S = 0.010


def member(node_id: NodeId, free: int = 2, load: int = 0) -> LiveMember:
    return LiveMember(
        node_id=node_id,
        boot=1,
        name=f"n{node_id}",
        address=Address("127.0.0.1", 1000 + node_id),
        meta=Metadata(slots=2),
        free_slots=free,
        busy_pct=load,
    )


def offer_of(task_id: str = "t", attempt: int = 1) -> Offer:
    return Offer(
        task_id=task_id,
        ballot=Ballot(0, 1, 0, NodeId(9)),
        seq=0,
        attempt=attempt,
        cause=AttemptCause.FIRST,
        queue="q",
    )


def letters(steps: list[Step]) -> list[tuple[NodeId, object]]:
    """Return messages and to whom they go, which is all that there is here."""
    found = [one for one in steps if isinstance(one, tuple)]
    assert len(found) == len(steps)
    return found


class Caller:
    """A calling voter, and what it knows of members."""

    def __init__(self, *members: LiveMember, rtt_s: float | None = RTT_S) -> None:
        self.view = LiveView()
        for one in members:
            self.view.put(one)
        self.rtt_s: dict[NodeId, float | None] = {one.node_id: rtt_s for one in members}
        self.weights: dict[str, Weighing] = {}
        self.calling = Calling(
            self.view,
            self.known_of,
            CONFIG,
            weighing_of=lambda _now, queue: self.weights.get(queue, ()),
        )
        self.now = 100.0
        self.ack_age_s = 0.0

    def known_of(self, node_id: NodeId) -> Known:
        return Known(self.rtt_s[node_id], self.rtt_s[node_id], self.now - self.ack_age_s)

    def open(self, task_id: str = "t") -> Call:
        members = self.view.members()
        steps, expected = self.calling.open(self.now, KEY, offer_of(task_id), members)
        (call,) = {message for _, message in letters(steps)}
        assert isinstance(call, Call)
        assert [to for to, _ in letters(steps)] == [one.node_id for one in call.called]
        assert expected == call.called[0].node_id
        return call

    def due(self) -> list[tuple[NodeId, object]]:
        """Do what is due next, except for asking of vitals."""
        while True:
            due = self.calling.next_timeout()
            assert due is not None
            self.now = max(self.now, due)
            steps = letters(self.calling.handle_timeout(self.now))
            found = [one for one in steps if not isinstance(one[1], AskVitals)]
            if found or self.calling.given_up:
                return found


def test_the_fittest_four_are_called_and_all_is_told_that_is_known_of_them() -> None:
    loads = dict(zip(IDS, (90, 10, 95, 15, 20, 25), strict=True))
    caller = Caller(*(member(one, load=loads[one]) for one in IDS))
    call = caller.open()
    assert {one.node_id for one in call.called} == set(IDS) - {1, 3}
    assert {(one.busy_pct, one.free_slots, one.age_ds) for one in call.called} == {
        (loads[one.node_id], 2, 0) for one in call.called
    }
    assert (call.round, call.offer, call.weights) == (0, offer_of(), ())
    assert {(one.lag_ms, one.history, one.rtt_us) for one in call.called} == {
        (None, HISTORY_MAX, RTT_S * 1e6)
    }


def test_who_cannot_take_it_is_not_called_and_with_nobody_left_it_is_given_up() -> None:
    caller = Caller(member(IDS[0], free=0), member(IDS[1]))
    assert [one.node_id for one in caller.open().called] == [IDS[1]]
    nobody = Caller(member(IDS[0], free=0))
    assert nobody.calling.open(0.0, KEY, offer_of(), nobody.view.members()) == ([], None)
    assert (nobody.calling.given_up, len(nobody.calling)) == ([KEY], 0)


def test_the_window_is_that_of_the_farthest_of_the_first_four() -> None:
    caller = Caller(*map(member, IDS[:4]))
    assert caller.open().window_us == pytest.approx(RTT_S * 1e6)
    caller.rtt_s[IDS[2]] = 0.080
    assert caller.open().window_us == pytest.approx(80_000)


def test_the_window_is_longer_where_all_are_loaded() -> None:
    loads = (0, 80, 0, 80)
    caller = Caller(*(member(one, load=n) for one, n in zip(IDS, loads, strict=False)))
    assert caller.open().window_us == pytest.approx(1.5 * RTT_S * 1e6)


def test_who_was_not_measured_may_be_as_far_as_the_farthest_of_late() -> None:
    caller = Caller(*map(member, IDS[:4]))
    caller.rtt_s[IDS[0]] = 0.080
    caller.open()
    caller.rtt_s |= {IDS[0]: RTT_S, IDS[1]: None}
    assert caller.open().window_us == pytest.approx(80_000, rel=0.02)
    for _ in range(500):
        last = caller.open().window_us
    assert last < 15_000, "and that fades"


def test_where_nobody_was_measured_a_window_is_short_and_the_first_answer_tells() -> None:
    caller = Caller(*map(member, IDS[:2]), rtt_s=None)
    assert caller.open().window_us == C_S_MIN * 1e6
    asked = letters(caller.calling.handle_timeout(caller.now))
    assert {message for _, message in asked} == {AskVitals(120)}
    caller.now += 0.030
    for one in IDS[:2]:
        caller.calling.listener.handle(caller.now, one, VitalsTold(1, 50, 0, 120))
    assert caller.open().window_us == pytest.approx(1.625 * 30_000)


def test_what_was_told_is_fresh_and_its_load_counts() -> None:
    caller = Caller(*map(member, IDS[:2]))
    caller.open()
    caller.calling.handle_timeout(caller.now)
    caller.calling.listener.handle(caller.now, IDS[0], VitalsTold(0, 77, 0, 120))
    caller.now += 50
    told = {one.node_id: one for one in caller.open().called}
    assert (told[IDS[0]].busy_pct, told[IDS[0]].age_ds, told[IDS[0]].free_slots) == (77, 0, 2)
    caller.calling.handle_member_down(caller.now, IDS[0])
    assert {one.busy_pct for one in caller.open().called} == {0}


def test_what_came_unasked_ages_and_the_younger_of_two_words_counts() -> None:
    caller = Caller(*map(member, IDS[:2]))
    caller.calling.listener.handle(caller.now, IDS[0], VitalsTold(0, 77, 12))
    caller.now, caller.ack_age_s = caller.now + 3, 5.0
    told = {one.node_id: one for one in caller.open().called}
    assert (told[IDS[0]].busy_pct, told[IDS[0]].age_ds, told[IDS[0]].lag_ms) == (77, 30, 12)
    assert (told[IDS[1]].busy_pct, told[IDS[1]].age_ds, told[IDS[1]].lag_ms) == (0, 50, None)
    caller.ack_age_s = 1.0
    told = {one.node_id: one for one in caller.open().called}
    assert (told[IDS[0]].busy_pct, told[IDS[0]].age_ds, told[IDS[0]].lag_ms) == (0, 10, None)


def test_the_round_trip_is_what_was_measured_of_a_member_or_of_its_first_answer() -> None:
    caller = Caller(*map(member, IDS[:2]), rtt_s=None)
    caller.open()
    caller.calling.handle_timeout(caller.now)
    caller.calling.listener.handle(caller.now + 0.02, IDS[0], VitalsTold(1, 0, 0, 120))
    caller.now += 0.05
    assert {one.node_id: one.rtt_us for one in caller.open().called} == {
        IDS[0]: pytest.approx(20_000, abs=1), IDS[1]: None
    }  # fmt: skip


def test_how_tasks_of_its_queue_fared_is_told_and_counts() -> None:
    caller = Caller(*map(member, IDS[:4]))
    best = caller.open("t").called[0].node_id
    for _ in range(10):
        caller.calling.histories.note(caller.now, "q", best, ok=False)
        caller.calling.histories.note(caller.now, "other", IDS[3], ok=False)
    called = caller.open("t").called
    assert called[-1].node_id == best
    assert called[-1].history == pytest.approx(HISTORY_MAX / 6, rel=0.2)
    assert {one.history for one in called[:-1]} == {HISTORY_MAX}


def test_a_queues_own_weights_are_sent_with_every_round_and_decide_who_is_called() -> None:
    busy, by_lag = IDS[5], (("lag", 1.0),)
    caller = Caller(*(member(one, free=1 + (one != busy)) for one in IDS))
    caller.calling.listener.handle(caller.now, busy, VitalsTold(1, 100, 0, 120))
    assert busy not in {one.node_id for one in caller.open().called}
    caller.weights["q"] = by_lag
    call = caller.open()
    assert call.called[0].node_id == busy, "of it alone a lag is known"
    assert call.weights == by_lag
    second = {message for _, message in caller.due() if isinstance(message, Call)}
    assert {one.weights for one in second} == {by_lag}


def test_no_window_outlasts_a_contest_however_far_members_are() -> None:
    caller = Caller(*map(member, IDS[:4]), rtt_s=1e4)
    assert caller.open().window_us == CONFIG.contest_s_max / 4 * 1e6


def test_those_left_are_called_in_turn_and_then_it_is_given_up_and_forgotten() -> None:
    caller = Caller(*map(member, IDS))
    first = caller.open()
    second = caller.due()
    assert {to for to, _ in second} == set(IDS) - {one.node_id for one in first.called}
    assert caller.due() == []
    assert (caller.calling.given_up, KEY in caller.calling) == ([KEY], False)
    caller.calling.check_invariants()


def test_when_all_decline_or_are_gone_the_next_are_called_at_once() -> None:
    caller = Caller(*map(member, IDS))
    first = [one.node_id for one in caller.open().called]
    for one in first[:3]:
        assert caller.calling.handle_answer(caller.now, KEY, one, Decline.BUSY) == []
    steps = caller.calling.handle_member_down(caller.now, first[3])
    assert {to for to, _ in letters(steps)} == set(IDS) - set(first)


def held(caller: Caller, bids: int, grant_s: float = 0.001) -> None:
    """Hold a contest that so many bid in, and the first wins, so long after its bid."""
    called = [one.node_id for one in caller.open().called]
    for one in called[:bids]:
        caller.calling.handle_bid(caller.now, KEY, one, Bid("t", 1, 0, 60_000))
    caller.calling.close(caller.now + grant_s, KEY, called[0])


def test_windows_widen_where_many_bid_and_narrow_where_only_one_does() -> None:
    caller = Caller(*map(member, IDS[:4]))
    for _ in range(50):
        held(caller, bids=3)
    wide = caller.calling.window.factor
    assert wide > 1.5
    for _ in range(100):
        held(caller, bids=1)
    assert caller.calling.window.factor < wide
    caller.calling.window.check_invariants()


def test_no_window_is_widened_beyond_what_a_grant_takes() -> None:
    caller = Caller(*map(member, IDS[:4]))
    for _ in range(200):
        held(caller, bids=3, grant_s=3 * RTT_S)
    assert caller.calling.window.factor == FACTOR_MAX, "bids do not get fewer by it"
    assert caller.open().window_us == pytest.approx(3 * RTT_S * 1e6)
    for _ in range(50):
        held(caller, bids=3, grant_s=RTT_S / 2)
    assert caller.open().window_us == pytest.approx(RTT_S * 1e6), (
        "nor is it cut below its two delays"
    )


def test_nothing_is_learned_of_what_nobody_won_or_of_one_alone() -> None:
    caller = Caller(*map(member, IDS[:4]))
    caller.open()
    caller.calling.close(caller.now, KEY, None)
    alone = Caller(member(IDS[0]))
    held(alone, bids=1)
    assert caller.calling.window.contests == alone.calling.window.contests == 0


def test_a_contest_that_somebody_won_unheard_still_counts() -> None:
    caller = Caller(*map(member, IDS[:4]))
    held(caller, bids=0)
    window = caller.calling.window
    assert (window.contests, window.factor) == (1, 1.0)
    assert math.isclose(window.bids_mean, 1.2)
