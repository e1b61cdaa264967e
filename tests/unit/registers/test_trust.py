"""An owner's trust: from before it asked, for as long as a majority's answer allows, and never longer."""

import pytest

from mesh.registers.trust import ROUNDS_MAX, Hold, Trust
from tests.unit.registers.asked import EPOCH, STRANGER, TIMES, VOTERS, A, B, C, ballot

TOKEN = ballot(5)
LOST_AT = TIMES.owner_s + TIMES.doubt_s


def _granted(sent_at: float | None = 0.0) -> Trust:
    return Trust(TOKEN, TIMES, sent_at)


def _renewed(trust: Trust, number: int, sent_at: float, *voters: object) -> None:
    trust.begin(sent_at, number, EPOCH, VOTERS)
    for voter in VOTERS:
        if voter in voters:
            trust.renewed(voter, number, EPOCH)


def test_a_grant_is_trusted_from_before_it_was_asked_for() -> None:
    trust = _granted(sent_at=3)
    assert trust.hold(12.999) is Hold.SURE
    assert trust.hold(13) is Hold.DOUBT


def test_a_grant_that_comes_too_late_begins_in_doubt() -> None:
    trust = _granted(sent_at=0)
    assert trust.hold(11) is Hold.DOUBT
    _renewed(trust, 1, 11, A, B)
    assert trust.hold(12) is Hold.SURE


def test_what_was_given_without_asking_is_in_doubt_until_a_renewal_of_its_own_is_answered() -> None:
    trust = _granted(sent_at=None)
    assert trust.hold(5) is Hold.DOUBT
    trust.begin(5, 1, EPOCH, VOTERS)
    assert trust.hold(5) is Hold.DOUBT
    trust.renewed(A, 1, EPOCH)
    trust.renewed(C, 1, EPOCH)
    assert trust.hold(14.9) is Hold.SURE
    assert trust.hold(15) is Hold.DOUBT


def test_what_was_given_without_asking_is_given_up_after_as_long_a_doubt() -> None:
    trust = _granted(sent_at=None)
    trust.begin(5, 1, EPOCH, VOTERS)
    assert trust.given_up_at == 5 + TIMES.doubt_s


def test_a_round_is_trusted_from_before_it_was_sent_however_late_the_answers() -> None:
    trust = _granted()
    _renewed(trust, 1, 4, A, B)
    assert trust.trusted_until == 14


def test_less_than_a_majority_renews_nothing() -> None:
    trust = _granted()
    _renewed(trust, 1, 4, B)
    trust.renewed(B, 1, EPOCH)
    assert trust.trusted_until == 10


def test_strangers_and_answers_of_another_epoch_do_not_count() -> None:
    trust = _granted()
    _renewed(trust, 1, 4, A)
    trust.renewed(STRANGER, 1, EPOCH)
    trust.renewed(B, 1, EPOCH + 1)
    assert trust.trusted_until == 10


def test_answers_to_two_rounds_are_not_counted_together() -> None:
    trust = _granted()
    _renewed(trust, 1, 4, A)
    _renewed(trust, 2, 6, B)
    assert trust.trusted_until == 10


def test_rounds_overlap_and_an_older_one_takes_nothing_back() -> None:
    trust = _granted()
    trust.begin(2, 1, EPOCH, VOTERS)
    trust.begin(4, 2, EPOCH, VOTERS)
    for number in (2, 1):
        trust.renewed(A, number, EPOCH)
        trust.renewed(B, number, EPOCH)
    assert trust.trusted_until == 14


def test_an_answer_to_a_round_that_was_never_sent_is_nothing() -> None:
    trust = _granted()
    for voter in VOTERS:
        trust.renewed(voter, 3, EPOCH)
    assert trust.trusted_until == 10


def test_a_late_answer_to_an_old_round_is_not_trusted_any_more() -> None:
    trust = _granted()
    _renewed(trust, 1, 2, A)
    assert trust.hold(12) is Hold.DOUBT
    trust.renewed(B, 1, EPOCH)
    assert trust.hold(12) is Hold.DOUBT


def test_only_so_many_rounds_are_waited_for() -> None:
    trust = _granted()
    for number in range(1, ROUNDS_MAX + 2):
        _renewed(trust, number, number, A)
    trust.renewed(B, 1, EPOCH)
    assert trust.trusted_until == 10
    trust.renewed(B, 2, EPOCH)
    assert trust.trusted_until == 12


def test_doubt_ends_with_an_answer_or_as_lost_for_good() -> None:
    trust = _granted()
    assert trust.given_up_at == LOST_AT
    assert trust.hold(LOST_AT - 0.001) is Hold.DOUBT
    assert trust.hold(LOST_AT) is Hold.LOST
    _renewed(trust, 1, LOST_AT, A, B)
    assert trust.hold(LOST_AT) is Hold.LOST


def test_whoever_was_outbid_has_lost_for_good_even_while_it_trusted() -> None:
    trust = _granted()
    trust.outbid(ballot(6))
    assert trust.hold(1) is Hold.LOST
    _renewed(trust, 1, 1, A, B)
    assert trust.hold(1) is Hold.LOST


@pytest.mark.parametrize("n", [4, 5])
def test_a_ballot_that_is_not_higher_outbids_nobody(n: int) -> None:
    trust = _granted()
    trust.outbid(ballot(n))
    assert trust.hold(1) is Hold.SURE


def test_one_voter_alone_is_a_majority_and_two_need_each_other() -> None:
    one, two = _granted(), _granted()
    one.begin(5, 1, EPOCH, [A])
    one.renewed(A, 1, EPOCH)
    two.begin(5, 1, EPOCH, [A, B])
    two.renewed(A, 1, EPOCH)
    assert (one.trusted_until, two.trusted_until) == (15, 10)
    two.renewed(B, 1, EPOCH)
    assert two.trusted_until == 15
