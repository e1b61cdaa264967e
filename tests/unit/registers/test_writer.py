"""An owner's writes: numbered, the latest alone waited for, and none after the last."""

import pytest

from mesh.core.ballot import NO_BALLOT, Ballot
from mesh.errors import LocalProtocolError
from mesh.registers.proposal import RESEND_S, RESEND_S_MAX
from mesh.registers.writer import Writer
from mesh.wire.register_messages import Accept, Accepted, Outbid
from tests.unit.registers.asked import (
    EPOCH,
    FINAL,
    KEY,
    OPEN,
    P_HAS,
    STRANGER,
    VOTERS,
    A,
    B,
    C,
    ballot,
)

TOKEN = ballot(5)


def _accepted(seq: int, *, epoch: int = EPOCH, token: Ballot = TOKEN) -> Accepted:
    return Accepted(KEY, epoch, token, seq)


def _outbid(n: int) -> Outbid:
    return Outbid(KEY, TOKEN, ballot(n))


def _writing(*, times: int = 1) -> Writer:
    writer = Writer(KEY, TOKEN)
    for _ in range(times):
        writer.write(0, P_HAS, EPOCH, VOTERS)
    return writer


def test_writes_are_numbered_from_one_and_go_to_all_voters() -> None:
    writer = Writer(KEY, TOKEN)
    for seq in (1, 2):
        sent = writer.write(0, P_HAS, EPOCH, VOTERS)
        assert sent == [(voter, Accept(KEY, EPOCH, TOKEN, seq, P_HAS)) for voter in VOTERS]


def test_a_write_is_settled_when_a_majority_has_accepted_it() -> None:
    writer = _writing()
    writer.handle(A, _accepted(1))
    writer.handle(A, _accepted(1))
    assert writer.chosen_seq == 0
    writer.handle(C, _accepted(1))
    assert writer.chosen_seq == 1
    assert writer.is_settled
    assert writer.next_deadline() is None


@pytest.mark.parametrize(
    ("sender", "answer"),
    [
        (STRANGER, _accepted(2)),
        (B, _accepted(1)),
        (B, _accepted(2, epoch=EPOCH + 1)),
        (B, _accepted(2, token=ballot(6))),
        (B, Accepted(b"other", EPOCH, TOKEN, 2)),
    ],
)
def test_an_acceptance_of_anything_else_does_not_count(sender: object, answer: Accepted) -> None:
    writer = _writing(times=2)
    writer.handle(A, _accepted(2))
    writer.handle(next(v for v in (*VOTERS, STRANGER) if v == sender), answer)
    assert not writer.is_settled


def test_a_later_write_is_waited_for_anew() -> None:
    writer = _writing()
    writer.handle(A, _accepted(1))
    writer.write(1, P_HAS, EPOCH, VOTERS)
    writer.handle(B, _accepted(2))
    assert writer.chosen_seq == 0
    writer.handle(A, _accepted(2))
    assert writer.chosen_seq == 2


def test_silent_voters_are_asked_again_less_and_less_often_up_to_a_bound() -> None:
    writer = _writing()
    writer.handle(B, _accepted(1))
    assert writer.handle_timeout(RESEND_S - 0.01) == []
    now, gaps = RESEND_S, []
    for _ in range(6):
        assert [voter for voter, _ in writer.handle_timeout(now)] == [A, C]
        due = writer.next_deadline()
        assert due is not None
        gaps.append(due - now)
        now = due
    assert gaps == [0.5, 1, 2, 2, 2, 2]
    assert max(gaps) == RESEND_S_MAX


def test_one_voter_that_promised_more_does_not_stop_a_majority() -> None:
    writer = _writing()
    writer.handle(A, _outbid(6))
    assert writer.fenced_by == NO_BALLOT
    writer.handle(B, _accepted(1))
    writer.handle(C, _accepted(1))
    assert writer.is_settled


def test_two_that_promised_more_fence_it_off_for_good() -> None:
    writer = _writing()
    writer.handle(A, _outbid(6))
    writer.handle(A, _outbid(6))
    assert writer.fenced_by == NO_BALLOT
    writer.handle(B, _outbid(7))
    assert writer.fenced_by == ballot(7)
    assert writer.write(1, P_HAS, EPOCH, VOTERS) == []
    assert writer.move(1, EPOCH + 1, VOTERS) == []
    assert writer.handle_timeout(9) == []
    assert not writer.is_settled


def test_copies_of_its_own_earlier_writes_fence_nobody_off() -> None:
    writer = _writing(times=2)
    for voter in VOTERS:
        writer.handle(voter, _outbid(5))
    assert writer.fenced_by == NO_BALLOT


def test_a_write_moves_to_the_voters_of_the_next_epoch_and_starts_to_count_anew() -> None:
    writer = _writing()
    writer.handle(A, _accepted(1))
    moved = writer.move(1, EPOCH + 1, [B, C, STRANGER])
    assert [voter for voter, _ in moved] == [B, C, STRANGER]
    assert {accept for _, accept in moved} == {Accept(KEY, EPOCH + 1, TOKEN, 1, P_HAS)}
    writer.handle(B, _accepted(1))
    writer.handle(B, _accepted(1, epoch=EPOCH + 1))
    assert writer.chosen_seq == 0
    writer.handle(STRANGER, _accepted(1, epoch=EPOCH + 1))
    assert writer.chosen_seq == 1


def test_nothing_moves_that_is_settled_or_was_never_written() -> None:
    writer = _writing()
    writer.handle(A, _accepted(1))
    writer.handle(B, _accepted(1))
    assert writer.move(1, EPOCH + 1, VOTERS) == []
    assert Writer(KEY, TOKEN).move(1, EPOCH + 1, VOTERS) == []


def test_nothing_is_written_after_a_final_value() -> None:
    writer = Writer(KEY, TOKEN)
    writer.write(0, FINAL, EPOCH, VOTERS)
    with pytest.raises(LocalProtocolError, match="final"):
        writer.write(1, OPEN, EPOCH, VOTERS)
    assert writer.seq == 1
    assert writer.move(1, EPOCH + 1, VOTERS)
