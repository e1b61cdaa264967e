"""Tasks as tables and facts for people: one word for one thing, here as everywhere.

The **keeper** accepted the task and keeps its record; the **home** is the member that the task's key
points to; an **attempt** is one run of it, on one **node**.
"""

from __future__ import annotations

import time
from typing import Any, Final

from mesh.cli.hints import shell_line
from mesh.cli.text import clock, facts, since, table
from mesh.core.time import format_duration
from mesh.work.words import attempt_reason, stretch

_COMMAND_CHARS: Final = 60


def task_table(tasks: list[dict[str, Any]]) -> str:
    """Return the list of tasks."""
    headings = ("ID", "STATE", "TIME", "KEEPER", "NODE", "ATTEMPT", "EXIT", "COMMAND")
    return table(headings, [_row(task) for task in tasks])


def _row(task: dict[str, Any]) -> tuple[object, ...]:
    result = task["result"]
    command = " ".join(task["argv"])
    return (
        task["id"],
        task["state"],
        _time(task),
        task["keeper"],
        task["owner"] or "-",
        task["attempt"] or "-",
        "-" if result is None or result["exit_code"] is None else result["exit_code"],
        command if len(command) <= _COMMAND_CHARS else f"{command[: _COMMAND_CHARS - 1]}…",
    )


def _time(task: dict[str, Any]) -> str:
    """Return how long the task has waited, runs, or ran."""
    attempts = task["attempts"]
    begin, end = stretch(
        task["state"],
        created=task["created"],
        started=task["started"],
        ended=task["ended"],
        lost=attempts[-1]["ended"] if attempts else None,
    )
    return "-" if begin is None else format_duration((end or time.time()) - begin)


def task_facts(task: dict[str, Any]) -> str:
    """Return one task and a table of its attempts."""
    result = task["result"]
    lines: list[tuple[str, object]] = [
        ("id", task["id"]),
        ("state", task["state"]),
        ("command", " ".join(task["argv"])),
        ("queue", task["queue"]),
        ("keeper", task["keeper"]),
        ("home", task["home"] or "-"),
        ("node", task["owner"] or "-"),
        ("created", f"{since(task['created'])} ago"),
    ]
    if task["waits_for"]:
        lines.append(("waits for", task["waits_for"]))
    if result is not None:
        lines.append(("exit code", "-" if result["exit_code"] is None else result["exit_code"]))
        if result["error"]:
            lines.append(("error", result["error"]))
        if result["exit_code"] == 127 and (meant := shell_line(task["argv"])):
            lines.append(("hint", meant))
        how = f" (mesh task {task['id']} --output)" if result["output_bytes"] else ""
        lines.append(("output", f"{result['output_bytes']} bytes{how}"))
    headings = ("ATTEMPT", "NODE", "BEGAN", "TOOK", "END", "WHY THERE", "ERROR")
    return f"{facts(lines)}\n\n{table(headings, _attempt_rows(task))}"


def _attempt_rows(task: dict[str, Any]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for attempt in task["attempts"]:
        started, ended, code = attempt["started"], attempt["ended"], attempt["exit_code"]
        if started is None:
            took = "-"
        else:
            took = since(started) if ended is None else format_duration(ended - started)
        rows.append(
            (
                attempt["number"],
                attempt["node"],
                "-" if started is None else clock(started),
                took,
                "runs" if ended is None else "cut off" if code is None else f"exit {code}",
                attempt_reason(attempt["cause"]),
                attempt["error"] or "-",
            )
        )
    return rows
