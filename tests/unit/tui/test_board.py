"""The board: order, bounds, and what is left out."""

from __future__ import annotations

import pytest

from mesh.tui import board as boards_module
from mesh.tui.board import EVENTS_MAX, FRESH_DEATH_S, Board
from tests.unit.tui.boards import AT, board_of, event_json, member_json, task_json, view_json


def test_members_stand_in_the_order_of_what_needs_attention() -> None:
    old = AT - FRESH_DEATH_S - 1
    members = [
        member_json(10),
        member_json(2),
        member_json(3, state="dead", since=old),
        member_json(4, state="left"),
        member_json(5, state="dead", since=AT - 30),
        member_json(6, state="dead", since=AT - 5),
        member_json(7, state="suspect"),
    ]
    board = board_of(members)
    assert [member.name for member in board.members] == ["n7", "n6", "n5", "n2", "n10", "n3", "n4"]
    assert board.member_counts == {"alive": 2, "dead": 3, "left": 1, "suspect": 1}


def test_order_does_not_depend_on_the_order_in_the_view() -> None:
    members = [member_json(n, state="alive" if n % 2 else "suspect") for n in range(1, 30)]
    backwards = board_of(members[::-1])
    assert board_of(members).members == backwards.members


def test_what_runs_stands_first_then_what_waits_the_next_on_top_then_what_is_over() -> None:
    tasks = [
        task_json("waits", "ready", created=AT - 5),
        task_json("next", "ready", created=AT - 50),
        task_json("ended", "done", ended=AT - 9),
        task_json("cut", "cancelled", ended=AT - 2),
        task_json("runs", "leased", started=AT - 100),
        task_json("runs too", "leased", started=AT - 3),
    ]
    assert [task.id for task in board_of([], tasks=tasks).tasks] == [
        "runs too",
        "runs",
        "next",
        "waits",
        "cut",
        "ended",
    ]


def test_task_that_runs_here_for_another_node_is_shown_once() -> None:
    running = [
        {"id": "a", "attempt": 1, "since": AT - 3, "argv": ["true"]},
        {"id": "b", "attempt": 2, "since": AT - 4, "argv": ["true"]},
    ]
    board = board_of([], tasks=[task_json("a", "leased")], running=running)
    assert [(task.id, task.owner, task.origin) for task in board.tasks] == [
        ("b", "n1", ""),
        ("a", "n2", "n1"),
    ]


def test_sums_count_what_runs_here_for_others_too() -> None:
    running = [{"id": name, "attempt": 1, "since": AT - 4} for name in "bc"]
    counts = {"leased": 1, "done": 5}
    board = board_of([], tasks=[task_json("a", "leased")], running=running, task_counts=counts)
    shown = {state: count for state, count in board.shown_counts.items() if count}
    assert shown == {"running": 3, "done": 5}


def test_events_are_bounded_and_newest_first() -> None:
    board = Board()
    for number in range(EVENTS_MAX + 10):
        board.fold({"event": event_json("join", f"n{number}", 0)})
    assert len(board.events) == EVENTS_MAX
    assert board.events[0].member == f"n{EVENTS_MAX + 9}"


def test_members_and_verdicts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards_module, "MEMBERS_MAX", 3)
    board = board_of([member_json(n) for n in range(1, 6)])
    assert len(board.members) == 3
    for number in range(1, 6):
        board.fold({"event": event_json("dead", f"n{number}", 0)})
    assert list(board.verdicts) == ["n3", "n4", "n5"]


def test_own_load_and_done_tasks_become_the_past() -> None:
    board = Board()
    for second in range(12):
        view = view_json(
            [member_json(1, load=0.5)], at=AT + second, task_counts={"done": 3 * second}
        )
        board.fold({"view": view})
    assert board.history.load.last(1) == [0.5]
    assert board.history.done.last(1) == [3.0]


def test_routine_of_tasks_is_no_event_but_a_lost_or_failed_one_is() -> None:
    board = Board()
    for state, cause in [
        ("ready", ""),
        ("leased", "first"),
        ("done", ""),
        ("ready", "crash"),
        ("leased", "crash"),
        ("failed", ""),
    ]:
        board.fold({"event": event_json("task", "n2", 3, state=state, cause=cause)})
    assert [(event.state, event.cause) for event in board.events] == [
        ("failed", ""),
        ("ready", "crash"),
    ]


def test_item_of_another_kind_changes_nothing() -> None:
    board = Board()
    board.fold({"weather": "fine"})
    assert board.version == 0


def test_restart_forgets_events_and_keeps_the_last_view() -> None:
    board = Board()
    board.fold({"event": event_json("join", "n2", 0)})
    board.fold({"view": view_json([member_json(1)])})
    board.fold({"event": event_json("dead", "n1", 0)})
    board.restart()
    assert not board.events
    assert not board.verdicts
    assert board.members
