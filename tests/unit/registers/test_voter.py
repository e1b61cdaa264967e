"""A voter: what it promises, accepts and renews, and what it refuses without a trace."""

from dataclasses import replace

import pytest

from mesh.core.ballot import NO_BALLOT
from mesh.registers.record import NOTHING, Record
from mesh.registers.voter import Store
from mesh.wire.register_messages import (
    Accept,
    Accepted,
    Held,
    Leased,
    Outbid,
    Promised,
    Read,
    Renew,
    Renewed,
    Request,
    WrongEpoch,
)
from mesh.wire.roster_messages import Fetch, Seal, SealRequest
from tests.unit.registers.asked import (
    EPOCH,
    FINAL,
    KEY,
    OPEN,
    P_HAS,
    Q_HAS,
    TIMES,
    P,
    Q,
    accept,
    ballot,
    leased_voter,
    prepare,
    renew,
    voter,
)

LAPSED_S = TIMES.voter_s + TIMES.grace_s
"""So long after it was armed a lease is over."""


# Promises.


def test_a_promise_is_stored_before_it_is_given_and_tells_what_was_accepted() -> None:
    asked = voter()
    asked.handle(0, accept(1, OPEN))
    store, answer = asked.handle(0, prepare(2))
    assert store == Store(KEY, Record(ballot(2), ballot(1), 0, OPEN))
    assert answer == Promised(KEY, ballot(2), ballot(1), 0, OPEN)


def test_a_promise_about_nothing_tells_of_no_value() -> None:
    _, answer = voter().handle(0, prepare(1))
    assert answer == Promised(KEY, ballot(1), NO_BALLOT, 0, None)


@pytest.mark.parametrize("n", [1, 2])
def test_a_ballot_not_above_the_promise_is_outbid_and_leaves_no_trace(n: int) -> None:
    asked = voter()
    asked.handle(0, prepare(2))
    before = asked.record(KEY)
    assert asked.handle(0, prepare(n)) == [Outbid(KEY, ballot(n), ballot(2))]
    assert asked.record(KEY) == before


def test_a_ballot_not_above_the_accepted_one_is_outbid() -> None:
    asked = voter()
    asked.handle(0, accept(2, OPEN))
    assert asked.handle(0, prepare(2)) == [Outbid(KEY, ballot(2), ballot(2))]


def test_nobody_is_promised_in_another_epoch() -> None:
    asked = voter()
    for epoch in (EPOCH - 1, EPOCH + 1):
        answer = WrongEpoch(KEY, ballot(1, epoch=epoch), EPOCH)
        assert asked.handle(0, prepare(1, epoch=epoch)) == [answer]
    assert asked.record(KEY) is NOTHING


def test_a_voter_of_no_epoch_says_so() -> None:
    assert voter(epoch=0).handle(0, prepare(1)) == [WrongEpoch(KEY, ballot(1), 0)]


# Leases.


@pytest.mark.parametrize(
    "asks",
    [prepare(7, epoch=0), accept(7, FINAL, epoch=0, seq=1), renew(5, epoch=0)],
)
def test_a_voter_that_has_sealed_is_asked_nothing_in_epoch_0(asks: Request) -> None:
    asked = leased_voter()
    asked.seal(1, Seal(EPOCH))
    before, left_s = asked.record(KEY), asked.remaining_s(2, KEY)
    (answer,) = asked.handle(2, asks)
    assert isinstance(answer, WrongEpoch | Renewed)
    assert not isinstance(answer, Renewed) or not answer.renewed
    assert (asked.record(KEY), asked.remaining_s(2, KEY)) == (before, left_s)


@pytest.mark.parametrize("asks", [Seal(0), Fetch(0, b"")])
def test_nobody_seals_epoch_0_for_what_is_sealed_stays_so(asks: SealRequest) -> None:
    asked = voter()
    assert asked.seal(0, asks) == []
    asked.seal(0, Seal(EPOCH))
    assert asked.seal(0, asks) == []
    assert asked.sealed == EPOCH


def test_while_anothers_lease_lives_nobody_is_promised_and_no_trace_is_left() -> None:
    asked = leased_voter()
    before = asked.record(KEY)
    assert asked.handle(4, prepare(9, Q)) == [Leased(KEY, ballot(9, Q), LAPSED_S - 4)]
    assert asked.record(KEY) == before
    assert asked.handle(4, renew(5)) == [Renewed(EPOCH, 1, (0,), ())]


def test_a_lease_lives_until_its_timer_and_the_grace_have_run_out() -> None:
    asked = leased_voter()
    assert isinstance(asked.handle(LAPSED_S - 0.001, prepare(9, Q))[0], Leased)
    assert isinstance(asked.handle(LAPSED_S, prepare(9, Q))[1], Promised)


