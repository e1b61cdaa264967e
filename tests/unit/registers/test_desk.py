"""A desk's order: what it asks, answers and creates leaves when what that rests on is durable, and not before."""

import pytest

from mesh.core.ballot import N_MAX, NO_BALLOT
from mesh.errors import LocalProtocolError
from mesh.registers.asker import SET_ASIDE, Done, Exists, Late
from mesh.registers.outbox import Changed, Commit, Post
from mesh.registers.proposal import RESEND_S, Chosen, Refused
from mesh.registers.reading import Seen
from mesh.wire.register_messages import Accept, Accepted, Held, Outbid, Prepare, Promised, Read
from mesh.wire.roster_messages import Roster, Seal, Sealed
from tests.unit.registers.asked import (
    EPOCH,
    KEY,
    OPEN,
    P_HAS,
    STRANGER,
    VOTERS,
    A,
    B,
    P,
    Q,
    accept,
    ballot,
    prepare,
)
from tests.unit.registers.desks import ROSTER, Desks, claiming, desk, posts, three_desks

FIRST, SECOND, THIRD = desk(A).seats(KEY).voters


# Creating.


def test_the_first_voter_stores_a_creation_before_it_sends_it() -> None:
    first = desk(FIRST)
    first.create(0.0, KEY, OPEN, "tag", 5)
    (commit,) = first.take()
    assert isinstance(commit, Commit)
    assert commit.records[0][1].value == OPEN
    first.committed(0.1, commit.number)
    made = ballot(0, FIRST)
    asked = Accept(KEY, EPOCH, made, 0, OPEN)
    outputs = first.take()
    assert posts(outputs) == {SECOND: (asked,), THIRD: (asked,)}
    first.handle(0.2, THIRD, Accepted(KEY, EPOCH, made, 0))
    assert first.take() == [Done("tag", Chosen(OPEN, made, 0.0, is_found=False))]


def test_a_creation_is_not_repeated_before_it_is_stored_either() -> None:
    first = desk(FIRST)
    first.create(0.0, KEY, OPEN, "tag", 5)
    (commit,) = first.take()
    first.handle_timeout(2 * RESEND_S)
    assert first.take() == []
    assert isinstance(commit, Commit)
    first.committed(1.0, commit.number)
    assert set(posts(first.take())) == {SECOND, THIRD}


def test_a_sole_voter_says_that_it_created_when_that_is_durable() -> None:
    sole = desk(A, Roster(EPOCH, (A,)))
    sole.create(0.0, KEY, OPEN, "tag", 5)
    (commit,) = sole.take()
    assert isinstance(commit, Commit)
    sole.committed(0.1, commit.number)
    assert [type(one) for one in sole.take()] == [Changed, Done]


def test_another_voter_asks_before_it_creates() -> None:
    second = desk(SECOND)
    second.create(0.0, KEY, OPEN, "tag", 5)
    outputs = second.take()  # it has answered itself by now, and holds nothing
    assert [type(one) for one in outputs] == [Post, Post]
    assert all(isinstance(one, Read) for (one,) in posts(outputs).values())


@pytest.mark.parametrize("who", [FIRST, SECOND, STRANGER])
def test_whoever_creates_gets_it_and_the_next_is_told_that_it_exists(who: int) -> None:
    desks = Desks({node: desk(node) for node in (*VOTERS, STRANGER)})
    one = next(node for node in desks.by_node if node == who)
    desks.by_node[one].create(0.0, KEY, OPEN, "mine", 5)
    assert isinstance(desks.outcome(one, "mine"), Chosen)
    for other in desks.by_node:
        desks.by_node[other].create(0.0, KEY, P_HAS, "again", 5)
        assert desks.outcome(other, "again") == Exists(OPEN)


def test_a_first_voter_that_has_promised_creates_as_others_do() -> None:
    desks = three_desks()
    desks.by_node[FIRST].handle(0.0, P, prepare(7))
    desks.settle()
    desks.by_node[FIRST].create(0.0, KEY, OPEN, "tag", 5)
    outcome = desks.outcome(FIRST, "tag", seconds=2)
    assert isinstance(outcome, Chosen)
    assert outcome.ballot.n > 0  # two have promised nothing, and it asked all


def test_a_first_voter_that_has_not_installed_the_epoch_creates_as_others_do() -> None:
    first = desk(FIRST, votes_in=0)
    first.create(0.0, KEY, OPEN, "tag", 5)
    assert all(isinstance(one, Read) for (one,) in posts(first.take()).values())


