"""A desk's leases and writes: said in time, settled by a majority, ended once."""

import pytest

from mesh.core.ballot import NO_BALLOT
from mesh.errors import LocalProtocolError
from mesh.registers.asker import Done
from mesh.registers.leaseholder import Held
from mesh.registers.outbox import Commit, Event, Fenced, Post, Written
from mesh.registers.proposal import Chosen
from mesh.registers.trust import Hold
from mesh.wire.register_messages import Accept, Owner, Prepare, Renew, Standing, Value
from mesh.wire.roster_messages import Roster
from tests.unit.registers.asked import (
    EPOCH,
    FINAL,
    KEY,
    OPEN,
    P_HAS,
    STRANGER,
    TIMES,
    VOTERS,
    A,
    P,
    ballot,
)
from tests.unit.registers.desks import Desks, claiming, desk, posts, three_desks

FIRST, SECOND, THIRD = desk(A).seats(KEY).voters


@pytest.fixture
def desks() -> Desks:
    """Return three voters, and a stranger who has been granted the register."""
    found = three_desks()
    found.by_node[STRANGER] = desk(STRANGER)
    return found


def held(desks: Desks) -> Chosen:
    granted = desks.claim(STRANGER, KEY, OPEN)
    assert desks.by_node[STRANGER].hold(desks.now, KEY, granted) is Hold.SURE
    return granted


def lose(desks: Desks) -> Chosen:
    """Have the owner lose its lease to the first voter, which hears no more of it."""
    desks.away = {STRANGER}
    desks.wait(TIMES.voter_s + TIMES.grace_s)
    desks.by_node[FIRST].propose(desks.now, KEY, claiming(FIRST), "claim", 5)
    granted = desks.outcome(FIRST, "claim", seconds=2)
    assert isinstance(granted, Chosen)
    desks.away = set()
    return granted


def changes(events: list[Event]) -> list[Hold]:
    return [one.hold for one in events if isinstance(one, Held)]


def progress(owner_says: bytes) -> Value:
    return Value(Standing.LEASED, owner_says, claiming(STRANGER)(OPEN).owner)  # type: ignore[union-attr]  # it finds something


def test_a_lease_is_renewed_for_as_long_as_it_is_held(desks: Desks) -> None:
    held(desks)
    owner = desks.by_node[STRANGER]
    assert changes(desks.wait(100)[STRANGER]) == []
    assert owner.standing(desks.now, KEY) is Hold.SURE
    until, given_up_at = owner.trusted_until(KEY), owner.given_up_at(KEY)
    assert until is not None
    assert until > desks.now
    assert given_up_at == until + TIMES.doubt_s
    owner.drop(desks.now, KEY)
    assert owner.next_deadline() is None
    assert owner.standing(desks.now, KEY) is None


def test_an_owner_that_is_cut_off_doubts_in_time_and_loses_in_time(desks: Desks) -> None:
    held(desks)
    owner = desks.by_node[STRANGER]
    desks.away = {STRANGER}
    until = owner.trusted_until(KEY)
    assert until is not None
    assert changes(desks.wait(until - desks.now - 0.01)[STRANGER]) == []
    assert changes(desks.wait(0.01)[STRANGER]) == [Hold.DOUBT]
    assert changes(desks.wait(TIMES.doubt_s)[STRANGER]) == [Hold.LOST]


def test_an_owner_that_can_be_reached_again_is_sure_again(desks: Desks) -> None:
    held(desks)
    desks.away = {STRANGER}
    assert changes(desks.wait(TIMES.owner_s + 1)[STRANGER]) == [Hold.DOUBT]
    desks.away = set()
    assert changes(desks.wait(TIMES.renew_s)[STRANGER]) == [Hold.SURE]


def test_renewals_and_doubt_wait_for_no_commit() -> None:
    desks = three_desks()
    granted = desks.claim(A, KEY, OPEN)
    owner = desks.by_node[A]
    owner.hold(0.0, KEY, granted)
    owner.handle(0.0, P, Prepare(b"other", ballot(9), 1))  # to be stored, and the disk is slow
    assert any(isinstance(one, Commit) for one in owner.take())
    at = owner.next_deadline()
    assert at is not None
    owner.handle_timeout(at)
    assert all(isinstance(one, Renew) for (one,) in posts(owner.take()).values())
    owner.handle_timeout(TIMES.owner_s)
    assert changes([one for one in owner.take() if isinstance(one, Held)]) == [Hold.DOUBT]


