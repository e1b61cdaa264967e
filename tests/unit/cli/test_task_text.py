"""Tasks as tables and facts: the same words and times as on the screen."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mesh.cli.task_text import task_facts, task_table

NOW = 1_800_000_000.0


def task(**changes: object) -> dict[str, Any]:
    return {
        "id": "t1",
        "state": "leased",
        "argv": ["true"],
        "queue": "default",
        "keeper": "n1",
        "home": "n2",
        "owner": "n2",
        "attempt": 1,
        "created": NOW - 90,
        "started": NOW - 60,
        "ended": None,
        "waits_for": "",
        "not_before": None,
        "cancel_requested": False,
        "retries_left": 0,
        "retry_of": None,
        "attempts": [],
        "result": None,
    } | changes


def attempt(number: int, **changes: object) -> dict[str, object]:
    return {
        "number": number,
        "node": "n3",
        "cause": "first",
        "started": NOW - 60,
        "ended": None,
        "exit_code": None,
        "error": "",
    } | changes


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)


def cell(text: str, heading: str) -> str:
    """Return what stands under a heading in the first row."""
    titles, row = text.splitlines()[-2:]
    return row[titles.index(heading) :].partition("  ")[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "1m00s"),
        ({"state": "ready", "started": None}, "1m30s"),
        ({"state": "ready", "attempts": [attempt(1, ended=NOW - 15)]}, "15s"),
        ({"state": "done", "ended": NOW - 50}, "10s"),
    ],
)
def test_time_is_how_long_a_task_waits_runs_or_ran(changes: dict[str, object], said: str) -> None:
    assert cell(task_table([task(**changes)]), "TIME") == said


def test_long_id_widens_no_table_and_keeps_both_its_ends() -> None:
    shown = task_table([task(id="day-" + "x" * 120 + "-1~2"), task(id="t1")]).splitlines()[1]
    cut, _, rest = shown.partition("  ")
    assert len(cut) == 40
    assert cut.startswith("day-xxx")
    assert cut.endswith("xxx-1~2")
    assert "…" in cut
    assert rest.startswith("running")


def test_id_of_usual_length_is_whole_in_the_table() -> None:
    usual = "0b6f3c1e-8f5a-4d1c-9c57-2f1d0c8e7a64~12"
    assert cell(task_table([task(id=usual)]), "ID") == usual


def test_long_id_is_whole_where_one_task_is_told() -> None:
    assert "x" * 128 in task_facts(task(id="x" * 128))


def test_attempts_say_where_when_why_and_how_they_ended() -> None:
    lost = attempt(1, ended=NOW - 15, error="n3 died")
    again = attempt(2, node="n2", cause="crash", started=NOW - 14, ended=NOW - 9, exit_code=3)
    lines = task_facts(task(attempts=[lost, again])).splitlines()[-3:]
    began = time.strftime("%H:%M:%S", time.localtime(NOW - 14))
    headings = ["ATTEMPT", "NODE", "BEGAN", "TOOK", "END", "CAUSE", "ERROR"]
    assert lines[0].split() == headings
    assert "cut off  first run" in lines[1]
    assert lines[1].endswith("n3 died")
    assert f"{began}.000  5.0s" in lines[2]
    assert "exit 3   the node before was lost" in lines[2]


def test_an_attempt_at_home_says_so_and_a_queue_says_whom_it_has_asked_where_that_is_known() -> (
    None
):
    there = task_facts(task(attempts=[attempt(1), attempt(2, node="n2")])).splitlines()[-2:]
    assert "n3 " in there[0]
    assert "n2 (home)" in there[1]
    assert "queue    default\n" in task_facts(task())
    assert "queue    default\n" in task_facts(task(strategy=None))
    pulled = task_facts(task(strategy="pull", home=None))
    assert "queue    default (pull: whoever is idle, the oldest task first)" in pulled
    assert "home     -" in pulled
    assert "queue    default (luck)" in task_facts(task(strategy="luck"))  # of a later version


def test_states_are_said_as_people_say_them() -> None:
    assert cell(task_table([task()]), "STATE") == "running"
    assert cell(task_table([task(state="ready")]), "STATE") == "ready"
    stopping = task_facts(task(cancel_requested=True))
    assert "state    running, being cancelled" in stopping


WANTS = {"pool": "image", "class": "large", "labels": {"tpu": "yes"}, "needs": {"gpu": 2}}


def test_what_a_task_asks_of_a_member_is_shown_and_nothing_where_it_asks_nothing() -> None:
    said = "asks for   pool image, class large, label tpu=yes, gpu 2"
    assert said in task_facts(task(waits_for="its turn", **WANTS))
    assert "asks for" not in task_facts(
        task(**{"pool": "", "class": "", "labels": {}, "needs": {}})
    )
    assert "asks for" not in task_facts(task())  # of a node of an earlier version


def test_run_that_was_lost_is_not_said_to_run() -> None:
    lost = task(
        attempts=[attempt(1)],
        waits_for="its turn",
        lost=True,
        lost_cause="lapse",
        lost_since=NOW - 7,
    )
    assert cell(task_table([lost]), "STATE") == "lost"
    assert cell(task_table([lost]), "TIME") == "7.0s"
    text = task_facts(lost)
    assert (
        "state      lost: its node was not heard of any more, and its lease ran out (lapse)" in text
    )
    assert "waits for  its turn" in text
    assert "  53s   lost  first run" in text.splitlines()[-1]  # and counts no further


def test_run_that_its_own_node_holds_frozen_is_not_said_to_run() -> None:
    frozen = task(frozen=True)
    assert cell(task_table([frozen]), "STATE") == "frozen"
    assert "state    frozen: whether its lease lives is in doubt" in task_facts(frozen)
    assert cell(task_table([frozen | {"lost": True, "lost_since": NOW}]), "STATE") == "lost"


def test_task_that_waits_says_what_for_and_how_often_it_may_be_tried() -> None:
    due = task_facts(task(state="scheduled", not_before=NOW + 60, attempt=1, retries_left=2))
    at = time.strftime("%H:%M:%S", time.localtime(NOW + 60))
    assert f"waits for  its retry, at {at}" in due
    assert "retries    2 left" in due
    assert "waits for  its turn" in task_facts(task(state="ready", waits_for="its turn"))
    assert "retry of  t0" in task_facts(task(id="t0~1", retry_of="t0"))


def test_attempt_that_was_let_go_is_told_from_one_that_was_cut_off() -> None:
    let_go = attempt(1, ended=NOW - 15, end="released")
    lost = attempt(1, ended=NOW - 15, end="lost")
    assert "let go " in task_facts(task(attempts=[let_go]))
    assert "cut off " in task_facts(task(attempts=[lost]))
