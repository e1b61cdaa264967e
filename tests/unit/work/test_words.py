"""Tasks in words: since when one waits, runs, or ran."""

from __future__ import annotations

from mesh.work.keeping.task import AttemptCause
from mesh.work.words import ATTEMPT_CAUSES, attempt_reason, stretch


def test_task_that_was_taken_back_waits_from_then_on() -> None:
    assert stretch("ready", created=1.0, started=2.0, ended=None, lost=30.0) == (30.0, None)


def test_task_that_never_ran_waits_since_it_was_made() -> None:
    assert stretch("ready", created=1.0, started=None, ended=None, lost=None) == (1.0, None)


def test_time_of_a_run_is_its_last_attempts() -> None:
    assert stretch("leased", created=1.0, started=40.0, ended=None, lost=30.0) == (40.0, None)
    assert stretch("done", created=1.0, started=40.0, ended=50.0, lost=30.0) == (40.0, 50.0)
    assert stretch("cancelled", created=1.0, started=None, ended=9.0, lost=None) == (1.0, 9.0)


def test_every_cause_of_an_attempt_has_its_words() -> None:
    assert set(ATTEMPT_CAUSES) == {cause.value for cause in AttemptCause}
    assert attempt_reason("a later version's") == "a later version's"
