"""A task's story: what it waits for, why each attempt was started, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from mesh.cli.why_task import as_text, headline, story, what_next

NOW = 1_800_000_000.0  # 08:00:00 UTC


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(time, "time", lambda: NOW)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def task(state: str = "ready", **changes: object) -> dict[str, Any]:
    return {
        "id": "t1",
        "state": state,
        "argv": ["make", "all"],
        "queue": "default",
        "keeper": "n1",
        "home": "n2",
        "owner": None,
        "attempt": 0,
        "created": NOW - 90,
        "not_before": None,
        "started": None,
        "ended": None,
        "cancel_requested": False,
        "retry_of": None,
        "waits_for": "",
        "attempts": [],
        "result": None,
    } | changes


def attempt(number: int, node: str, **changes: object) -> dict[str, object]:
    return {
        "number": number,
        "node": node,
        "token": "1234567890123456789",
        "cause": "first",
        "started": NOW - 60,
        "ended": None,
        "end": "open",
        "exit_code": None,
        "error": "",
    } | changes


def test_ready_task_says_what_it_waits_for() -> None:
    waiting = task(waits_for="a free slot: n1, n2 are all busy")
    text = as_text(waiting, "n1", NOW)
    assert text.splitlines()[:5] == [
        "task t1 is ready",
        "  for 1m30s, since 07:58:30.000",
        "  command: make all",
        "  queue: default",
        "  its home, which is asked first, is n2",
    ]
    assert "07:58:30.000   1m30s ago  n1 took it in" in text
    assert text.endswith("what it waits for\n  A free slot: n1, n2 are all busy.")


def test_a_task_of_a_queue_without_homes_says_whom_its_strategy_has_ask() -> None:
    text = as_text(task(home=None, strategy="round_robin"), "n1", NOW)
    assert "  queue: default (round_robin: one member after the other)\n" in text
    assert "home" not in text


def test_node_that_does_not_offer_a_task_says_that_it_does_not_know() -> None:
    assert what_next(task(), "n3") == [
        "n3 is not the one that offers it, and does not know; ask at another member."
    ]


def test_attempts_say_why_they_began_and_how_they_ended() -> None:
    attempts = [
        attempt(1, "n3", ended=NOW - 40, end="lost", error="n3 was not heard of any more"),
        attempt(2, "n2", cause="lapse", started=NOW - 39, ended=NOW - 30, end="verdict", exit_code=3,
                placed={"by": "rank", "home": "n2", "passed": None}),
        attempt(3, "n1", cause="retry", started=NOW - 20, ended=NOW - 15, end="released",
                error="it was released: it leaves"),
        attempt(4, "n2", cause="released", started=NOW - 10, token=None,
                placed={"by": "contest", "home": "n1", "passed": "busy"}),
    ]  # fmt: skip
    running = task("leased", owner="n2", started=NOW - 10, attempt=4, attempts=attempts)
    told = [line.partition(" ago  ")[2] for line in story(running, NOW)]
    assert told == [
        "n1 took it in",
        "attempt 1 began on n3: first run: token …890123456789",
        "attempt 1 was lost, without a verdict: n3 was not heard of any more",
        "attempt 2 began on n2: the node before was not heard of any more: n2 is its home; token …890123456789",
        "attempt 2 ended with exit code 3",
        "attempt 3 began on n1: the run before failed: token …890123456789",
        "attempt 3 was let go by n1: it was released: it leaves",
        (
            "attempt 4 began on n2: the node before let it go: n1 is its home, but no slot of it was known to be free; "
            "n2 was granted it in a contest"
        ),
    ]
    assert headline(running) == "task t1 is running on n2"
    assert "the lease lapses, and another member runs it" in what_next(running, "n1")[1]


def test_an_attempt_that_was_never_started_is_not_said_to_have_begun() -> None:
    declined = attempt(1, "n3", claimed=NOW - 61, started=None, ended=NOW - 60, end="released",
                       error="it was released: it had no slot free any more")  # fmt: skip
    told = story(task(attempt=1, attempts=[declined]), NOW)[1]
    assert told.startswith("07:58:59.000")
    assert "attempt 1 was given to n3, and not started there: first run" in told


def test_attempts_that_are_not_on_record_any_more_are_counted() -> None:
    attempts = [attempt(1, "n1", ended=NOW - 50, end="lost"), attempt(40, "n2", cause="lapse")]
    told = story(task("leased", owner="n2", attempt=40, attempts=attempts), NOW)
    assert told[-1].endswith("38 attempts before it are not on record any more")


def test_scheduled_task_says_when_it_is_due_and_whether_for_a_retry() -> None:
    first = task("scheduled", not_before=NOW + 60)
    again = task(
        "scheduled", not_before=NOW + 60, attempt=1, attempts=[attempt(1, "n1", ended=NOW)]
    )
    assert what_next(first, "n1") == ["Its time, at 08:01:00: until then nobody is asked."]
    assert what_next(again, "n1") == ["Its retry, at 08:01:00: until then nobody is asked."]


def test_failed_task_says_why_and_what_can_be_done() -> None:
    lost = attempt(1, "n3", ended=NOW - 40, end="lost", error="n3 ended its session")
    failed = task(
        "failed",
        owner="n3",
        ended=NOW - 40,
        attempts=[lost],
        result={"exit_code": None, "error": "3 attempts in a row were lost"},
    )
    text = as_text(failed, "n1", NOW)
    assert "it failed for good" in text
    assert "· 3 attempts in a row were lost" in text
    assert text.endswith(
        "what can be done\n  mesh retry t1 submits it anew, under an id that follows from this one."
    )


def test_done_task_has_nothing_to_wait_for() -> None:
    assert what_next(task("done", owner="n1", ended=NOW), "n1") == []


def test_cancelled_run_is_said_to_be_stopped() -> None:
    stopping = task("leased", owner="n2", cancel_requested=True, attempts=[attempt(1, "n2")])
    assert headline(stopping) == "task t1 is running on n2, and is being cancelled"
    assert what_next(stopping, "n1") == [
        "The end of its run: n2 was told to stop it, and nobody starts it again."
    ]


def test_what_a_task_asks_of_a_member_is_told() -> None:
    asking = task(pool="", labels={"gpu": "yes"}, needs={})
    assert "  asks for: label gpu=yes" in as_text(asking, "n1", NOW).splitlines()


LOST = {"lost": True, "lost_cause": "crash", "lost_since": NOW - 10}


def test_run_that_was_lost_is_told_with_its_cause_and_what_the_task_waits_for_now() -> None:
    reason = "a member that can run it: no member that takes tasks has label gpu=yes"
    lost = task(
        "leased",
        owner="n3",
        attempt=1,
        attempts=[attempt(1, "n3")],
        waits_for=reason,
        home=None,
        **LOST,
    )
    text = as_text(lost, "n1", NOW)
    assert text.splitlines()[:2] == [
        "task t1 is lost: n3, which had it, runs it no more",
        "  for 10s, since 07:59:50.000",
    ]
    assert story(lost, NOW)[-1].endswith(
        "attempt 1 on n3 was seen lost: its node was killed or crashed: that its session is over is proven (crash)"
    )
    assert what_next(lost, "n1") == [
        "A member that can run it: no member that takes tasks has label gpu=yes.",
        "Nobody runs it until then. That the run on n3 was lost spends no retry.",
    ]
    lapsed = task(
        "leased", owner="n3", attempts=[attempt(1, "n3")], **LOST | {"lost_cause": "lapse"}
    )
    assert story(lapsed, NOW)[-1].endswith(
        "its node was not heard of any more, and its lease ran out (lapse)"
    )


def test_lost_run_of_a_task_that_is_to_be_cancelled_is_not_said_to_be_started_again() -> None:
    stopping = task(
        "leased",
        owner="n2",
        cancel_requested=True,
        attempts=[attempt(1, "n2")],
        waits_for="its turn",
        **LOST,
    )
    assert headline(stopping).endswith("runs it no more, and it is being cancelled")
    assert what_next(stopping, "n1") == [
        "Its turn.",
        "Nobody starts it again: whoever is offered it writes that it is cancelled.",
    ]


def test_words_of_another_host_cannot_move_the_cursor() -> None:
    assert "\x1b" not in as_text(task(argv=["\x1b[31mred"]), "n1", NOW)


def contest(**changes: object) -> dict[str, Any]:
    return {
        "task_id": "t1",
        "attempt": 1,
        "caller": "v1",
        "at": NOW - 61,
        "window_ms": 2.0,
        "rounds": 1,
        "first_window": True,
        "under_way": False,
        "called": [
            {"member": "n1", "expected": 0.92},
            {"member": "n2", "expected": 0.8},
            {"member": "n3", "expected": 0.5},
        ],
        "said": [
            {"after_ms": 0.4, "member": "n1", "score": None, "parts": {}, "declined": "busy"},
            {
                "after_ms": 1.5,
                "member": "n2",
                "score": 0.81,
                "parts": {"cpu": 0.75, "free_slots": 1.0},
                "declined": None,
            },
        ],
        "winner": "n2",
        "after_ms": 5.25,
        "weights": {"cpu": 2.0, "lag": 0.0},
        "default_weights": True,
    } | changes


def test_a_contest_stands_before_the_attempt_that_came_of_it() -> None:
    told = task("leased", owner="n2", attempts=[attempt(1, "n2")], contests=[contest()])
    lines = story(told, NOW)
    (called,) = [line for line in lines if "called" in line]
    assert lines.index(called) < next(i for i, line in enumerate(lines) if "began on n2" in line)
    for words in (
        "v1 called for attempt 1: n1 (0.92), n2 (0.80), n3 (0.50)",
        "n1 declined after 0.4 ms: no slot was free any more",
        "n2 bid 0.81 after 1.5 ms (processors idle now 0.75, free slots 1.00)",
        "n3 said nothing: a fitter one was heard first, or its word was lost",
        "granted to n2, seen 5.2 ms after the call",
    ):
        assert words in called
    assert "round" not in called
    assert "weighed" not in called
    told = task("leased", contests=[contest(default_weights=False)])
    (called,) = [line for line in story(told, NOW) if "called" in line]
    assert "weighed as the queue has it: processors idle now 2;" in called


def test_a_contest_that_nobody_won_is_told_for_a_task_that_waits() -> None:
    nobody = contest(said=[], winner=None, after_ms=None, rounds=2, first_window=False)
    (called,) = [line for line in story(task(contests=[nobody]), NOW) if "called" in line]
    assert "nobody took it" in called
    assert "silent" not in called
    late = contest(rounds=2, first_window=False)
    (called,) = [line for line in story(task(contests=[late]), NOW) if "called" in line]
    assert "after 2 rounds of calls" in called
    going_on = contest(winner=None, after_ms=None, under_way=True)
    (called,) = [line for line in story(task(contests=[going_on]), NOW) if "called" in line]
    assert "it is under way" in called
    bids: list[dict[str, Any]] = [
        {"after_ms": ms, "member": name, "score": score, "parts": {}, "declined": None}
        for ms, name, score in ((6.8, "n1", 0.92), (9.3, "n2", 0.93))
    ]
    (called,) = [
        line
        for line in story(task(contests=[contest(said=bids, winner="n1")]), NOW)
        if "called" in line
    ]
    assert "granted to n1, whose claim reached a majority first" in called
    unheard = contest(said=[], winner="n3")
    (called,) = [line for line in story(task(contests=[unheard]), NOW) if "called" in line]
    assert "n3 said nothing" not in called, "whose bid was lost has spoken all the same"
