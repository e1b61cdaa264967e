"""What a first voter creates without asking, and whom such a write may name its owner."""

from mesh.core.ballot import Ballot
from mesh.registers.record import Record
from mesh.registers.voter import Store, Voter
from mesh.wire.register_messages import Accept, Accepted, Leased, Outbid, Promised, Renewed
from tests.unit.registers.asked import (
    EPOCH,
    FINAL,
    KEY,
    OPEN,
    P_HAS,
    TIMES,
    A,
    B,
    P,
    Q,
    accept,
    ballot,
    prepare,
    renew,
    voter,
)

LAPSED_S = TIMES.voter_s + TIMES.grace_s


# Creation without asking.


def test_the_first_voter_creates_what_nobody_has_asked_about() -> None:
    zero = ballot(0, A)
    asked = voter()
    steps = asked.create(0, KEY, 1, OPEN)
    assert steps == [
        Store(KEY, Record(zero, zero, 0, OPEN)),
        Accepted(KEY, EPOCH, zero, 0),
    ]


def test_it_does_not_create_where_it_holds_a_promise_or_a_record_or_votes_in_no_epoch() -> None:
    promised, accepted = voter(), voter()
    promised.handle(0, prepare(1))
    accepted.handle(0, accept(1, OPEN))
    for asked in (promised, accepted, voter(epoch=0)):
        before = asked.record(KEY)
        assert asked.create(0, KEY, 1, OPEN) is None
        assert asked.record(KEY) is before


def test_it_does_not_create_again_after_a_restart() -> None:
    asked = voter()
    asked.create(0, KEY, 1, OPEN)
    assert voter(record=asked.record(KEY)).create(0, KEY, 1, OPEN) is None


def test_others_refuse_a_creation_where_they_hold_anything_even_from_an_earlier_epoch() -> None:
    zero = Accept(KEY, EPOCH, ballot(0, B), 0, OPEN)
    earlier = Ballot(1, EPOCH - 1, 7, P)
    for record in (Record(promised=earlier), Record(earlier, earlier, 0, FINAL)):
        asked = voter(record=record)
        assert asked.handle(0, zero) == [Outbid(KEY, zero.ballot, earlier)]
        assert asked.record(KEY) == record


def test_a_copy_of_a_creation_is_answered_again() -> None:
    asked, zero = voter(), Accept(KEY, EPOCH, ballot(0, B), 0, OPEN)
    first, again = asked.handle(0, zero)[1:], asked.handle(0, zero)
    assert first == again == [Accepted(KEY, EPOCH, ballot(0, B), 0)]


# Creation that names an owner.


def named_voter() -> Voter:
    """Return a voter that has accepted a creation, by B, that names P its owner."""
    asked = voter()
    asked.handle(0, accept(0, P_HAS, node=B))
    return asked


def test_a_creation_that_names_an_owner_is_in_nobodys_way_before_it_is_renewed() -> None:
    asked = named_voter()
    assert asked.record(KEY).is_named
    assert asked.remaining_s(0, KEY) is None
    assert isinstance(asked.handle(0, prepare(9, Q))[1], Promised)
    assert asked.handle(0, renew(0, B)) == [Renewed(EPOCH, 1, (), ())]


def test_who_is_named_has_its_lease_once_it_is_renewed() -> None:
    asked = named_voter()
    assert asked.handle(1, renew(0, B)) == [Renewed(EPOCH, 1, (0,), ())]
    assert asked.remaining_s(1, KEY) == LAPSED_S
    assert isinstance(asked.handle(1, prepare(9, Q))[0], Leased)


def test_a_voter_that_starts_again_cannot_know_whether_a_naming_was_renewed() -> None:
    again = voter(record=named_voter().record(KEY))
    assert again.remaining_s(0, KEY) == LAPSED_S


def test_what_its_owner_wrote_is_named_no_more() -> None:
    asked = named_voter()
    asked.handle(0, accept(0, P_HAS, node=B, seq=1))
    assert not asked.record(KEY).is_named
    assert asked.remaining_s(0, KEY) == LAPSED_S


def test_a_creation_that_comes_after_what_its_owner_wrote_is_there_already() -> None:
    asked = voter()
    asked.handle(0, accept(0, FINAL, node=B, seq=1))
    before = asked.record(KEY)
    assert asked.handle(0, accept(0, P_HAS, node=B)) == [Accepted(KEY, EPOCH, ballot(0, B), 0)]
    assert asked.record(KEY) is before
    asked.handle(0, prepare(9, Q))
    assert isinstance(asked.handle(0, accept(0, P_HAS, node=B))[0], Outbid)
