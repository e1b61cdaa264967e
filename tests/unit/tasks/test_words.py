"""Tasks in words: since when one waits, runs, or ran."""

from __future__ import annotations

from mesh.tasks.words import (
    ATTEMPT_CAUSES,
    UNFINISHED,
    attempt_end,
    attempt_reason,
    loss_reason,
    of_those_that_run,
    state_word,
    stretch,
)
from mesh.wire.task_messages import AttemptCause, TaskState


def test_task_that_was_taken_back_waits_from_then_on() -> None:
    assert stretch("ready", created=1.0, started=2.0, ended=None, lost=30.0) == (30.0, None)


def test_task_that_never_ran_waits_since_it_was_made() -> None:
    assert stretch("ready", created=1.0, started=None, ended=None, lost=None) == (1.0, None)


def test_time_of_a_run_is_its_last_attempts() -> None:
    assert stretch("leased", created=1.0, started=40.0, ended=None, lost=30.0) == (40.0, None)
    assert stretch("lost", created=1.0, started=40.0, ended=None, lost=70.0) == (70.0, None)
    assert stretch("done", created=1.0, started=40.0, ended=50.0, lost=30.0) == (40.0, 50.0)
    assert stretch("cancelled", created=1.0, started=None, ended=9.0, lost=None) == (1.0, 9.0)


def test_every_cause_of_an_attempt_has_its_words() -> None:
    assert set(ATTEMPT_CAUSES) == {cause.word for cause in AttemptCause}
    assert attempt_reason("a later version's") == "a later version's"
    assert loss_reason("a later version's") == "a later version's"


def test_what_is_leased_runs_and_every_other_state_is_called_what_it_is() -> None:
    words = [state_word(state.word) for state in TaskState]
    assert words == ["ready", "scheduled", "running", "done", "failed", "cancelled"]
    assert [state_word(state.word, is_lost=True) for state in TaskState] == [
        word.replace("running", "lost") for word in words
    ]
    assert {state.word for state in TaskState if not state.is_terminal} == UNFINISHED


def test_task_waits_for_its_retry_since_the_run_before_it_ended() -> None:
    scheduled = stretch("scheduled", created=1.0, started=2.0, ended=None, lost=30.0)
    assert scheduled == (30.0, None)


def test_end_of_an_attempt_is_its_exit_code_or_how_it_was_lost() -> None:
    assert attempt_end(is_over=False, end="open", exit_code=None) == "runs"
    assert attempt_end(is_over=False, end="open", exit_code=None, is_lost=True) == "lost"
    assert attempt_end(is_over=True, end="verdict", exit_code=3) == "exit 3"
    assert attempt_end(is_over=True, end="lost", exit_code=None) == "cut off"
    assert attempt_end(is_over=True, end="released", exit_code=None) == "let go"


def test_what_runs_on_a_node_that_leaves_is_named_with_what_becomes_of_it() -> None:
    assert of_those_that_run([], 5.0) == ""
    assert (
        of_those_that_run(["t"], 0.0)
        == "stopping 1 task that runs here: t; others run them, where one fits"
    )
    many = of_those_that_run(list("abcdef"), 90.0)
    assert many.startswith("waiting up to 1m30s for 6 tasks that run here: a, b, c, d, e, …; after")
    assert many.endswith("after that they are stopped, and run again where a member fits")
    one = of_those_that_run(["t"], 90.0)
    assert one.endswith("after that it is stopped, and runs again where a member fits")
