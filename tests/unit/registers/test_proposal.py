"""One ballot at one register: what a majority of promises leads to, and a majority of acceptances."""

import pytest

from mesh.core.ballot import NO_BALLOT, Ballot
from mesh.core.ids import NodeId
from mesh.registers.proposal import (
    RESEND_S,
    RESEND_S_MAX,
    Chosen,
    Proposal,
    Reason,
    Refused,
    Result,
    majority,
)
from mesh.wire.register_messages import (
    Accept,
    Accepted,
    Answer,
    Held,
    Leased,
    Outbid,
    Prepare,
    Promised,
    Value,
    WrongEpoch,
)
from tests.unit.registers.asked import (
    EPOCH,
    FINAL,
    KEY,
    OPEN,
    P_HAS,
    Q_HAS,
    STRANGER,
    VOTERS,
    A,
    B,
    C,
    Q,
    ballot,
)

OWN = ballot(5)


def _claim(found: Value | None) -> Value | None:
    return None if found is None else P_HAS


def _create(found: Value | None) -> Value | None:
    return OPEN if found is None else found


def _asked(*, create: bool = False, voters: tuple[NodeId, ...] = VOTERS) -> Proposal:
    change = _create if create else _claim
    proposal = Proposal(key=KEY, ballot=OWN, boot=1, voters=voters, change=change)
    proposal.start(0)
    return proposal


def _promised(value: Value | None = OPEN, accepted: Ballot | None = None, seq: int = 0) -> Promised:
    known = accepted or (NO_BALLOT if value is None else ballot(1))
    return Promised(KEY, OWN, known, seq, value)


def _accepting(at: float = 3) -> Proposal:
    """Return a proposal that A and B have promised, and that has sent its accept."""
    proposal = _asked()
    proposal.handle(1, A, _promised())
    assert proposal.handle(at, B, _promised())
    return proposal


ACCEPTED = Accepted(KEY, EPOCH, OWN, 0)
LEASED = Leased(KEY, OWN, 9.5)
WRONG = WrongEpoch(KEY, OWN, EPOCH + 1)


def _result(proposal: Proposal) -> Result | None:
    return proposal.result


def _outbid(n: int = 7) -> Outbid:
    return Outbid(KEY, OWN, ballot(n, Q))


# Promises.


def test_it_asks_all_voters_for_their_promise() -> None:
    proposal = Proposal(key=KEY, ballot=OWN, boot=3, voters=VOTERS, change=_claim)
    assert proposal.start(0) == [(voter, Prepare(KEY, OWN, 3)) for voter in VOTERS]


def test_a_majority_of_promises_sends_the_changed_value_to_all() -> None:
    proposal = _asked()
    assert proposal.handle(1, C, _promised()) == []
    sent = proposal.handle(1, A, _promised())
    assert sent == [(voter, Accept(KEY, EPOCH, OWN, 0, P_HAS)) for voter in VOTERS]
    assert proposal.is_accepting
    assert proposal.handle(1, B, _promised()) == []


def test_one_voter_twice_is_no_majority() -> None:
    proposal = _asked()
    proposal.handle(1, A, _promised())
    assert proposal.handle(1, A, _promised()) == []
    assert not proposal.is_accepting


@pytest.mark.parametrize("late", [False, True])
def test_it_goes_on_from_the_latest_that_was_accepted(late: bool) -> None:
    answers = [_promised(Q_HAS, ballot(2), 0), _promised(OPEN, ballot(2), 3)]
    proposal = _asked(create=True)
    for voter, answer in zip((A, B), reversed(answers) if late else answers, strict=True):
        sent = proposal.handle(1, voter, answer)
    assert {request for _, request in sent} == {Accept(KEY, EPOCH, OWN, 0, OPEN)}


def test_a_higher_ballot_outweighs_a_higher_seq() -> None:
    proposal = _asked(create=True)
    proposal.handle(1, A, _promised(FINAL, ballot(3), 0))
    sent = proposal.handle(1, B, _promised(OPEN, ballot(2), 9))
    assert sent[0][1] == Accept(KEY, EPOCH, OWN, 0, FINAL)


def test_what_nobody_has_is_shown_as_nothing() -> None:
    proposal = _asked(create=True)
    proposal.handle(1, A, _promised(None))
    assert proposal.handle(1, B, _promised(None))[0][1] == Accept(KEY, EPOCH, OWN, 0, OPEN)


def test_with_nothing_to_write_it_ends_and_tells_what_it_was_shown() -> None:
    proposal = _asked()
    proposal.handle(1, A, _promised(None))
    assert proposal.handle(1, B, _promised(None)) == []
    assert proposal.result == Refused(Reason.UNCHANGED, found=None)
    assert not proposal.is_accepting


