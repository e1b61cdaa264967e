"""A voter takes what another has shipped, and drops what is over; nothing old finds a way in after that."""

import pytest

from mesh.core.ids import NodeId
from mesh.registers.record import Record
from mesh.registers.roster import successor_key
from mesh.registers.voter import Forget, Store, StoreEpoch, Voter
from mesh.wire.register_messages import Accept, Accepted, Outbid, Renewed
from tests.unit.registers.asked import (
    EPOCH,
    FINAL,
    KEY,
    OPEN,
    P_HAS,
    Q_HAS,
    TIMES,
    A,
    B,
    Q,
    accept,
    ballot,
    leased_voter,
    prepare,
    renew,
    voter,
)

LAPSED_S = TIMES.voter_s + TIMES.grace_s


def test_what_is_shipped_is_taken_where_less_is_held() -> None:
    asked = voter(record=Record(ballot(3), ballot(1), 0, OPEN))
    (stored,) = asked.fill(KEY, ballot(3), 2, FINAL)
    assert stored == Store(KEY, Record(ballot(3), ballot(3), 2, FINAL))


@pytest.mark.parametrize(("n", "seq"), [(2, 5), (3, 1), (3, 2)])
def test_what_is_shipped_changes_nothing_where_as_much_is_held(n: int, seq: int) -> None:
    asked = voter(record=Record(ballot(3), ballot(3), 2, OPEN))
    assert asked.fill(KEY, ballot(n), seq, FINAL) == []


def test_what_is_shipped_is_not_taken_below_a_promise() -> None:
    asked = voter(record=Record(ballot(4), ballot(1), 0, OPEN))
    assert asked.fill(KEY, ballot(3), 0, FINAL) == []
    assert asked.record(KEY).value == OPEN


def test_what_is_shipped_arms_no_lease_but_its_owner_may_renew_it() -> None:
    asked = voter()
    asked.fill(KEY, ballot(5), 0, P_HAS)
    assert asked.remaining_s(0, KEY) is None
    (answer,) = asked.handle(1, renew(5))
    assert answer == Renewed(EPOCH, 1, (0,), ())
    assert asked.remaining_s(1, KEY) == LAPSED_S
    asked.check_invariants()


def test_what_is_shipped_leaves_the_lease_of_its_own_ballot_as_it_is() -> None:
    asked = leased_voter()
    asked.fill(KEY, ballot(5), 3, P_HAS)
    assert asked.remaining_s(1, KEY) == LAPSED_S - 1
    asked.fill(KEY, ballot(6, Q), 0, Q_HAS)
    assert asked.remaining_s(1, KEY) is None, "nobody's trust rests on it"
    asked.check_invariants()


def test_what_is_purged_is_gone_and_its_numbers_begin_nothing_any_more() -> None:
    asked = voter(record=Record(ballot(7), ballot(5), 1, FINAL))
    assert asked.purge((KEY, b"unknown"), 7) == [Forget((KEY,), 7)]
    assert not asked.holds(KEY)
    for request in (prepare(7), prepare(6), accept(7, OPEN), accept(5, OPEN, seq=4)):
        (answer,) = asked.handle(0, request)
        assert isinstance(answer, Outbid)
        assert answer.promised > ballot(7, NodeId(1 << 63))
    assert not asked.holds(KEY)
    store, _ = asked.handle(0, prepare(8))
    assert store == Store(KEY, Record(ballot(8)))


def test_a_purge_that_changes_nothing_stores_nothing() -> None:
    asked = voter()
    assert asked.purge((), 7) == [Forget((), 7)]
    assert asked.purge((KEY,), 6) == []
    assert asked.purged_n == 7


def test_numbers_of_what_was_purged_begin_nothing_after_a_restart() -> None:
    asked = Voter(A, TIMES, epoch=EPOCH, purged_n=7, now=0.0)
    (answer,) = asked.handle(0, accept(7, OPEN))
    assert isinstance(answer, Outbid)


def test_what_is_old_is_not_taken_where_the_register_was_made_anew() -> None:
    asked = voter()
    asked.purge((), 7)
    asked.handle(0, Accept(KEY, EPOCH, ballot(0, B), 0, OPEN))
    for request in (accept(5, Q_HAS, seq=3), prepare(5), accept(5, Q_HAS)):
        (answer,) = asked.handle(0, request)
        assert isinstance(answer, Outbid)
    assert asked.record(KEY) == Record(ballot(0, B), ballot(0, B), 0, OPEN)


def test_who_was_promised_or_accepted_before_a_purge_goes_on() -> None:
    asked = voter(record=Record(ballot(6), ballot(5), 1, OPEN))
    asked.purge((), 7)
    assert asked.handle(0, accept(6, P_HAS))[1] == Accepted(KEY, EPOCH, ballot(6), 0)
    assert asked.handle(0, accept(6, FINAL, seq=1))[1] == Accepted(KEY, EPOCH, ballot(6), 1)


def test_who_was_named_by_a_creation_that_is_purged_writes_nothing_into_the_one_made_anew() -> None:
    asked, zero = voter(), ballot(0, B)
    asked.handle(0, Accept(KEY, EPOCH, zero, 0, P_HAS))
    asked.handle(LAPSED_S, accept(7, FINAL))
    asked.purge((KEY,), 7)
    made_anew = Accept(KEY, EPOCH, zero, 0, OPEN)
    asked.handle(LAPSED_S, made_anew)
    (answer,) = asked.handle(LAPSED_S, Accept(KEY, EPOCH, zero, 1, FINAL))
    assert isinstance(answer, Outbid)
    assert answer.promised > zero
    assert asked.record(KEY).value == OPEN
    assert asked.handle(LAPSED_S, made_anew) == [Accepted(KEY, EPOCH, zero, 0)]


def test_voter_that_installs_drops_what_no_majority_held_but_rosters() -> None:
    roster = successor_key(EPOCH - 1)
    held = Record(ballot(1), ballot(1), 0, FINAL)
    asked = Voter(A, TIMES, epoch=0, now=0.0, records=[(KEY, held), (roster, held)])
    (step,) = asked.install(0, EPOCH + 1, {b"other": (held, False)})
    assert step == StoreEpoch(EPOCH + 1, EPOCH, ((b"other", held),), (KEY,))
    assert not asked.holds(KEY)
    assert asked.holds(roster)
