"""Tasks as tables and facts for people: one word for one thing, here as everywhere.

The **keeper** accepted the task and keeps its record; the **home** is the member that the task's key
points to; an **attempt** is one run of it, on one **node**.
"""

from __future__ import annotations

from typing import Any, Final

from mesh.cli.hints import shell_line
from mesh.cli.text import facts, since, table
from mesh.core.time import format_duration

CAUSES: Final = {
    "first": "first run",
    "crash": "crash",
    "released": "released",
    "lapse": "lapse",
}
"""Why an attempt was started."""

_COMMAND_CHARS: Final = 60


def task_table(tasks: list[dict[str, Any]]) -> str:
    """Return the list of tasks."""
    headings = ("ID", "STATE", "AGE", "KEEPER", "NODE", "ATTEMPT", "EXIT", "COMMAND")
    return table(headings, [_row(task) for task in tasks])


def _row(task: dict[str, Any]) -> tuple[object, ...]:
    result = task["result"]
    command = " ".join(task["argv"])
    return (
        task["id"],
        task["state"],
        since(task["created"]),
        task["keeper"],
        task["owner"] or "-",
        task["attempt"] or "-",
        "-" if result is None or result["exit_code"] is None else result["exit_code"],
        command if len(command) <= _COMMAND_CHARS else f"{command[: _COMMAND_CHARS - 1]}…",
    )


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
    attempts = table(("ATTEMPT", "NODE", "CAUSE", "TOOK", "EXIT", "ERROR"), _attempt_rows(task))
    return f"{facts(lines)}\n\n{attempts}"


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
                CAUSES.get(attempt["cause"], attempt["cause"]),
                took,
                "-" if code is None else code,
                attempt["error"] or "-",
            )
        )
    return rows