def test_a_final_value_is_written_back_as_it_is_and_never_shown() -> None:
    def change(found: Value | None) -> Value | None:
        raise AssertionError(found)

    proposal = Proposal(key=KEY, ballot=OWN, boot=1, voters=VOTERS, change=change)
    proposal.start(0)
    proposal.handle(1, A, _promised(FINAL, ballot(2), 4))
    assert proposal.handle(1, B, _promised())[0][1] == Accept(KEY, EPOCH, OWN, 0, FINAL)
    proposal.handle(2, A, ACCEPTED)
    proposal.handle(2, B, ACCEPTED)
    assert proposal.result == Chosen(FINAL, OWN, 1, is_found=True)


# Acceptances.


def test_a_majority_of_acceptances_is_chosen_from_before_it_was_sent() -> None:
    proposal = _accepting(at=3)
    proposal.handle(8, C, ACCEPTED)
    proposal.handle(8, C, ACCEPTED)
    assert _result(proposal) is None
    proposal.handle(9, A, ACCEPTED)
    assert proposal.result == Chosen(P_HAS, OWN, 3, is_found=False)


def test_an_accept_that_was_sent_again_is_trusted_from_its_first_sending() -> None:
    proposal = _accepting(at=3)
    assert proposal.handle_timeout(4)
    for voter in VOTERS:
        proposal.handle(5, voter, ACCEPTED)
    assert isinstance(proposal.result, Chosen)
    assert proposal.result.sent_at == 3


@pytest.mark.parametrize(
    "answer",
    [
        Accepted(KEY, EPOCH + 1, OWN, 0),
        Accepted(KEY, EPOCH, OWN, 1),
        Accepted(KEY, EPOCH, ballot(6), 0),
        Accepted(KEY, EPOCH, ballot(5, Q), 0),
        Accepted(b"other", EPOCH, OWN, 0),
        Held(KEY, EPOCH, 1, OWN, 0, P_HAS),
    ],
)
def test_an_acceptance_of_anything_else_does_not_count(answer: Answer) -> None:
    proposal = _accepting()
    proposal.handle(4, A, ACCEPTED)
    proposal.handle(4, B, answer)
    assert _result(proposal) is None


def test_strangers_neither_promise_nor_accept_nor_refuse() -> None:
    proposal = _asked()
    proposal.handle(1, A, _promised())
    assert proposal.handle(1, STRANGER, _promised()) == []
    proposal.handle(1, B, _outbid())
    proposal.handle(1, STRANGER, _outbid())
    assert _result(proposal) is None
    assert proposal.handle(1, C, _promised())
    proposal.handle(1, A, ACCEPTED)
    proposal.handle(1, STRANGER, ACCEPTED)
    assert _result(proposal) is None


def test_an_acceptance_before_anything_was_sent_is_nothing() -> None:
    proposal = _asked()
    for voter in VOTERS:
        proposal.handle(1, voter, ACCEPTED)
    assert _result(proposal) is None


def test_after_the_result_nothing_is_taken_or_sent() -> None:
    proposal = _asked()
    proposal.handle(1, A, _outbid())
    proposal.handle(1, B, _outbid())
    result = proposal.result
    for voter in VOTERS:
        assert proposal.handle(1, voter, _promised()) == []
    assert proposal.result is result
    assert proposal.next_deadline() is None
    assert proposal.handle_timeout(99) == []


# Refusals.


def test_one_refusal_of_three_does_not_end_it() -> None:
    proposal = _asked()
    proposal.handle(1, A, _outbid())
    assert _result(proposal) is None
    proposal.handle(1, B, _promised())
    assert proposal.handle(1, C, _promised())


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ((LEASED, LEASED), Refused(Reason.LEASED, remaining_s=9.5)),
        ((LEASED, Leased(KEY, OWN, 12)), Refused(Reason.LEASED, remaining_s=12)),
        ((_outbid(7), _outbid(9)), Refused(Reason.OUTBID, above=ballot(9, Q))),
        ((LEASED, _outbid(7)), Refused(Reason.OUTBID, remaining_s=9.5, above=ballot(7, Q))),
        ((WRONG, WrongEpoch(KEY, OWN, 9)), Refused(Reason.WRONG_EPOCH, epoch=9)),
        ((WRONG, _outbid(7)), Refused(Reason.WRONG_EPOCH, above=ballot(7, Q), epoch=EPOCH + 1)),
    ],
)
def test_when_a_majority_is_out_of_reach_it_says_why(
    answers: tuple[Answer, Answer], expected: Refused
) -> None:
    proposal = _asked()
    proposal.handle(1, A, answers[0])
    assert _result(proposal) is None
    proposal.handle(1, B, answers[1])
    assert proposal.result == expected


