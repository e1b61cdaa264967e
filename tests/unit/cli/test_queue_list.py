"""`mesh queue list`: what is known of queues, and how far that goes."""

from __future__ import annotations

import time

import pytest

from mesh.cli.queue_list import as_text

NOW = 1_800_000_000.0
LOCAL = "the queues that something is set for, as n1 knows them"


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)


def test_each_queue_is_a_row_and_what_is_not_shown_is_counted() -> None:
    queues = [
        {
            "queue": "heavy", "strategy": "contest", "set_at": NOW - 90, "set_by": "n2",
            "weights": {"cpu": 2.0, "lag": 0.05}, "default_weights": False,
        },
        {
            "queue": "q\nx", "strategy": "pull", "set_at": NOW - 5, "set_by": "n1",
            "weights": {"cpu": 0.2}, "default_weights": True,
        },
    ]  # fmt: skip
    text = as_text({"queues": queues, "left_out": 3, "unread": 1, "local": LOCAL})
    assert [line.split() for line in text.splitlines()[:3]] == [
        ["QUEUE", "STRATEGY", "WEIGHTS", "SET", "AT"],
        ["heavy", "contest", "cpu", "2,", "lag", "0.05", "1m30s", "ago", "n2"],
        ["q?x", "pull", "default", "5.0s", "ago", "n1"],
    ]
    assert "not shown: 3 more" in text
    assert "not shown: 1 that a later version of Mesh has set" in text
    assert text.endswith(f"\n\n{LOCAL}")


def test_no_queue_is_said_to_be_none_known() -> None:
    nothing = as_text({"queues": [], "left_out": 0, "unread": 0, "local": LOCAL})
    assert nothing == f"none is known\n\n{LOCAL}"
