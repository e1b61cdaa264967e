"""All leases of one node: one renewal to each voter in each period, and each change said once."""

from __future__ import annotations

import random

import pytest

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.errors import LocalProtocolError
from mesh.registers.leaseholder import ASKED_ROUNDS_MAX, NEW_PAUSE_S, Held, Leaseholder
from mesh.registers.leases import lan
from mesh.registers.trust import Hold
from mesh.registers.voter import Voter
from mesh.wire.register_messages import Accept, Owner, Prepare, Renew, Renewed, Standing, Value

A, B, C, ME, OTHER = (NodeId(number) for number in (1, 2, 3, 9, 8))
VOTERS = (A, B, C)
TIMES = lan()
BOOT = 7
OWNED = Value(Standing.LEASED, b"runs", Owner(ME, 1))


def token(n: int = 5, node_id: NodeId = ME) -> Ballot:
    return Ballot(0, 1, n, node_id)


class World:
    """A node and three voters that hold what it owns."""

    def __init__(self, count: int = 1) -> None:
        self.holder = Leaseholder(TIMES, BOOT, random.Random(1))
        self.voters = {voter: Voter(voter, TIMES, epoch=1, now=0.0) for voter in VOTERS}
        self.changes: list[Held] = []
        for number in range(count):
            self.grant(b"k%d" % number)

    def grant(self, key: bytes, now: float = 0.0, sent_at: float | None = 0.0) -> Hold:
        for voter in self.voters.values():
            voter.handle(now, Accept(key, 1, token(), 0, OWNED))
        return self.holder.hold(now, key, token(), sent_at, VOTERS)

    def due(self, now: float) -> list[tuple[NodeId, Renew]]:
        sent, changes = self.holder.handle_timeout(now)
        self.changes += changes
        self.holder.check_invariants(now)
        return sent

    def answer(self, now: float, sent: list[tuple[NodeId, Renew]], *reached: NodeId) -> None:
        for to, request in sent:
            if to in reached:
                (answer,) = self.voters[to].handle(now, request)
                assert isinstance(answer, Renewed)
                self.changes += self.holder.handle(now, to, answer)

    def round_at(self, now: float, *reached: NodeId) -> list[tuple[NodeId, Renew]]:
        sent = self.due(now)
        self.answer(now, sent, *reached)
        return sent

    def holds(self) -> list[Hold]:
        return [change.hold for change in self.changes]


def test_one_message_to_each_voter_renews_all_leases() -> None:
    world = World(count=50)
    sent = world.round_at(TIMES.renew_s, *VOTERS)
    assert [to for to, _ in sent] == list(VOTERS)
    assert {len(request.leases) for _, request in sent} == {50}
    assert world.holder.trusted_until(b"k7") == TIMES.renew_s + TIMES.owner_s


def test_next_round_is_due_within_the_period_and_not_before_nine_tenths_of_it() -> None:
    world = World()
    world.round_at(TIMES.renew_s, *VOTERS)
    due = world.holder.next_deadline()
    assert due is not None
    assert 1.9 * TIMES.renew_s <= due <= 2 * TIMES.renew_s


def test_minority_renews_nothing() -> None:
    world = World()
    for period in range(1, 6):
        world.round_at(period * TIMES.renew_s, A)
    assert world.holder.trusted_until(b"k0") == TIMES.owner_s
    world.due(TIMES.owner_s)
    assert world.holds() == [Hold.DOUBT]


def test_trust_counts_from_before_the_round_was_sent() -> None:
    world = World()
    sent = world.due(TIMES.renew_s)
    world.answer(TIMES.renew_s + 3, sent, A, B)
    assert world.holder.trusted_until(b"k0") == TIMES.renew_s + TIMES.owner_s


def test_answers_of_two_rounds_are_not_counted_together() -> None:
    world = World()
    first = world.due(TIMES.renew_s)
    second = world.due(2 * TIMES.renew_s)
    world.answer(2 * TIMES.renew_s, first, A)
    world.answer(2 * TIMES.renew_s, second, B)
    assert world.holder.trusted_until(b"k0") == TIMES.owner_s


