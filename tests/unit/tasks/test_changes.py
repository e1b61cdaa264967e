"""Every change of a task, in every state it may be found in."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.errors import LocalProtocolError
from mesh.tasks import changes as ch
from mesh.tasks.body import ATTEMPTS_MAX, ERROR_CHARS_MAX, TAIL_BYTES_MAX, Body, End, Result, Terms
from mesh.tasks.changes import Refusal
from mesh.tasks.form import of_value, to_value
from mesh.wire.register_messages import Owner, Standing, Value
from mesh.wire.task_messages import AttemptCause, TaskState
from tests.unit.tasks.made import (
    ANNA,
    BERT,
    CARL,
    NOON,
    TOKEN,
    bodies,
    claimed,
    ended,
    every_state,
    marked,
    new,
)

LATER = NOON + 100
CHANGES: dict[str, ch.Change] = {
    "claim": ch.Claim(LATER, BERT, "bert"),
    "finish": ch.Finish(LATER, ANNA, 1, TOKEN, Result(exit_code=0), 0.0),
    "fail": ch.Finish(LATER, ANNA, 1, TOKEN, Result(exit_code=1), 0.0),
    "release": ch.Release(LATER, ANNA, 1, TOKEN, "it is leaving"),
    "mark": ch.MarkCancelled(LATER, ANNA, 1, TOKEN),
    "cancel": ch.Cancel(LATER),
    "another's finish": ch.Finish(LATER, BERT, 1, TOKEN, Result(exit_code=0), 0.0),
}
R, S, L, D, F, C = TaskState
NOT, OTHER, OVER = Refusal.NOT_LEASED, Refusal.ANOTHERS, Refusal.OVER
# What becomes of a task in each state: a state, or why nothing does.
TABLE: dict[str, tuple[TaskState | Refusal, ...]] = {
    # claim, finish, fail, release, mark, cancel, another's finish
    "ready": (L, NOT, NOT, NOT, NOT, C, NOT),
    "ready again": (L, NOT, NOT, NOT, NOT, C, NOT),
    "scheduled": (L, NOT, NOT, NOT, NOT, C, NOT),
    "scheduled for a retry": (L, NOT, NOT, NOT, NOT, C, NOT),
    "leased": (L, D, F, R, L, C, OTHER),
    "leased, to be cancelled": (C, C, C, C, Refusal.MARKED, C, OTHER),
    "done": (OVER,) * 7,
    "failed": (OVER,) * 7,
    "cancelled": (OVER,) * 7,
}
CASES = [
    (state, change, expected)
    for state, row in TABLE.items()
    for change, expected in zip(CHANGES, row, strict=True)
]


@pytest.mark.parametrize(("state", "change", "expected"), CASES)
def test_each_change_does_to_each_state_what_the_table_says(
    state: str, change: str, expected: TaskState | Refusal
) -> None:
    found, asked = every_state()[state], CHANGES[change]
    value = asked(found)
    if isinstance(expected, Refusal):
        assert value is None
        assert asked.refusal(found) is expected
    else:
        assert value is not None
        assert asked.refusal(found) is None
        assert of_value(value).state is expected


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_is_not_there_or_cannot_be_read_is_left_alone(change: ch.Change) -> None:
    assert change(None) is None
    assert change.refusal(None) is Refusal.MISSING
    unread = Value(Standing.OPEN, b"\x03 a later version's")
    assert change(unread) is None
    assert change.refusal(unread) is Refusal.UNREADABLE


@given(body=bodies(), name=st.sampled_from(sorted(CHANGES)))
def test_a_change_leaves_a_consistent_task_a_final_one_alone_and_attempts_rising(
    body: Body, name: str
) -> None:
    found = to_value(body)
    value = CHANGES[name](found)
    assert CHANGES[name](found) == value  # asked twice, it says the same
    if value is None:
        return
    after = of_value(value)  # consistent, and stands as it is
    assert not body.state.is_terminal
    assert body.attempt <= after.attempt <= body.attempt + 1
    assert after.retries_left <= body.retries_left
    assert (after.spec, after.terms, after.created) == (body.spec, body.terms, body.created)
    assert after.is_cancel_requested or not body.is_cancel_requested


# -- claiming


def test_a_claim_makes_the_next_attempt_and_names_its_owner() -> None:
    value = claimed(new())
    assert (value.standing, value.owner) == (Standing.LEASED, ANNA)
    body = of_value(value)
    running = body.running
    assert running is not None
    assert (running.number, running.cause, running.name) == (1, AttemptCause.FIRST, "node-1")
    assert (running.claimed, running.ended, running.token) == (NOON + 1, None, None)


def test_a_task_is_not_claimed_before_its_time() -> None:
    found = new(not_before=NOON + 60)
    assert of_value(found).state is TaskState.SCHEDULED
    early = ch.Claim(NOON + 59, ANNA, "anna")
    assert early.refusal(found) is Refusal.NOT_DUE
    body = of_value(claimed(found, at=NOON + 60))
    assert (body.state, body.not_before) == (TaskState.LEASED, 0.0)


def test_a_time_that_is_over_is_no_time() -> None:
    assert of_value(new(not_before=NOON)).state is TaskState.READY


def test_a_claim_that_finds_its_own_lease_takes_it_up_as_it_is() -> None:
    claim = ch.Claim(NOON + 1, ANNA, "anna")
    first = claim(new())
    assert claim(first) == first


def test_another_claim_of_the_same_session_is_another_attempt() -> None:
    body = of_value(claimed(claimed(new()), at=NOON + 2))
    assert body.attempt == 2
    assert body.attempts[0].end is End.LOST


def test_an_earlier_sessions_lease_is_lost_though_it_was_claimed_at_the_same_time() -> None:
    again = Owner(ANNA.node_id, ANNA.boot + 1)
    assert of_value(claimed(claimed(new()), again)).attempt == 2


@pytest.mark.parametrize(
    ("lost", "cause", "word"),
    [
        (AttemptCause.LAPSE, AttemptCause.LAPSE, "not heard of"),
        (AttemptCause.CRASH, AttemptCause.CRASH, "was killed or crashed"),
        (AttemptCause.FORCED, AttemptCause.FORCED, "taken away"),
        (AttemptCause.RECOVERED, AttemptCause.RECOVERED, "records were lost"),
        (AttemptCause.FIRST, AttemptCause.LAPSE, "not heard of"),
        (AttemptCause.RETRY, AttemptCause.LAPSE, "not heard of"),
    ],
)
def test_a_lost_attempt_says_how_and_the_next_one_why_it_started(
    lost: AttemptCause, cause: AttemptCause, word: str
) -> None:
    value = ch.Claim(NOON + 50, BERT, "bert", lost)(claimed(new(retries=1)))
    assert value is not None
    body = of_value(value)
    first, second = body.attempts
    assert (first.end, first.ended, first.exit_code) == (End.LOST, NOON + 50, None)
    assert word in first.error
    assert (second.number, second.cause, body.cause) == (2, cause, cause)
    assert body.retries_left == 1  # a lapse spends none


def test_what_is_known_of_one_attempt_is_not_said_of_another() -> None:
    second = claimed(claimed(new()), BERT, NOON + 50)
    for number, cause in ((1, AttemptCause.LAPSE), (2, AttemptCause.CRASH)):
        claim = ch.Claim(NOON + 90, CARL, "carl", AttemptCause.CRASH, lost_attempt=number)
        value = claim(second)
        assert value is not None
        assert of_value(value).cause is cause


def lost_three_times(*gaps_s: float) -> Value:
    value, at = new(retries=5), NOON
    for owner, gap_s in zip((ANNA, BERT, CARL), gaps_s, strict=True):
        at += gap_s
        value = claimed(value, owner, at)
    return claimed(value, ANNA, at + 100)


def test_the_third_loss_in_a_row_makes_a_dead_letter() -> None:
    value = lost_three_times(1, 100, 100)
    body = of_value(value)
    assert (value.standing, body.state, body.ended) == (
        Standing.FINAL,
        TaskState.FAILED,
        NOON + 301,
    )
    assert [one.end for one in body.attempts] == [End.LOST] * 3
    assert body.result is not None
    assert "3 attempts in a row" in body.result.error
    assert "node-1, node-2, node-3" in body.result.error


def test_losses_far_apart_make_none() -> None:
    window_s = ch.POISON_WINDOW_S
    # Lost at 100, at 100 + the window, and 100 s later: the first is too long ago by then.
    body = of_value(lost_three_times(1, 99, window_s))
    assert (body.state, body.attempt) == (TaskState.LEASED, 4)
    assert of_value(lost_three_times(1, 99, window_s - 100)).state is TaskState.FAILED


def test_a_verdict_between_losses_begins_the_count_anew() -> None:
    value = claimed(claimed(claimed(new(retries=9)), BERT, NOON + 50), CARL, NOON + 100)
    value = ended(value, 1, CARL, NOON + 150)
    for owner, at in ((ANNA, NOON + 300), (BERT, NOON + 400), (CARL, NOON + 500)):
        value = claimed(value, owner, at)
    assert of_value(value).state is TaskState.LEASED
    assert of_value(claimed(value, ANNA, NOON + 600)).state is TaskState.FAILED


def test_a_release_between_losses_does_not() -> None:
    value = claimed(claimed(claimed(new()), BERT, NOON + 50), CARL, NOON + 100)
    released = ch.Release(NOON + 110, CARL, 3, TOKEN, "it is leaving")(value)
    assert released is not None
    value = claimed(claimed(released, ANNA, NOON + 120), BERT, NOON + 200)
    assert of_value(value).state is TaskState.FAILED


def test_a_lost_task_that_was_to_be_cancelled_is_started_no_more() -> None:
    value = ch.Claim(NOON + 50, BERT, "bert")(marked(claimed(new())))
    assert value is not None
    body = of_value(value)
    assert (value.standing, body.state, body.attempt) == (Standing.FINAL, TaskState.CANCELLED, 1)


def test_the_first_attempt_and_the_latest_are_kept() -> None:
    value = new()
    for n in range(ATTEMPTS_MAX + 5):
        value = claimed(value, at=NOON + n)
        released = ch.Release(NOON + n, ANNA, n + 1, TOKEN, "it is leaving")(value)
        assert released is not None
        value = released
    body = of_value(value)
    numbers = [one.number for one in body.attempts]
    assert numbers == [1, *range(7, ATTEMPTS_MAX + 6)]
    assert body.attempt == ATTEMPTS_MAX + 5


def test_a_task_is_not_started_more_often_than_can_be_counted() -> None:
    ended_once = of_value(ended(claimed(new(retries=1)), 1))
    last = replace(ended_once.attempts[0], number=ch.ATTEMPT_MAX)
    found = to_value(replace(ended_once, attempts=(last,), attempt=ch.ATTEMPT_MAX))
    body = of_value(claimed(found, at=LATER))
    assert (body.state, body.attempt) == (TaskState.FAILED, ch.ATTEMPT_MAX)


# -- finishing


def test_a_verdict_is_written_under_its_token() -> None:
    body = of_value(ended(claimed(new())))
    attempt = body.attempts[0]
    assert (attempt.token, attempt.ended, attempt.exit_code, attempt.end) == (
        TOKEN,
        NOON + 5,
        0,
        End.VERDICT,
    )
    assert (body.ended, body.result) == (NOON + 5, Result(exit_code=0))


def test_a_verdict_counts_for_its_session_and_attempt_alone() -> None:
    found = claimed(claimed(new()), BERT, NOON + 50)
    done = Result(exit_code=0)
    for owner, attempt in ((ANNA, 1), (ANNA, 2), (BERT, 1), (Owner(BERT.node_id, 1), 2)):
        late = ch.Finish(LATER, owner, attempt, TOKEN, done, 0.0)
        assert late.refusal(found) is Refusal.ANOTHERS
    assert ch.Finish(LATER, BERT, 2, TOKEN, done, 0.0)(found) is not None


def test_a_command_that_did_not_start_has_failed_whatever_its_code() -> None:
    result = Result(exit_code=0, error="no such command")
    value = ch.Finish(LATER, ANNA, 1, TOKEN, result, 0.0)(claimed(new()))
    assert value is not None
    assert of_value(value).state is TaskState.FAILED


def test_a_failure_waits_for_its_retry_and_spends_one() -> None:
    body = of_value(ended(claimed(new(retries=2)), 3))
    assert (body.state, body.cause, body.retries_left) == (
        TaskState.SCHEDULED,
        AttemptCause.RETRY,
        1,
    )
    assert body.not_before == NOON + 5 + 10
    assert body.attempts[0].exit_code == 3
    assert body.result is None


def test_pauses_double_up_to_their_most_and_jitter_comes_on_top() -> None:
    terms = Terms(retries=9, retry_delay_s=10.0, retry_delay_s_max=60.0)
    pauses = [ch.retry_pause_s(terms, used, 0.0) for used in range(5)]
    assert pauses == [10, 20, 40, 60, 60]
    assert ch.retry_pause_s(terms, 4, 0.999) == pytest.approx(60 * 1.4995)
    assert ch.retry_pause_s(terms, 10**9, 0.0) == 60


def test_a_task_fails_for_good_when_its_retries_are_spent() -> None:
    value, at = new(retries=2), NOON + 1
    for _ in range(2):
        value = ended(claimed(value, at=at), 1, at=at + 1)
        assert of_value(value).state is TaskState.SCHEDULED
        at += 100
    value = ended(claimed(value, at=at), 1, at=at + 1)
    body = of_value(value)
    assert (value.standing, body.state, body.attempt) == (Standing.FINAL, TaskState.FAILED, 3)
    assert [one.cause.word for one in body.attempts] == ["first", "retry", "retry"]
    assert body.result == Result(exit_code=1)


def test_a_task_that_was_stopped_for_its_cancelling_is_cancelled_however_it_ended() -> None:
    for code in (0, 143):
        assert of_value(ended(marked(claimed(new(retries=3))), code)).state is TaskState.CANCELLED
    stopped = ch.Finish(LATER, ANNA, 1, TOKEN, Result(exit_code=143), 0.0, is_cancelled=True)
    value = stopped(claimed(new(retries=3)))
    assert value is not None
    assert of_value(value).state is TaskState.CANCELLED


def test_a_result_is_cut_to_what_a_record_holds() -> None:
    tail = b"a" + b"x" * TAIL_BYTES_MAX
    result = Result(
        exit_code=-9,
        error="\udc80" + "e" * 2 * ERROR_CHARS_MAX,
        stdout_tail=tail,
        stderr_tail=tail,
    )
    value = ch.Finish(LATER, ANNA, 1, TOKEN, result, 0.0)(claimed(new()))
    assert value is not None
    found = of_value(value).result
    assert found is not None
    assert found.exit_code == 247
    assert found.error == "?" + "e" * (ERROR_CHARS_MAX - 1)
    assert found.stdout_tail == found.stderr_tail == tail[1:]


# -- releasing, cancelling


def test_a_release_spends_nothing() -> None:
    value = ch.Release(NOON + 3, ANNA, 1, TOKEN, "it is leaving")(claimed(new(retries=1)))
    assert value is not None
    body = of_value(value)
    assert (value.standing, body.state, body.retries_left) == (Standing.OPEN, TaskState.READY, 1)
    assert (body.attempts[0].end, body.attempts[0].error) == (
        End.RELEASED,
        "it was released: it is leaving",
    )
    again = of_value(claimed(value, BERT))
    assert (again.attempt, again.cause) == (2, AttemptCause.RELEASED)


def test_cancelling_writes_the_end_of_what_nobody_runs() -> None:
    value = ch.Cancel(LATER)(new(not_before=NOON + 60))
    assert value is not None
    body = of_value(value)
    assert (body.state, body.ended, body.not_before) == (TaskState.CANCELLED, LATER, 0.0)
    assert body.result is not None
    assert "before it was started" in body.result.error


def test_cancelling_what_has_lapsed_ends_its_attempt() -> None:
    value = ch.Cancel(LATER)(claimed(new()))
    assert value is not None
    body = of_value(value)
    assert (body.state, body.attempts[0].end) == (TaskState.CANCELLED, End.LOST)


def test_marking_keeps_the_lease() -> None:
    value = marked(claimed(new()))
    assert (value.standing, value.owner) == (Standing.LEASED, ANNA)
    body = of_value(value)
    assert body.is_cancel_requested
    assert body.running is not None
    assert body.running.token == TOKEN


def test_a_time_of_day_that_no_record_can_hold_is_a_fault_of_ours() -> None:
    for at in (-1.0, 1e11, float("nan")):
        with pytest.raises(LocalProtocolError, match="time of day"):
            ch.Cancel(at)


def test_a_retry_far_off_can_be_written() -> None:
    terms = Terms(retries=1, retry_delay_s=1e8, retry_delay_s_max=1e8)
    body = replace(of_value(new()), terms=terms, retries_left=1)
    value = ch.Finish(5e9, ANNA, 1, TOKEN, Result(exit_code=1), 0.999)(
        claimed(to_value(body), at=4.9e9)
    )
    assert value is not None
    assert of_value(value).state is TaskState.SCHEDULED