def test_a_sole_voter_whose_disk_takes_too_long_does_not_know_whether_it_created() -> None:
    sole = desk(A, Roster(EPOCH, (A,)))
    sole.create(0.0, KEY, OPEN, "tag", 5)
    assert [type(one) for one in sole.take()] == [Commit]
    sole.handle_timeout(5.0)
    assert sole.take() == [Done("tag", Late(may_be_chosen=True))]


# Asking.


def test_a_prepare_waits_until_its_number_is_set_aside() -> None:
    asker = desk(STRANGER)
    asker.propose(0.0, KEY, claiming(STRANGER), "tag", 5, as_owner=True)
    (commit,) = asker.take()
    assert isinstance(commit, Commit)
    assert commit.numbers[SET_ASIDE] >= 1
    asker.handle_timeout(2 * RESEND_S)
    assert asker.take() == []
    asker.committed(1.0, commit.number)
    asked = prepare(1, STRANGER)
    assert {asked} == {one for messages in posts(asker.take()).values() for one in messages}


def test_a_prepare_under_a_durable_number_waits_for_no_commit() -> None:
    asker = desk(A)
    asker.propose(0.0, KEY, claiming(A), "tag", 5)
    (commit,) = asker.take()
    assert isinstance(commit, Commit)
    asker.committed(0.0, commit.number)
    asker.take()
    asker.handle(0.0, P, prepare(9))  # to be stored
    asker.propose(0.0, b"other", claiming(A), "tag", 5)
    outputs = asker.take()
    assert isinstance(outputs[0], Commit)
    assert all(isinstance(one, Prepare) for (one,) in posts(outputs).values())
    assert set(posts(outputs)) == set(VOTERS) - {A}


def test_two_that_claim_at_once_are_granted_one_after_the_other_or_refused() -> None:
    desks = three_desks()
    desks.by_node[FIRST].create(0.0, KEY, OPEN, "create", 5)
    desks.settle()
    for node in (FIRST, SECOND):
        desks.by_node[node].propose(0.0, KEY, claiming(node), "claim", 5)
    said = desks.wait(5)
    outcomes = [
        one.outcome for node in (FIRST, SECOND) for one in said[node] if isinstance(one, Done)
    ]
    assert sorted(type(one).__name__ for one in outcomes) == ["Chosen", "Refused"]


def test_a_read_finds_what_was_created() -> None:
    desks = three_desks()
    desks.by_node[FIRST].create(0.0, KEY, OPEN, "create", 5)
    desks.settle()
    desks.by_node[THIRD].read(0.0, KEY, "read", 5)
    assert desks.outcome(THIRD, "read") == Seen(OPEN, is_chosen=True, is_known=True)


def test_a_question_that_nobody_answers_ends_in_time() -> None:
    desks = three_desks()
    desks.away = {A, B}
    desks.by_node[A].read(0.0, KEY, "read", 3)
    assert desks.outcome(A, "read", seconds=3) == Late(may_be_chosen=False)
    assert desks.by_node[A].next_deadline() is None


def test_a_number_that_nobody_counted_to_is_not_followed_and_ends_nothing_else() -> None:
    asker = desk(STRANGER)
    asker.propose(0.0, KEY, claiming(STRANGER), "tag", 5, as_owner=True)
    (commit,) = asker.take()
    assert isinstance(commit, Commit)
    asker.committed(0.0, commit.number)
    for voter in (A, B):
        asker.handle(0.0, voter, Outbid(KEY, ballot(1, STRANGER), ballot(N_MAX)))
    asker.take()
    asker.handle_timeout(1.0)
    asked = {one for messages in posts(asker.take()).values() for one in messages}
    assert asked == {prepare(2, STRANGER)}


# Answering.


def test_a_promise_leaves_when_it_is_durable() -> None:
    voter = desk(A)
    voter.handle(0.0, P, prepare(5))
    (commit,) = voter.take()
    assert isinstance(commit, Commit)
    voter.committed(0.0, commit.number)
    ((_, record),) = commit.records
    promised = Promised(KEY, ballot(5), NO_BALLOT, 0, None)
    assert voter.take() == [Post(P, (promised,)), Changed(KEY, record)]


