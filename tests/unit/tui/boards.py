"""Boards to draw: made as the node would make them, from JSON."""

from __future__ import annotations

from datetime import UTC

from mesh.tui.board import Board
from mesh.tui.look import Look
from mesh.tui.palette import CURSOR
from mesh.tui.screen import Screen

AT = 1_800_000_000.0  # 08:00:00 UTC


def member_json(number: int, **changes: object) -> dict[str, object]:
    return {
        "name": f"n{number}",
        "node_id": f"{number:016x}",
        "address": f"127.0.0.1:{7945 + number}",
        "state": "alive",
        "cause": "",
        "incarnation": 1,
        "boot": 7,
        "since": AT - 60.0 * number,
        "rtt_ms": None if number == 1 else 0.25 * number,
        "slots": 4,
        "used": number % 5,
        "load": 0.2 * number,
        "pool": "default",
        "class": "general",
        "labels": {"zone": "eu"},
        "version": "0.1.0",
        "self": number == 1,
    } | changes


def task_json(task_id: str, state: str, **changes: object) -> dict[str, object]:
    return {
        "id": task_id,
        "state": state,
        "queue": "default",
        "kind": "command",
        "argv": ["gzip", "-9", "a file"],
        "keeper": "n1",
        "owner": None if state == "ready" else "n2",
        "attempt": 1,
        "created": AT - 90,
        "started": None if state == "ready" else AT - 60,
        "ended": AT - 15 if state in {"done", "failed"} else None,
        "waits_for": "",
        "result": {"exit_code": 0, "error": ""} if state == "done" else None,
    } | changes


def event_json(kind: str, member: str, age_s: float, **changes: object) -> dict[str, object]:
    return {
        "at_ns": int((AT - age_s) * 1e9),
        "observer": "n1",
        "kind": kind,
        "member": member,
        "state": "",
        "cause": "",
        "evidence": [],
        "detail": "",
        "task_id": "",
    } | changes


def view_json(members: list[dict[str, object]], **changes: object) -> dict[str, object]:
    return {
        "node": {
            "name": "n1",
            "health": 0,
            "node_id": "1" * 16,
            "mesh_id": "3f9a2c1b7d0e4f55",
            "address": "127.0.0.1:7946",
            "phase": "member",
            "version": "0.1.0",
            "since": AT - 8_040,
            "sent": {"datagrams": 1_000},
            "received": {"datagrams": 1_000},
        },
        "members": members,
        "tasks": [],
        "task_counts": {},
        "running": [],
        "at": AT,
    } | changes


def board_of(members: list[dict[str, object]], **changes: object) -> Board:
    board = Board()
    board.fold({"view": view_json(members, **changes)})
    return board


def small_board() -> Board:
    members = [
        member_json(1),
        member_json(2, used=4, load=1.3),
        member_json(3, state="dead", cause="silent", since=AT - 20, rtt_ms=None, used=None),
    ]
    tasks = [
        task_json("k3j5m7p9q0r1", "leased", attempt=2),
        task_json("k3j5m7p9q0r2", "ready", waits_for="no slot is free"),
        task_json("k3j5m7p9q0r3", "done"),
    ]
    counts = {"ready": 1, "leased": 1, "done": 41, "failed": 0, "cancelled": 0}
    board = Board()
    evidence = ["no ack for 3.2 s"]
    for event in (
        event_json("join", "n2", 100),
        event_json("join", "n3", 99),
        event_json("suspect", "n3", 24, evidence=evidence),
        event_json("dead", "n3", 20, cause="silent", evidence=evidence),
    ):
        board.fold({"event": event})
    earlier = {"sent": {"datagrams": 979}, "received": {"datagrams": 972}}
    board.fold({"view": {"node": earlier, "at": AT - 10}})
    board.fold({"view": view_json(members, tasks=tasks, task_counts=counts)})
    return board


def text_of(board: Board, width: int, height: int, look: Look | None = None) -> list[str]:
    return lines_of(Screen(board, width, height, look or Look(), UTC))


def lines_of(screen: Screen) -> list[str]:
    return ["".join(piece.text for piece in line) for line in screen.render()]


def after(board: Board, *keys: str, look: Look | None = None, width: int = 80) -> Look:
    """Return the look of a screen of `width` by 24 after some keys."""
    look = look or Look(has_cursor=True)
    for key in keys:
        look = Screen(board, width, 24, look, UTC).press(key)
    return look


def cursor_line(board: Board, look: Look) -> str:
    """Return the one line that is shown in reverse."""
    lines = Screen(board, 80, 24, look, UTC).render()
    marked = [
        "".join(piece.text for piece in line)
        for line in lines
        if CURSOR in {piece.style for piece in line}
    ]
    assert len(marked) == 1
    return marked[0]


def page(board: Board, *keys: str, width: int = 80) -> str:
    """Return the screen after some keys."""
    return "\n".join(text_of(board, width, 24, after(board, *keys)))


def failed_task() -> dict[str, object]:
    attempts = [
        {"number": 1, "node": "n3", "cause": "first", "started": AT - 60, "ended": AT - 30,
         "exit_code": None, "error": "n3 died"},
        {"number": 2, "node": "n2", "cause": "crash", "started": AT - 29, "ended": AT - 9,
         "exit_code": 3, "error": ""},
    ]  # fmt: skip
    result = {
        "exit_code": 3,
        "error": "",
        "output_bytes": 5_000,
        "stdout_tail": "one\ntwo\t\x1b[31m",
        "stderr_tail": "no such file",
    }
    return task_json("k3j5", "failed", attempt=2, attempts=attempts, result=result, ended=AT - 9)


def contest_json(number: int, **changes: object) -> dict[str, object]:
    """Return a contest that n2 won in its first window, `number` seconds before the view."""
    return {
        "task_id": f"k3j5m7p9q0r{number}",
        "attempt": 1,
        "caller": "n1",
        "at": AT - number,
        "under_way": False,
        "window_ms": 4.2,
        "rounds": 1,
        "first_window": True,
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
        "after_ms": 5.3,
    } | changes


def contests_json(latest: list[dict[str, object]], **changes: object) -> dict[str, object]:
    return {
        "held": 120,
        "won": 118,
        "bids_mean": 1.18,
        "success": 0.91,
        "window_ms": 4.2,
        "factor": 2.31,
        "advice": "",
        "latest": latest,
    } | changes