def test_one_voter_refusing_twice_is_one_refusal() -> None:
    proposal = _asked()
    proposal.handle(1, A, LEASED)
    proposal.handle(1, A, _outbid())
    assert _result(proposal) is None


def test_a_copy_of_the_prepare_is_refused_by_who_has_promised_and_that_changes_nothing() -> None:
    proposal = _asked()
    proposal.handle(1, A, _promised())
    proposal.handle(1, A, Outbid(KEY, OWN, OWN))
    proposal.handle(1, B, _outbid())
    assert _result(proposal) is None


def test_a_promise_after_a_refusal_is_one() -> None:
    proposal = _asked()
    proposal.handle(1, A, LEASED)
    proposal.handle(2, A, _promised())
    assert proposal.handle(2, B, _promised())


@pytest.mark.parametrize("late", [LEASED, Outbid(KEY, OWN, OWN)])
def test_what_refused_the_prepare_does_not_refuse_the_accept(late: Answer) -> None:
    proposal = _accepting()
    for voter in VOTERS:
        proposal.handle(4, voter, late)
    assert _result(proposal) is None
    assert [voter for voter, _ in proposal.handle_timeout(4)] == list(VOTERS)
    proposal.handle(5, A, ACCEPTED)
    proposal.handle(5, B, ACCEPTED)
    assert isinstance(proposal.result, Chosen)


@pytest.mark.parametrize(
    ("refusal", "reason"), [(_outbid(7), Reason.OUTBID), (WRONG, Reason.WRONG_EPOCH)]
)
def test_an_accept_that_a_majority_refuses_is_refused(refusal: Answer, reason: Reason) -> None:
    proposal = _accepting()
    proposal.handle(4, A, refusal)
    assert _result(proposal) is None
    proposal.handle(4, C, refusal)
    assert isinstance(proposal.result, Refused)
    assert proposal.result.reason is reason
    assert proposal.is_accepting


def test_who_refused_the_prepare_is_asked_to_accept_all_the_same() -> None:
    proposal = _asked()
    proposal.handle(1, C, _outbid())
    proposal.handle(1, A, _promised())
    assert [voter for voter, _ in proposal.handle(1, B, _promised())] == list(VOTERS)


# Asking again.


def test_the_silent_are_asked_again_less_and_less_often_up_to_a_bound() -> None:
    proposal = _asked()
    proposal.handle(0, A, _promised())
    assert proposal.handle_timeout(RESEND_S - 0.01) == []
    now, gaps = RESEND_S, []
    for _ in range(6):
        assert proposal.handle_timeout(now) == [(voter, Prepare(KEY, OWN, 1)) for voter in (B, C)]
        due = proposal.next_deadline()
        assert due is not None
        gaps.append(due - now)
        now = due
    assert gaps == [0.5, 1, 2, 2, 2, 2]
    assert max(gaps) == RESEND_S_MAX


def test_where_one_is_outbid_for_good_and_the_rest_are_silent_it_gives_up_and_says_above_what() -> (
    None
):
    proposal = _asked()
    proposal.handle(0, A, _promised())
    proposal.handle(0, B, _outbid())
    assert proposal.handle_timeout(RESEND_S - 0.01) == []
    assert proposal.next_deadline() == RESEND_S
    assert proposal.handle_timeout(RESEND_S) == []
    assert proposal.next_deadline() is None
    assert isinstance(proposal.result, Refused)
    assert proposal.result.reason is Reason.OUTBID
    assert proposal.result.above > OWN


def test_where_a_lease_lived_it_asks_again_for_it_may_have_lapsed() -> None:
    proposal = _asked()
    proposal.handle(0, A, _promised())
    proposal.handle(0, B, LEASED)
    assert [voter for voter, _ in proposal.handle_timeout(RESEND_S)] == [B, C]
    assert proposal.handle(1, B, _promised())


def test_an_accept_is_sent_again_to_those_that_have_not_accepted() -> None:
    proposal = _accepting(at=3)
    proposal.handle(3, B, ACCEPTED)
    assert proposal.next_deadline() == 3 + RESEND_S
    again = proposal.handle_timeout(3 + RESEND_S)
    assert again == [(voter, Accept(KEY, EPOCH, OWN, 0, P_HAS)) for voter in (A, C)]


# Sizes.


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_more_than_half(count: int, expected: int) -> None:
    assert majority(count) == expected


def test_one_voter_decides_alone_and_two_need_each_other() -> None:
    alone = _asked(voters=(A,))
    assert alone.handle(1, A, _promised())
    alone.handle(1, A, ACCEPTED)
    assert isinstance(alone.result, Chosen)
    two = _asked(voters=(A, B))
    assert two.handle(1, A, _promised()) == []
    two.handle(1, B, LEASED)
    assert two.result == Refused(Reason.LEASED, remaining_s=9.5)