def test_answers_that_store_nothing_wait_for_what_is_being_stored() -> None:
    voter = desk(A)
    voter.handle(0.0, P, accept(5, OPEN))
    (commit,) = voter.take()
    voter.handle(0.0, P, accept(5, OPEN))  # a copy
    voter.handle(0.0, Q, Read(KEY, EPOCH, 1))
    voter.handle(0.0, Q, prepare(4, Q))
    voter.handle(0.0, Q, Read(b"other", EPOCH, 2))
    assert voter.take() == []
    assert isinstance(commit, Commit)
    voter.committed(0.0, commit.number)
    accepted = Accepted(KEY, EPOCH, ballot(5), 0)
    assert posts(voter.take()) == {
        P: (accepted, accepted),
        Q: (
            Held(KEY, EPOCH, 1, ballot(5), 0, OPEN),
            Outbid(KEY, ballot(4, Q), ballot(5)),
            Held(b"other", EPOCH, 2, NO_BALLOT, 0, None),
        ),
    }


def test_many_messages_are_one_commit_and_one_post_a_node() -> None:
    voter = desk(A)
    for n, key in enumerate((b"one", b"two", b"three")):
        voter.handle(0.0, P, Accept(key, EPOCH, ballot(5 + n), 0, OPEN))
    (commit,) = voter.take()
    assert isinstance(commit, Commit)
    assert [key for key, _ in commit.records] == [b"one", b"two", b"three"]
    voter.committed(0.0, commit.number)
    assert [type(one) for one in voter.take()] == [Post, Changed, Changed, Changed]


def test_a_session_that_is_proved_over_has_no_lease() -> None:
    voter = desk(A)
    voter.handle(0.0, P, accept(5, P_HAS))
    assert voter.voter.remaining_s(0.0, KEY) is not None
    voter.end(0.0, P, 1)
    assert voter.voter.remaining_s(0.0, KEY) is None


def test_a_seal_is_answered_when_it_is_durable() -> None:
    voter = desk(A)
    voter.handle(0.0, B, Seal(EPOCH))
    assert voter.take() == [Commit(1, (), {}, (0, EPOCH))]
    voter.committed(0.0, 1)
    assert voter.take() == [Post(B, (Sealed(EPOCH, 0),))]


def test_a_commit_that_was_not_taken_is_no_commit() -> None:
    with pytest.raises(LocalProtocolError, match="at most 0"):
        desk(A).committed(0.0, 1)


# The roster.


def test_without_a_roster_a_question_waits_for_one() -> None:
    desks = three_desks()
    desks.by_node[STRANGER] = desk(STRANGER, None)
    asker = desks.by_node[STRANGER]
    assert asker.roster is None
    asker.create(0.0, KEY, OPEN, "tag", 5)
    asker.propose(0.0, b"other", claiming(STRANGER), "other", 5)
    assert not desks.wait(1)[STRANGER]
    asker.adopt(desks.now, ROSTER)
    done = [one for one in desks.wait(2)[STRANGER] if isinstance(one, Done)]
    assert {one.tag: type(one.outcome) for one in done} == {"tag": Chosen, "other": Refused}


def test_a_question_to_those_who_vote_no_more_goes_on_with_those_who_do() -> None:
    later = Roster(EPOCH + 1, (Q,))
    desks = Desks({STRANGER: desk(STRANGER), Q: desk(Q, later, votes_in=EPOCH + 1)})
    desks.away = set(VOTERS)
    for node in VOTERS:
        desks.by_node[node] = desk(node)
    asker = desks.by_node[STRANGER]
    asker.create(0.0, KEY, OPEN, "tag", 5)
    assert not desks.wait(1)[STRANGER]
    asker.adopt(desks.now, later)
    outcome = desks.outcome(STRANGER, "tag", seconds=1)
    assert isinstance(outcome, Chosen)
    assert outcome.ballot.epoch == EPOCH + 1


def test_a_roster_that_is_not_later_changes_nothing() -> None:
    one = desk(A)
    one.read(0.0, KEY, "tag", 5)
    one.take()
    one.adopt(0.0, Roster(EPOCH, (B,)))
    one.adopt(0.0, Roster(EPOCH - 1, (B,)))
    assert one.roster == ROSTER
    assert one.take() == []
    assert one.seats(KEY).voters == (FIRST, SECOND, THIRD)
    assert one.place(KEY) == (FIRST, SECOND, THIRD).index(A)