def test_a_lease_granted_too_late_is_in_doubt_until_it_is_renewed(desks: Desks) -> None:
    granted = desks.claim(STRANGER, KEY, OPEN)
    desks.now += TIMES.owner_s + 1
    assert desks.by_node[STRANGER].hold(desks.now, KEY, granted) is Hold.DOUBT
    assert changes(desks.wait(0.1)[STRANGER]) == [Hold.SURE]


def test_a_lease_granted_far_too_late_is_lost_and_may_still_be_released(desks: Desks) -> None:
    granted = desks.claim(STRANGER, KEY, OPEN)
    owner = desks.by_node[STRANGER]
    desks.now += TIMES.owner_s + TIMES.doubt_s
    assert owner.hold(desks.now, KEY, granted) is Hold.LOST
    owner.check_invariants()
    assert owner.next_deadline() is None
    assert owner.write(desks.now, KEY, OPEN) == 1
    assert desks.settle()[STRANGER] == [Written(KEY, granted.ballot, 1)]


def test_another_sessions_lease_is_not_held() -> None:
    one = desk(A)
    with pytest.raises(LocalProtocolError, match="is expected, found one of"):
        one.hold(0.0, KEY, Chosen(P_HAS, NO_BALLOT, 0.0, is_found=False))
    assert one.standing(0.0, KEY) is None


def test_a_write_is_said_when_a_majority_has_it(desks: Desks) -> None:
    token = held(desks).ballot
    owner = desks.by_node[STRANGER]
    assert owner.write(desks.now, KEY, progress(b"half")) == 1
    assert desks.settle()[STRANGER] == [Written(KEY, token, 1)]
    desks.away = {SECOND, THIRD}
    assert owner.write(desks.now, KEY, progress(b"more")) == 2
    assert desks.settle()[STRANGER] == []
    desks.away = {SECOND}
    assert desks.wait(0.5)[STRANGER] == [Written(KEY, token, 2)]
    assert desks.by_node[THIRD].voter.record(KEY).value == progress(b"more")


def test_of_two_writes_at_once_the_last_is_said(desks: Desks) -> None:
    token = held(desks).ballot
    owner = desks.by_node[STRANGER]
    owner.write(desks.now, KEY, progress(b"half"))
    owner.write(desks.now, KEY, progress(b"more"))
    assert desks.settle()[STRANGER] == [Written(KEY, token, 2)]


@pytest.mark.parametrize("value", [OPEN, FINAL])
def test_a_written_value_that_is_no_lease_ends_the_holding(desks: Desks, value: Value) -> None:
    token = held(desks).ballot
    owner = desks.by_node[STRANGER]
    owner.write(desks.now, KEY, value)
    assert desks.settle()[STRANGER] == [Written(KEY, token, 1)]
    assert owner.standing(desks.now, KEY) is None
    assert owner.next_deadline() is None
    with pytest.raises(LocalProtocolError, match="a register that is held is expected"):
        owner.write(desks.now, KEY, value)


def test_the_last_word_counts_though_the_lease_was_lost(desks: Desks) -> None:
    token = held(desks).ballot
    owner = desks.by_node[STRANGER]
    desks.away = {STRANGER}
    assert changes(desks.wait(TIMES.owner_s + TIMES.doubt_s)[STRANGER]) == [Hold.DOUBT, Hold.LOST]
    owner.write(desks.now, KEY, FINAL)
    desks.settle()
    desks.away = set()
    assert desks.wait(1)[STRANGER] == [Written(KEY, token, 1)]


def test_an_owner_whose_lease_was_given_away_is_told_and_fenced_off(desks: Desks) -> None:
    token = held(desks).ballot
    higher = lose(desks).ballot
    owner = desks.by_node[STRANGER]
    assert changes(desks.wait(TIMES.renew_s)[STRANGER]) == [Hold.LOST]
    owner.write(desks.now, KEY, progress(b"half"))
    assert desks.settle()[STRANGER] == [Fenced(KEY, token, higher)]
    owner.write(desks.now, KEY, FINAL)
    assert desks.settle()[STRANGER] == [Fenced(KEY, token, higher)]
    owner.drop(desks.now, KEY)
    with pytest.raises(LocalProtocolError, match="a register that is held is expected"):
        owner.write(desks.now, KEY, FINAL)