def test_doubt_ends_when_a_majority_answers_again_and_each_change_is_said_once() -> None:
    world = World()
    world.due(TIMES.owner_s)
    world.due(TIMES.owner_s + 1)
    assert world.holds() == [Hold.DOUBT]
    world.round_at(TIMES.owner_s + TIMES.renew_s + 1, A, C)
    assert world.holds() == [Hold.DOUBT, Hold.SURE]


def test_doubt_that_lasts_as_long_as_a_voter_waits_is_a_loss_for_good() -> None:
    world = World()
    until = TIMES.owner_s + TIMES.voter_s + TIMES.grace_s
    late = world.due(TIMES.owner_s)
    world.due(until - 0.01)
    assert world.holds() == [Hold.DOUBT]
    world.due(until)
    assert world.holds() == [Hold.DOUBT, Hold.LOST]
    world.answer(until, late, *VOTERS)
    assert world.holds() == [Hold.DOUBT, Hold.LOST]
    assert world.holder.standing(until, b"k0") is None
    assert world.holder.next_deadline() is None


def test_voter_that_accepted_another_ends_the_lease_at_once() -> None:
    world = World()
    sent = world.due(TIMES.renew_s)
    taken = Value(Standing.LEASED, b"runs", Owner(OTHER, 1))
    world.voters[B].handle(0.0, Accept(b"k0", 1, token(6, OTHER), 0, taken))
    world.answer(TIMES.renew_s, sent, B)
    assert world.holds() == [Hold.LOST]


def test_promise_to_another_renews_nothing_and_takes_nothing() -> None:
    world = World()
    late = TIMES.voter_s + TIMES.grace_s
    world.voters[B].handle(late, Prepare(b"k0", token(6, OTHER), 1))
    sent = world.due(TIMES.renew_s)
    world.answer(late, sent, B)
    assert world.holds() == [Hold.DOUBT]
    assert world.holder.trusted_until(b"k0") == TIMES.owner_s


def test_lease_granted_too_late_is_renewed_before_anything_starts() -> None:
    world = World(count=0)
    assert world.grant(b"k", now=20.0, sent_at=20.0 - TIMES.owner_s) is Hold.DOUBT
    assert world.holder.next_deadline() == 20.0
    world.round_at(20.0, A, B)
    assert world.holds() == [Hold.SURE]


def test_lease_given_by_another_is_trusted_only_after_a_renewal_of_its_own() -> None:
    world = World(count=0)
    assert world.grant(b"k", now=1.0, sent_at=None) is Hold.DOUBT
    sent = world.due(1.0)
    assert world.holds() == []
    world.answer(1.2, sent, A, C)
    assert world.holds() == [Hold.SURE]
    assert world.holder.trusted_until(b"k") == 1.0 + TIMES.owner_s


def test_dropped_lease_is_renewed_no_more_and_late_answers_do_no_harm() -> None:
    world = World(count=2)
    sent = world.due(TIMES.renew_s)
    world.holder.drop(b"k0")
    world.answer(TIMES.renew_s, sent, *VOTERS)
    (request, *_) = [request for _, request in world.due(2 * TIMES.renew_s)]
    assert [key for key, _ in request.leases] == [b"k1"]


def test_voters_of_another_epoch_are_asked_as_soon_as_they_are_known() -> None:
    world = World()
    for voter in VOTERS:
        records = {key: (record, True) for key, record in world.voters[voter]}
        world.voters[voter].install(1.0, 2, records)
    world.round_at(TIMES.renew_s, *VOTERS)
    assert world.holder.trusted_until(b"k0") == TIMES.owner_s, "they vote in another epoch"
    world.holder.move(3.0, 2, {b"k0": VOTERS, b"unknown": VOTERS})
    world.round_at(3.0, A, B)
    assert world.holder.trusted_until(b"k0") == 3.0 + TIMES.owner_s


def test_rounds_of_one_session_are_never_those_of_another() -> None:
    rounds = []
    for boot in (BOOT, BOOT + 1):
        world = World()
        world.holder = Leaseholder(TIMES, boot, random.Random(1))
        world.grant(b"k")
        rounds.append({request.round for _, request in world.due(TIMES.renew_s)})
    assert not rounds[0] & rounds[1]
    assert min(rounds[1]) > max(rounds[0])