def test_its_own_lease_is_in_nobodys_way() -> None:
    assert isinstance(leased_voter().handle(1, prepare(9))[1], Promised)


def test_the_lease_of_its_own_earlier_session_is() -> None:
    assert isinstance(leased_voter().handle(1, prepare(9, boot=2))[0], Leased)


def test_a_renewal_arms_the_lease_anew() -> None:
    asked = leased_voter()
    asked.handle(10, renew(5))
    assert asked.remaining_s(10, KEY) == LAPSED_S


def test_a_lapsed_lease_revives_while_nobody_was_promised() -> None:
    asked = leased_voter()
    assert asked.remaining_s(100, KEY) is None
    assert asked.handle(100, renew(5, round_=7)) == [Renewed(EPOCH, 7, (0,), ())]
    assert asked.remaining_s(100, KEY) == LAPSED_S


def test_after_a_promise_no_renewal_arms() -> None:
    asked = leased_voter()
    asked.handle(100, prepare(9, Q))
    assert asked.handle(100, renew(5)) == [Renewed(EPOCH, 1, (), ())]
    assert asked.remaining_s(100, KEY) is None


def test_whose_lease_was_accepted_over_hears_by_whom() -> None:
    asked = leased_voter()
    asked.handle(100, accept(9, Q_HAS, node=Q))
    assert asked.handle(100, renew(5)) == [Renewed(EPOCH, 1, (), ((0, ballot(9, Q)),))]


def test_a_renewal_under_another_token_or_of_nothing_is_not_answered_as_one() -> None:
    asked = leased_voter()
    assert asked.handle(1, renew(6)) == [Renewed(EPOCH, 1, (), ())]
    assert voter().handle(1, renew(5)) == [Renewed(EPOCH, 1, (), ())]


def test_nothing_is_renewed_in_another_epoch() -> None:
    asked = leased_voter()
    assert asked.handle(10, renew(5, epoch=EPOCH + 1)) == [Renewed(EPOCH, 1, (), ())]
    assert asked.remaining_s(10, KEY) == LAPSED_S - 10


def test_leases_in_one_renewal_are_answered_by_their_places() -> None:
    asked = leased_voter()
    asked.handle(0, Accept(b"b", EPOCH, ballot(7, Q), 0, Q_HAS))
    leases = ((b"none", ballot(5)), (b"b", ballot(5)), (KEY, ballot(5)))
    answer = Renewed(EPOCH, 1, (2,), ((1, ballot(7, Q)),))
    assert asked.handle(1, Renew(EPOCH, 1, leases)) == [answer]


def test_what_is_not_leased_any_more_holds_nobody_up() -> None:
    asked = leased_voter()
    asked.handle(1, accept(5, OPEN, seq=1))
    assert asked.remaining_s(1, KEY) is None
    assert isinstance(asked.handle(1, prepare(9, Q))[1], Promised)


def test_a_write_of_the_owner_arms_its_lease() -> None:
    asked = leased_voter()
    asked.handle(10, accept(5, replace(P_HAS, body=b"half"), seq=1))
    assert asked.remaining_s(10, KEY) == LAPSED_S


# Restarts.


def test_a_voter_that_restarts_arms_what_it_had_accepted_in_full() -> None:
    again = voter(now=1000, record=leased_voter().record(KEY))
    assert again.remaining_s(1000, KEY) == LAPSED_S


def test_it_arms_no_lease_that_somebody_was_promised_over() -> None:
    record = replace(leased_voter().record(KEY), promised=ballot(9, Q))
    assert voter(now=1000, record=record).remaining_s(1000, KEY) is None


@pytest.mark.parametrize("value", [OPEN, FINAL])
def test_it_arms_nothing_that_is_not_leased(value: object) -> None:
    asked = voter()
    asked.handle(0, accept(1, OPEN if value is OPEN else FINAL))
    assert voter(now=9, record=asked.record(KEY)).remaining_s(9, KEY) is None


# Accepts.


def test_an_accept_is_stored_before_it_is_answered() -> None:
    store, answer = voter().handle(0, accept(1, OPEN))
    assert store == Store(KEY, Record(ballot(1), ballot(1), 0, OPEN))
    assert answer == Accepted(KEY, EPOCH, ballot(1), 0)


def test_an_accept_below_the_promise_is_refused() -> None:
    asked = voter()
    asked.handle(0, prepare(2))
    assert asked.handle(0, accept(1, OPEN)) == [Outbid(KEY, ballot(1), ballot(2))]
    assert asked.record(KEY).value is None