def test_what_was_dropped_is_written_no_more(desks: Desks) -> None:
    held(desks)
    owner = desks.by_node[STRANGER]
    desks.away = {STRANGER}
    owner.write(desks.now, KEY, progress(b"half"))
    owner.drop(desks.now, KEY)
    desks.settle()
    desks.away = set()
    assert desks.wait(5)[STRANGER] == []
    assert desks.by_node[FIRST].voter.record(KEY).seq == 0


def test_an_owner_goes_on_with_the_voters_of_a_later_epoch(desks: Desks) -> None:
    token = held(desks).ballot
    owner = desks.by_node[STRANGER]
    desks.away = set(VOTERS)
    owner.write(desks.now, KEY, progress(b"half"))
    desks.settle()
    later = Roster(EPOCH + 1, (FIRST, P))
    owner.adopt(desks.now, later)
    owner.handle_timeout(desks.now)
    asked = posts(owner.take())
    assert set(asked) == {FIRST, P}
    for messages in asked.values():
        assert Accept(KEY, EPOCH + 1, token, 1, progress(b"half")) in messages
        (renew,) = [one for one in messages if isinstance(one, Renew)]
        assert (renew.epoch, renew.leases) == (EPOCH + 1, ((KEY, token),))


def test_a_grant_of_an_earlier_epoch_is_renewed_in_the_later(desks: Desks) -> None:
    granted = desks.claim(STRANGER, KEY, OPEN)
    owner = desks.by_node[STRANGER]
    owner.adopt(desks.now, Roster(EPOCH + 1, (P,)))
    owner.hold(desks.now, KEY, granted)
    owner.handle_timeout(desks.now)
    ((to, (renew,)),) = posts(owner.take()).items()
    assert to == P
    assert isinstance(renew, Renew)
    assert renew.epoch == EPOCH + 1


def test_too_early_and_twice_does_no_harm(desks: Desks) -> None:
    held(desks)
    owner = desks.by_node[STRANGER]
    for _ in range(3):
        owner.handle_timeout(desks.now)
        assert owner.take() == []
    at = owner.next_deadline()
    assert at is not None
    owner.handle_timeout(at)
    assert [type(one) for one in owner.take()] == [Post, Post, Post]
    owner.handle_timeout(at)
    assert owner.take() == []


def test_who_claims_what_it_had_begins_anew(desks: Desks) -> None:
    first = held(desks)
    owner = desks.by_node[STRANGER]
    owner.propose(desks.now, KEY, claiming(STRANGER), "again", 5, as_owner=True)
    second = desks.outcome(STRANGER, "again")
    assert isinstance(second, Chosen)
    assert second.ballot > first.ballot
    assert owner.hold(desks.now, KEY, second) is Hold.SURE
    assert owner.write(desks.now, KEY, progress(b"half")) == 1
    said = desks.wait(20)[STRANGER]
    assert said == [Written(KEY, second.ballot, 1)]
    assert not any(isinstance(one, Done) for one in said)


def test_who_is_named_by_a_creation_is_sure_once_a_majority_has_renewed_that(desks: Desks) -> None:
    named, owner = Value(Standing.LEASED, b"open", Owner(STRANGER, 1)), desks.by_node[STRANGER]
    desks.by_node[FIRST].create(0, KEY, OPEN, "create", 5, first=named, is_new=True)
    token = ballot(0, FIRST)
    assert owner.take_up(0, KEY, named, token) is Hold.DOUBT
    assert set(posts(owner.take())) == set(VOTERS)  # at once, and too early: nothing is durable yet
    desks.settle()
    assert owner.standing(0, KEY) is Hold.DOUBT
    said: list[Event] = []
    for _ in range(3):
        desks.now += 0.1
        owner.handle_timeout(desks.now)
        said += desks.settle()[STRANGER]
    assert changes(said) == [Hold.SURE]
    seq = owner.write(desks.now, KEY, FINAL)
    assert Written(KEY, token, seq) in desks.settle()[STRANGER]
