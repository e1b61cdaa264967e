"""Events in words."""

from __future__ import annotations

import pytest

from mesh.core.events import EventKind
from mesh.tui.rows import EventRow
from mesh.tui.sentences import sentence
from tests.unit.tui.boards import event_json


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("dead", {"cause": "silent"}, ("n1 saw n3 dead (silent)", "")),
        ("dead", {"detail": "n3 was declared dead"}, ("n1 saw n3 dead", "")),
        ("suspect", {"evidence": ["no ack", "no nack"]}, ("n1 suspects n3", "no ack")),
        ("refute", {}, ("n1 heard n3 refute", "")),
        ("refute", {"member": "n1", "detail": "refuted 'dead'"}, ("n1", "refuted 'dead'")),
        ("task", {"task_id": "t1", "state": "failed"}, ("n1 saw task t1 failed", "")),
        (
            "task",
            {"task_id": "t1", "state": "cancelled", "cause": "crash"},
            ("n1 saw task t1 cancelled", ""),
        ),
        (
            "task",
            {"task_id": "t1", "state": "leased", "cause": "first"},
            ("n1 saw task t1 running (first)", ""),
        ),
        (
            "task",
            {"task_id": "t1", "state": "ready", "cause": "crash", "detail": "n3 died"},
            ("n1 took task t1 back (crash)", "n3 died"),
        ),
        ("seek", {"detail": "trying again"}, ("n1 seeks a mesh", "trying again")),
        ("warn", {"task_id": "t1", "detail": "lost"}, ("n1 warns", "task t1: lost")),
        ("eclipse{", {}, ("n1 eclipse{ n3", "")),
    ],
)
def test_event_says_who_saw_what(
    kind: str, changes: dict[str, object], words: tuple[str, str]
) -> None:
    assert sentence(EventRow.read(event_json(kind, "n3", 0) | changes)) == words


def test_every_kind_of_event_has_its_phrase() -> None:
    for kind in EventKind:
        words, _ = sentence(EventRow.read(event_json(kind.value, "n3", 0)))
        assert words != f"n1 {kind.value} n3"
