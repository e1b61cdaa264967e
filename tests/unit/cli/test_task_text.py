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


def test_attempts_say_where_when_why_and_how_they_ended() -> None:
    lost = attempt(1, ended=NOW - 15, error="n3 died")
    again = attempt(2, node="n2", cause="crash", started=NOW - 14, ended=NOW - 9, exit_code=3)
    lines = task_facts(task(attempts=[lost, again])).splitlines()[-3:]
    began = time.strftime("%H:%M:%S", time.localtime(NOW - 14))
    headings = ["ATTEMPT", "NODE", "BEGAN", "TOOK", "END", "WHY", "THERE", "ERROR"]
    assert lines[0].split() == headings
    assert "cut off  first run" in lines[1]
    assert lines[1].endswith("n3 died")
    assert f"{began}.000  5.0s" in lines[2]
    assert "exit 3   the node before was lost" in lines[2]