def test_an_accept_of_the_promised_ballot_is_taken() -> None:
    asked = voter()
    asked.handle(0, prepare(2))
    assert asked.handle(0, accept(2, OPEN))[1] == Accepted(KEY, EPOCH, ballot(2), 0)


def test_an_accept_raises_the_promise() -> None:
    asked = voter()
    asked.handle(0, accept(3, OPEN))
    assert asked.handle(0, prepare(2)) == [Outbid(KEY, ballot(2), ballot(3))]


def test_a_copy_is_answered_again_and_stores_nothing() -> None:
    asked = leased_voter()
    assert asked.handle(9, accept(5, P_HAS)) == [Accepted(KEY, EPOCH, ballot(5), 0)]
    assert asked.remaining_s(9, KEY) == LAPSED_S - 9


def test_a_copy_of_an_earlier_write_does_not_undo_a_later_one() -> None:
    asked = leased_voter()
    asked.handle(1, accept(5, FINAL, seq=2))
    for seq in (0, 1):
        assert asked.handle(2, accept(5, P_HAS, seq=seq)) == [Outbid(KEY, ballot(5), ballot(5))]
    assert asked.record(KEY).value == FINAL


def test_a_later_write_reaches_a_voter_that_missed_the_earlier_ones() -> None:
    assert voter().handle(0, accept(5, FINAL, seq=3))[1] == Accepted(KEY, EPOCH, ballot(5), 3)


def test_a_result_counts_after_its_lease_has_lapsed_while_nobody_was_promised() -> None:
    asked = leased_voter()
    assert isinstance(asked.handle(1000, accept(5, FINAL, seq=1))[1], Accepted)


def test_a_first_write_is_accepted_in_its_own_epoch_alone() -> None:
    asked = voter(epoch=EPOCH + 1)
    wrong = [WrongEpoch(KEY, ballot(5), EPOCH + 1)]
    assert asked.handle(0, accept(5, OPEN)) == wrong
    assert asked.handle(0, accept(5, OPEN, epoch=EPOCH + 1)) == wrong
    assert asked.record(KEY) is NOTHING


def test_a_later_write_goes_on_in_the_next_epoch_and_counts_there() -> None:
    asked = voter(record=Record(ballot(5), ballot(5), 0, P_HAS), epoch=EPOCH + 1)
    answer = asked.handle(0, accept(5, FINAL, seq=1, epoch=EPOCH + 1))[1]
    assert answer == Accepted(KEY, EPOCH + 1, ballot(5), 1)


def test_a_later_write_begins_nothing_in_the_next_epoch_where_its_grant_was_not_installed() -> None:
    asked = voter(epoch=EPOCH + 1)
    (answer,) = asked.handle(0, accept(5, FINAL, seq=1, epoch=EPOCH + 1))
    assert isinstance(answer, Outbid)
    assert answer.promised > ballot(5)
    assert not asked.holds(KEY)


# Sessions that are over.


def test_the_proof_that_a_session_is_over_ends_its_lease_at_once_and_for_good() -> None:
    asked = leased_voter()
    asked.end(P, 1)
    assert asked.remaining_s(0, KEY) is None
    assert asked.handle(0, renew(5)) == [Renewed(EPOCH, 1, (), ())]
    asked.handle(0, accept(5, P_HAS, seq=1))
    assert isinstance(asked.handle(0, prepare(9, Q))[1], Promised)


def test_the_proof_ends_no_lease_of_a_later_session_or_another_node() -> None:
    asked = leased_voter()
    asked.end(P, 0)
    asked.end(Q, 9)
    assert asked.remaining_s(0, KEY) == LAPSED_S


def test_an_older_proof_does_not_undo_a_newer_one() -> None:
    asked = voter()
    asked.end(P, 1)
    asked.end(P, 0)
    asked.handle(0, accept(5, P_HAS))
    assert asked.remaining_s(0, KEY) is None


# Reads.


def test_a_read_tells_what_was_accepted_and_changes_nothing() -> None:
    asked = leased_voter()
    asked.handle(100, prepare(9, Q))
    before = asked.record(KEY)
    held = Held(KEY, EPOCH, 77, ballot(5), 0, P_HAS)
    assert asked.handle(100, Read(KEY, EPOCH, 77)) == [held]
    assert asked.record(KEY) == before


def test_a_read_in_another_epoch_is_told_so() -> None:
    assert voter().handle(0, Read(KEY, 1, 77)) == [WrongEpoch(KEY, NO_BALLOT, EPOCH)]


def test_registers_are_apart_from_each_other() -> None:
    asked = leased_voter()
    assert isinstance(asked.handle(0, replace(prepare(1, Q), key=b"other"))[1], Promised)
    assert dict(asked).keys() == {KEY, b"other"}
    assert len(asked) == 2
    asked.check_invariants()
