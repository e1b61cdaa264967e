"""Tasks as tables and facts for people: one word for one thing, here as everywhere.

The **origin** took the task in; the **home** is the member that the task's key points to; an **attempt** is one
run of it, on one **node**.
"""

from __future__ import annotations

import time
from typing import Any, Final

from mesh.cli.hints import shell_line
from mesh.cli.text import clock, facts, since, table
from mesh.cli.waiting import waits_for
from mesh.core.time import format_duration
from mesh.tasks.words import (
    FROZEN,
    attempt_end,
    attempt_reason,
    loss_reason,
    queue_text,
    state_word,
    stretch,
    wants_text,
)

_COMMAND_CHARS: Final = 60
_ID_CHARS: Final = 40
"""A UUID's 36 and a retry's number: what is longer is cut, and is whole in JSON and in the facts of its task."""


def task_table(tasks: list[dict[str, Any]]) -> str:
    """Return the list of tasks."""
    headings = ("ID", "STATE", "TIME", "ORIGIN", "NODE", "ATTEMPT", "EXIT", "COMMAND")
    return table(headings, [_row(task) for task in tasks])


def is_lost(task: dict[str, Any]) -> bool:
    """Say whether a task is on record as one that runs, and is known not to; a node of an earlier version does not say."""
    return bool(task.get("lost")) and task["state"] == "leased"


def _is_frozen(task: dict[str, Any]) -> bool:
    return bool(task.get("frozen")) and task["state"] == "leased" and not is_lost(task)


def word_of(task: dict[str, Any]) -> str:
    """Return a task's state in one word."""
    if _is_frozen(task):
        return "frozen"
    return state_word(task["state"], is_lost=is_lost(task))


def stretch_of(task: dict[str, Any]) -> tuple[float | None, float | None]:
    """Return from when to when a task waits, runs or ran."""
    attempts = task["attempts"]
    return stretch(
        state_word(task["state"], is_lost=is_lost(task)),
        created=task["created"],
        started=task["started"],
        ended=task["ended"],
        lost=task["lost_since"] if is_lost(task) else attempts[-1]["ended"] if attempts else None,
    )


def _row(task: dict[str, Any]) -> tuple[object, ...]:
    result = task["result"]
    command = " ".join(task["argv"])
    return (
        _short_id(task["id"]),
        word_of(task),
        _time(task),
        task["keeper"],
        task["owner"] or "-",
        task["attempt"] or "-",
        "-" if result is None or result["exit_code"] is None else result["exit_code"],
        command if len(command) <= _COMMAND_CHARS else f"{command[: _COMMAND_CHARS - 1]}…",
    )


def _short_id(task_id: str) -> str:
    """Return an id cut in its middle: its beginning finds the task again, and ids differ at their ends."""
    if len(task_id) <= _ID_CHARS:
        return task_id
    tail = (_ID_CHARS - 1) // 2
    return f"{task_id[: _ID_CHARS - 1 - tail]}…{task_id[-tail:]}"


def _time(task: dict[str, Any]) -> str:
    """Return how long the task has waited, runs, or ran."""
    begin, end = stretch_of(task)
    return "-" if begin is None else format_duration((end or time.time()) - begin)


def task_facts(task: dict[str, Any]) -> str:
    """Return one task and a table of its attempts."""
    result = task["result"]
    lines: list[tuple[str, object]] = [
        ("id", task["id"]),
        ("state", _state(task)),
        ("command", " ".join(task["argv"])),
        ("queue", queue_text(task)),
        ("origin", task["keeper"]),
        ("home", task["home"] or "-"),
        ("node", task["owner"] or "-"),
        ("created", f"{since(task['created'])} ago"),
    ]
    if asked := wants_text(task):
        lines.append(("asks for", asked))
    if reason := waits_for(task) or task["waits_for"]:
        lines.append(("waits for", reason))
    if task["retries_left"]:
        lines.append(("retries", f"{task['retries_left']} left"))
    if task["retry_of"]:
        lines.append(("retry of", task["retry_of"]))
    if result is not None:
        lines.append(("exit code", "-" if result["exit_code"] is None else result["exit_code"]))
        if result["error"]:
            lines.append(("error", result["error"]))
        if result["exit_code"] == 127 and (meant := shell_line(task["argv"])):
            lines.append(("hint", meant))
        how = f" (mesh task {task['id']} --output)" if result["output_bytes"] else ""
        lines.append(("output", f"{result['output_bytes']} bytes{how}"))
    headings = ("ATTEMPT", "NODE", "BEGAN", "TOOK", "END", "CAUSE", "ERROR")
    return f"{facts(lines)}\n\n{table(headings, _attempt_rows(task))}"


def _state(task: dict[str, Any]) -> str:
    is_stopping = task["cancel_requested"] and task["state"] == "leased"
    why = f": {loss_reason(task['lost_cause'])}" if is_lost(task) else ""
    why = f": {FROZEN}" if _is_frozen(task) else why
    return word_of(task) + (", being cancelled" if is_stopping else "") + why


def _attempt_rows(task: dict[str, Any]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for attempt in task["attempts"]:
        started, ended, code = attempt["started"], attempt["ended"], attempt["exit_code"]
        until = task["lost_since"] if ended is None and is_lost(task) else ended
        if started is None:
            took = "-"
        else:
            took = since(started) if until is None else format_duration(max(0.0, until - started))
        rows.append(
            (
                attempt["number"],
                f"{attempt['node']} (home)" if attempt["node"] == task["home"] else attempt["node"],
                "-" if started is None else clock(started),
                took,
                attempt_end(
                    is_over=ended is not None,
                    end=attempt.get("end", ""),
                    exit_code=code,
                    is_lost=is_lost(task),
                ),
                attempt_reason(attempt["cause"]),
                attempt["error"] or "-",
            )
        )
    return rows
