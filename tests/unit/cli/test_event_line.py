"""Each event as a line of `mesh events`."""

from __future__ import annotations

from typing import Any

import pytest

from mesh.cli.event_line import event_line


def event(kind: str, **more: object) -> dict[str, Any]:
    return {
        "at_ns": 0, "observer": "alpha", "kind": kind, "member": "", "state": "", "cause": "",
        "detail": "", "evidence": [], "task_id": "", **more,
    }  # fmt: skip


def said(kind: str, **more: object) -> str:
    _, found, sentence = event_line(event(kind, **more)).split("  ", 2)
    assert found == kind or found.startswith(kind)
    return sentence.strip()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            {"state": "failed", "detail": "exit code 1 (attempt 1)"},
            "alpha: task t1 failed on vm: exit code 1 (attempt 1)",
        ),
        (
            {"state": "leased", "cause": "first", "detail": "attempt 1"},
            "alpha: task t1 runs on vm (attempt 1)",
        ),
        (
            {"state": "leased", "cause": "crash", "detail": "attempt 2"},
            "alpha: task t1 runs on vm (attempt 2, after a crash)",
        ),
        (
            {"state": "ready", "cause": "crash", "detail": "vm was declared dead"},
            "alpha: task t1 was lost on vm, and is ready again: vm was declared dead",
        ),
        ({"state": "cancelled", "member": ""}, "alpha: task t1 cancelled"),
    ],
)
def test_event_of_a_task_names_observer_task_state_node_and_attempt(
    more: dict[str, Any], sentence: str
) -> None:
    assert said("task", **{"member": "vm", "task_id": "t1", **more}) == sentence


@pytest.mark.parametrize(
    ("kind", "more", "sentence"),
    [
        (
            "dead",
            {"cause": "silent", "detail": "was declared dead at h:1", "evidence": ["no answer"]},
            "alpha saw gamma dead (silent): no answer",
        ),
        (
            "update",
            {"detail": "changed what it declares (now unfit: exit code 1 (of 2)) at h:1"},
            "alpha saw gamma change what it declares (now unfit: exit code 1 (of 2))",
        ),
        (
            "update",
            {"detail": "changed what it declares at h:1"},
            "alpha saw gamma change what it declares",
        ),
        (
            "forget",
            {"detail": "is forgotten; it was last at h:1", "evidence": ["asked for at beta"]},
            "alpha forgot gamma: asked for at beta",
        ),
        ("join", {"detail": "joined at h:1"}, "alpha saw gamma join at h:1"),
        ("suspect", {"evidence": ["no ack"]}, "alpha suspects gamma: no ack"),
        ("found", {"member": "alpha", "detail": "founded mesh 1"}, "alpha founded mesh 1"),
        (
            "seek",
            {"member": "alpha", "detail": "the only seed is this node itself"},
            "alpha says: the only seed is this node itself",
        ),
        ("warn", {"member": "", "detail": "odd"}, "alpha says: odd"),
        ("conflict", {"detail": "two are called gamma"}, "alpha says: two are called gamma"),
        ("novelty", {}, "alpha says: novelty"),
    ],
)
def test_every_event_says_who_saw_it(kind: str, more: dict[str, Any], sentence: str) -> None:
    assert said(kind, **{"member": "gamma", **more}) == sentence


def test_names_in_an_event_cannot_move_the_cursor() -> None:
    assert "\x1b" not in event_line(event("join", member="\x1b[2J", detail="joined at h:1"))
