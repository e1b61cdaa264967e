"""A host is fit from the first pass, unfit after two failures in a row, and what is told changes only with that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mesh.hooks.health import FAILURES, NOT_YET, Health, Verdict
from mesh.hooks.outcome import Outcome

PASS = Outcome(is_ok=True, how="exit code 0")
FAIL = Outcome(is_ok=False, how="exit code 3", last_line="no GPU")
SLOW = Outcome(is_ok=False, how="took longer than 10 s")


def told(*outcomes: Outcome) -> list[Verdict | None]:
    health = Health()
    return [health.take(outcome) for outcome in outcomes]


def test_a_host_is_not_fit_before_its_check_has_passed() -> None:
    assert Health().verdict == Verdict(is_fit=False, why=NOT_YET)


def test_the_first_pass_makes_it_fit_and_further_ones_tell_nothing() -> None:
    assert told(PASS, PASS, PASS) == [
        Verdict(is_fit=True, why="its health check passes"),
        None,
        None,
    ]


def test_one_failure_harms_nobody_and_two_in_a_row_do() -> None:
    unfit = Verdict(is_fit=False, why="its health check fails: exit code 3: no GPU")
    assert told(PASS, FAIL, PASS, FAIL, FAIL, FAIL)[1:] == [None, None, None, unfit, None]


def test_one_pass_makes_it_fit_again() -> None:
    assert told(PASS, FAIL, FAIL, PASS)[-1] == Verdict(is_fit=True, why="its health check passes")


def test_whoever_waits_for_the_first_pass_is_told_of_the_first_failure_why() -> None:
    assert told(FAIL) == [Verdict(is_fit=False, why="its health check fails: exit code 3: no GPU")]


def test_another_reason_is_told_and_another_last_line_is_not() -> None:
    other = Outcome(is_ok=False, how="exit code 3", last_line="no GPU at 12:00:01")
    slow = Verdict(is_fit=False, why="its health check fails: took longer than 10 s")
    assert told(FAIL, other, SLOW, SLOW)[1:] == [None, slow, None]


@given(st.lists(st.booleans(), max_size=30))
def test_what_was_told_last_is_what_the_latest_outcomes_say(passes: list[bool]) -> None:
    health = Health()
    last = health.verdict
    for count, is_ok in enumerate(passes, 1):
        before = last
        last = health.take(PASS if is_ok else FAIL) or last
        latest = passes[max(0, count - FAILURES) : count]
        if is_ok:
            assert last.is_fit
        elif len(latest) == FAILURES and not any(latest):
            assert not last.is_fit
        else:
            assert last.is_fit == before.is_fit
        assert last == health.verdict