def test_answer_that_comes_after_all_was_given_up_brings_nothing_back() -> None:
    world = World()
    sent = world.due(TIMES.owner_s)
    until = TIMES.owner_s + TIMES.voter_s + TIMES.grace_s
    world.answer(until + 1, sent, *VOTERS)  # nobody asked for the time meanwhile
    assert world.holds() == [Hold.DOUBT, Hold.LOST]


def test_answers_that_nobody_asked_for_change_nothing() -> None:
    world = World()
    sent = world.due(TIMES.renew_s)
    number = sent[0][1].round
    assert world.holder.handle(2.0, OTHER, Renewed(1, number, (0,), ((0, token(9)),))) == []
    assert world.holder.handle(2.0, A, Renewed(1, number, (7,), ((7, token(9)),))) == []
    assert world.holder.handle(2.0, A, Renewed(1, number + 9, (0,), ())) == []
    assert world.holder.standing(2.0, b"k0") is Hold.SURE


def test_more_leases_than_fit_into_a_renewal_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mesh.registers.leaseholder.LEASES_MAX", 2)
    world = World(count=2)
    with pytest.raises(LocalProtocolError):
        world.grant(b"one more")
    assert len(world.holder) == 2


def test_node_that_holds_nothing_sends_nothing() -> None:
    world = World()
    world.holder.drop(b"k0")
    assert world.holder.next_deadline() is None
    assert world.due(100.0) == []


def test_a_lease_that_was_not_asked_for_is_renewed_by_itself_at_once_and_again_soon() -> None:
    world = World(count=3)
    assert world.grant(b"named", sent_at=None) is Hold.DOUBT
    sent = world.holder.renew_new(0.0)
    assert {request.leases for _, request in sent} == {((b"named", token()),)}
    at, pauses = 0.0, []
    for _ in range(3):  # nobody answers
        due = world.holder.next_deadline()
        assert due is not None
        pauses.append(due - at)
        at = due
        assert len(world.due(at)) == len(VOTERS)
    assert pauses == pytest.approx([NEW_PAUSE_S, 2 * NEW_PAUSE_S, 4 * NEW_PAUSE_S])
    assert at < TIMES.renew_s


def test_a_lease_that_was_not_asked_for_is_trusted_from_the_round_that_a_majority_answers() -> None:
    world = World(count=0)
    world.grant(b"named", sent_at=None)
    first = world.holder.renew_new(0.0)
    world.answer(0.01, first, A)
    assert not world.changes
    again = world.due(NEW_PAUSE_S)
    world.answer(1.0, again, A, B)
    assert world.holds() == [Hold.SURE]
    assert world.holder.trusted_until(b"named") == NEW_PAUSE_S + TIMES.owner_s
    due = world.holder.next_deadline()
    assert due is not None
    assert due == pytest.approx(TIMES.renew_s, rel=0.2)  # with all others from now on


def test_a_lease_that_nobody_renews_is_lost_in_the_end_and_renewed_no_more() -> None:
    world = World(count=0)
    world.grant(b"named", sent_at=None)
    world.holder.renew_new(0.0)
    world.due(TIMES.doubt_s)
    assert world.holds() == [Hold.LOST]
    assert world.holder.next_deadline() is None


def test_answers_to_many_new_leases_that_follow_each_other_closely_all_count() -> None:
    world = World(count=0)
    sent = []
    for number in range(30):
        world.grant(b"n%d" % number, sent_at=None)
        sent += world.holder.renew_new(0.0)
    world.answer(0.01, sent, A, B)
    assert world.holds() == [Hold.SURE] * 30


def test_a_new_lease_that_is_dropped_is_renewed_no_more() -> None:
    world = World(count=0)
    world.grant(b"named", sent_at=None)
    world.holder.drop(b"named")
    assert not world.holder.renew_new(0.0)
    world.holder.check_invariants(0.0)


def test_many_new_leases_leave_a_round_that_is_answered_slowly_its_answers() -> None:
    world = World(count=1)
    for period in range(1, 6):
        now = period * TIMES.renew_s
        slow = world.due(now)
        for number in range(ASKED_ROUNDS_MAX):
            key = b"n%d" % number
            world.grant(key, now=now, sent_at=None)
            world.holder.renew_new(now)
            world.holder.drop(key)
        world.answer(now + 0.5, slow, A, B)
    assert world.holder.trusted_until(b"k0") == 5 * TIMES.renew_s + TIMES.owner_s
