"""`submit`, `tasks`, `task` and `cancel`: give the mesh work and see where it is."""

from __future__ import annotations

import argparse
from typing import Any

from mesh.cli.arguments import (
    Commands,
    Parser,
    add_command,
    add_data,
    add_json,
    amount,
    data_dir,
    distinct,
    pair,
    user_path,
)
from mesh.errors import ConfigError

CANCEL_TIMEOUT_S = 20.0
CANCEL_POLL_S = 0.05


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    submit = add_command(commands, "submit", run_submit, "run a command somewhere in the mesh")
    submit.usage = "mesh submit [options] -- COMMAND [ARGUMENT …]"
    _add_submit_options(submit)
    tasks = add_command(commands, "tasks", show_tasks, "list the tasks of the mesh")
    task = add_command(commands, "task", show_task, "show one task and each of its attempts")
    cancel = add_command(commands, "cancel", cancel_task, "cancel a task, stopping it if it runs")
    for parser in (task, cancel):
        parser.add_argument("id", metavar="ID", help="the task's id, as `mesh submit` printed it")
    for parser in (submit, tasks, task, cancel):
        add_data(parser)
    add_json(submit, "print {id} as JSON; with --wait, the finished task on stderr")
    for parser in (tasks, task, cancel):
        add_json(parser)


def _add_submit_options(submit: Parser) -> None:
    submit.add_argument(
        "--wait",
        action="store_true",
        help="stream the command's output and exit as it does (125: the mesh failed it)",
    )
    texts = {
        "--id": "the task's id: submitting the same id again starts nothing new (default: a fresh one)",
        "--queue": "the queue it belongs to",
        "--key": "tasks with one key run on the same node (default: the task's id)",
        "--pool": "only on members of this pool",
        "--class": "only on members of this class",
    }
    for flag, text in texts.items():
        submit.add_argument(flag, metavar=flag.lstrip("-").upper(), default="", help=text)
    submit.add_argument(
        "--cwd", metavar="DIR", default="", help="working directory on the executing host"
    )
    for flag, metavar, reader, text in (
        ("--label", "KEY=VALUE", pair("--label"), "only on members with this label"),
        ("--need", "KEY=N", amount("--need"), "how much of an offered amount it takes, like gpu=1"),
        ("--env", "KEY=VALUE", pair("--env"), "a variable of the command's environment"),
    ):
        submit.add_argument(
            flag, metavar=metavar, type=reader, action="append", default=[], help=text
        )


def run_submit(options: argparse.Namespace) -> int:
    """Hand a command to the mesh; with `--wait`, be its stdout, stderr and exit code."""
    from mesh.cli.text import print_json
    from mesh.client import Client

    if not options.words:
        raise ConfigError(
            "a command is expected after --, found none; write for instance: mesh submit -- echo hello"
        )
    with Client(data_dir(options)) as client:
        if options.wait:
            from mesh.cli.wait import submit_and_wait

            return submit_and_wait(client, _request(options), is_json=options.json)
        task_id = client.call("submit", **_request(options))["id"]
    if options.json:
        print_json({"id": task_id}, is_line=True)
    else:
        print(task_id)
    return 0


def _request(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "argv": options.words,
        "env": distinct("--env", options.env),
        "cwd": str(user_path("--cwd", options.cwd).absolute()) if options.cwd else "",
        "id": options.id,
        "key": options.key,
        "queue": options.queue or "default",
        "pool": options.pool,
        "class": getattr(options, "class"),
        "labels": distinct("--label", options.label),
        "needs": distinct("--need", options.need),
    }


def show_tasks(options: argparse.Namespace) -> int:
    """Print the tasks that any living member keeps."""
    import sys

    from mesh.cli.text import print_json, table
    from mesh.client import Client

    with Client(data_dir(options)) as client:
        found = client.call("tasks")
    if options.json:
        print_json(found["tasks"])
    else:
        headings = ("ID", "STATE", "AGE", "KEEPER", "OWNER", "ATTEMPT", "EXIT", "COMMAND")
        print(table(headings, [_task_row(task) for task in found["tasks"]]))
    if found["silent"]:
        names = ", ".join(found["silent"])
        print(
            f"mesh: no answer from {names}: the tasks they keep are not in this list",
            file=sys.stderr,
        )
    return 0


def _task_row(task: dict[str, Any]) -> tuple[object, ...]:
    from mesh.cli.text import since

    result = task["result"]
    command = " ".join(task["argv"])
    return (
        task["id"],
        task["state"],
        since(task["created"]),
        task["keeper"],
        task["owner"] or "-",
        task["attempt"],
        "-" if result is None or result["exit_code"] is None else result["exit_code"],
        command if len(command) <= 60 else f"{command[:59]}…",
    )


def show_task(options: argparse.Namespace) -> int:
    """Print one task."""
    from mesh.client import Client

    with Client(data_dir(options)) as client:
        task = client.call("task", id=options.id)
    _print_task(task, options)
    return 0


def cancel_task(options: argparse.Namespace) -> int:
    """Cancel one task, wait until it has ended, and print what became of it."""
    import time

    from mesh.client import Client

    with Client(data_dir(options)) as client:
        task = client.call("cancel", id=options.id)
        deadline = time.monotonic() + CANCEL_TIMEOUT_S
        while task["state"] in {"ready", "leased"} and time.monotonic() < deadline:
            time.sleep(CANCEL_POLL_S)  # what runs is given a moment to end by itself
            task = client.call("task", id=options.id)
    if options.json:
        _print_task(task, options)
    else:
        print(f"{task['id']} {task['state']}")
    return 0


def _print_task(task: dict[str, Any], options: argparse.Namespace) -> None:
    from mesh.cli.text import facts, print_json, since, table

    if options.json:
        print_json(task)
        return
    result = task["result"]
    lines: list[tuple[str, object]] = [
        ("id", task["id"]),
        ("state", task["state"]),
        ("command", " ".join(task["argv"])),
        ("queue", task["queue"]),
        ("keeper", task["keeper"]),
        ("home", task["home"] or "-"),
        ("owner", task["owner"] or "-"),
        ("created", f"{since(task['created'])} ago"),
    ]
    lines += [(name.replace("_", " "), task[name]) for name in ("cause", "waits_for") if task[name]]
    if result is not None:
        lines.append(("exit code", "-" if result["exit_code"] is None else result["exit_code"]))
        if result["error"]:
            lines.append(("error", result["error"]))
        lines.append(("output", f"{result['output_bytes']} bytes"))
    print(facts(lines))
    print()
    print(table(("ATTEMPT", "NODE", "CAUSE", "TOOK", "EXIT", "ERROR"), _attempt_rows(task)))


def _attempt_rows(task: dict[str, Any]) -> list[tuple[object, ...]]:
    from mesh.cli.text import since
    from mesh.core.time import format_duration

    rows: list[tuple[object, ...]] = []
    for number, attempt in enumerate(task["attempts"], 1):
        started, ended, code = attempt["started"], attempt["ended"], attempt["exit_code"]
        if started is None:
            took = "-"
        else:
            took = since(started) if ended is None else format_duration(ended - started)
        rows.append(
            (
                number,
                attempt["node"],
                attempt["cause"],
                took,
                "-" if code is None else code,
                attempt["error"] or "-",
            )
        )
    return rows
