"""A read at a majority: what it holds alike is chosen, the rest is to be written back first."""

import pytest

from mesh.core.ballot import NO_BALLOT, Ballot
from mesh.registers.proposal import RESEND_S, RESEND_S_MAX
from mesh.registers.reading import Reading, Seen
from mesh.wire.register_messages import Answer, Held, Read, Value, WrongEpoch
from tests.unit.registers.asked import (
    EPOCH,
    FINAL,
    KEY,
    OPEN,
    STRANGER,
    VOTERS,
    A,
    B,
    C,
    ballot,
)


def _asked() -> Reading:
    reading = Reading(KEY, EPOCH, VOTERS, tag=7)
    reading.start(0)
    return reading


def _held(value: Value | None, known: Ballot | None = None, seq: int = 0) -> Held:
    return Held(KEY, EPOCH, 7, known or (NO_BALLOT if value is None else ballot(1)), seq, value)


def test_it_asks_all_voters() -> None:
    assert Reading(KEY, EPOCH, VOTERS, tag=7).start(0) == [
        (voter, Read(KEY, EPOCH, 7)) for voter in VOTERS
    ]


def test_what_a_majority_holds_alike_is_chosen() -> None:
    reading = _asked()
    reading.handle(A, _held(FINAL, ballot(3), 2))
    assert reading.next_deadline() is not None
    reading.handle(C, _held(FINAL, ballot(3), 2))
    assert reading.result == Seen(FINAL, is_chosen=True, is_known=True)
    assert reading.next_deadline() is None


@pytest.mark.parametrize("order", [(A, B), (B, A)])
def test_the_latest_of_unlike_answers_is_told_as_not_chosen(order: tuple[object, object]) -> None:
    reading = _asked()
    answers = {A: _held(OPEN), B: _held(FINAL, ballot(1), 2)}
    for voter in sorted((A, B), key=order.index):
        reading.handle(voter, answers[voter])
    assert reading.result == Seen(FINAL, is_chosen=False, is_known=True)


def test_what_one_of_a_majority_holds_may_not_exist() -> None:
    reading = _asked()
    reading.handle(A, _held(None))
    reading.handle(B, _held(OPEN))
    assert reading.result == Seen(OPEN, is_chosen=False, is_known=False)


def test_what_a_majority_does_not_hold_was_not_chosen() -> None:
    reading = _asked()
    reading.handle(A, _held(None))
    reading.handle(B, _held(None))
    assert reading.result is not None
    assert reading.result.value is None
    assert not reading.result.is_known


@pytest.mark.parametrize(
    ("tag", "epoch", "key"), [(8, EPOCH, KEY), (7, EPOCH + 1, KEY), (7, EPOCH, b"other")]
)
def test_answers_to_other_questions_do_not_count(tag: int, epoch: int, key: bytes) -> None:
    reading = _asked()
    reading.handle(A, _held(OPEN))
    reading.handle(B, Held(key, epoch, tag, ballot(1), 0, OPEN))
    reading.handle(STRANGER, _held(OPEN))
    reading.handle(A, _held(OPEN))
    assert reading.result is None


def test_a_voter_of_another_epoch_says_so() -> None:
    reading = _asked()
    reading.handle(A, WrongEpoch(KEY, NO_BALLOT, EPOCH + 1))
    assert reading.epoch == EPOCH + 1
    reading.handle(B, WrongEpoch(KEY, NO_BALLOT, 0))
    assert reading.epoch == EPOCH + 1


@pytest.mark.parametrize(
    "answer",
    [
        WrongEpoch(b"other", NO_BALLOT, EPOCH + 1),
        WrongEpoch(KEY, ballot(1), EPOCH + 1),
        WrongEpoch(KEY, NO_BALLOT, EPOCH),
    ],
)
def test_what_was_said_to_another_question_about_epochs_is_not_taken(answer: Answer) -> None:
    reading = _asked()
    reading.handle(A, answer)
    assert reading.epoch is None


def test_the_silent_are_asked_again_less_and_less_often_up_to_a_bound() -> None:
    reading = _asked()
    reading.handle(B, _held(OPEN))
    assert reading.handle_timeout(RESEND_S - 0.01) == []
    now, gaps = RESEND_S, []
    for _ in range(6):
        assert [voter for voter, _ in reading.handle_timeout(now)] == [A, C]
        due = reading.next_deadline()
        assert due is not None
        gaps.append(due - now)
        now = due
    assert gaps == [0.5, 1, 2, 2, 2, 2]
    assert max(gaps) == RESEND_S_MAX
