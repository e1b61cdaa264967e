"""`submit`, `tasks`, `task` and `cancel`: give the mesh work and see where it is."""

from __future__ import annotations

import argparse
from typing import Any, Final

from mesh.cli.arguments import (
    Commands,
    Parser,
    add_command,
    add_data,
    add_json,
    amount,
    distinct,
    pair,
    user_path,
)
from mesh.cli.local_node import answering_node, local_node
from mesh.cli.stdio import complain
from mesh.errors import ConfigError

SUBMIT_S: Final = 60.0
CANCEL_S: Final = 20.0
CANCEL_POLL_S: Final = 0.05
UNFINISHED: Final = ("ready", "leased")
NOT_FOUND: Final = 127

WORDS: Final = """\
home     the member that the task's key points to: it is asked first, others when it is busy
keeper   the node that accepted the task, and keeps its record in memory
attempt  one run of the task on one node; its cause is why it was started:
           first run                  nothing ran before it
           the node before was lost   it was declared dead, or restarted
           the node before let it go  it left, or ran short of something
           the node before did not answer for it
"""


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    submit = add_command(commands, "submit", run_submit, "run a command somewhere in the mesh")
    submit.usage = "mesh submit [options] -- COMMAND [ARGUMENT …]"
    _add_submit_options(submit)
    tasks = add_command(commands, "tasks", show_tasks, "list the tasks of the mesh")
    task = add_command(
        commands, "task", show_task, "show one task and each of its attempts, or its output"
    )
    task.formatter_class = argparse.RawDescriptionHelpFormatter
    task.epilog = WORDS
    task.add_argument(
        "--output",
        action="store_true",
        help="print what the command wrote, as far as it is kept: stdout to stdout, stderr to stderr",
    )
    cancel = add_command(commands, "cancel", cancel_task, "cancel a task, stopping it if it runs")
    for parser in (task, cancel):
        parser.add_argument(
            "id", metavar="ID", help="the task's id, as `mesh submit` printed it, or how it begins"
        )
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

    if not options.words:
        raise ConfigError(
            "a command is expected after --, found none; write for instance: mesh submit -- echo hello"
        )
    request = _request(options)
    if options.wait:
        return _submit_and_wait(options, request)
    with answering_node(options, SUBMIT_S) as client:
        answer = client.call("submit", **request)
    if answer.get("known"):
        complain(f"task {answer['id']} is already known, nothing started")
    if options.json:
        print_json({"id": answer["id"]}, is_line=True)
    else:
        print(answer["id"])
    return 0


def _submit_and_wait(options: argparse.Namespace, request: dict[str, Any]) -> int:
    from mesh.cli.hints import shell_line
    from mesh.cli.wait import submit_and_wait

    with answering_node(options, SUBMIT_S) as client:
        code = submit_and_wait(client, request, is_json=options.json)
    if code == NOT_FOUND and (meant := shell_line(options.words)):
        complain(meant)
    return code


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
    from mesh.cli.task_text import task_table
    from mesh.cli.text import print_json

    with local_node(options) as client:
        found = client.call("tasks")
    if options.json:
        print_json(found["tasks"])
    else:
        print(task_table(found["tasks"]))
    if found["silent"]:
        names = ", ".join(found["silent"])
        complain(f"no answer from {names}: the tasks they keep are not in this list")
    return 0


def show_task(options: argparse.Namespace) -> int:
    """Print one task, or its output."""
    from mesh.cli.output import print_output
    from mesh.cli.which_task import ask_about

    with local_node(options) as client:
        task = ask_about(client, "task", options.id)
        if options.output:
            print_output(client, task)
            return 0
    _print_task(task, options)
    return 0


def cancel_task(options: argparse.Namespace) -> int:
    """Cancel one task, wait until it has ended, and print what became of it."""
    import time

    from mesh.cli.which_task import ask_about

    with answering_node(options, CANCEL_S) as client:
        task = ask_about(client, "cancel", options.id)
        had_ended = task["state"] not in UNFINISHED and not task["cancel_requested"]
        deadline = time.monotonic() + CANCEL_S
        while task["state"] in UNFINISHED and time.monotonic() < deadline:
            time.sleep(CANCEL_POLL_S)  # what runs is given a moment to end by itself
            task = client.call("task", id=task["id"])
    if options.json:
        _print_task(task, options)
    elif had_ended:
        print(f"{task['id']} had already ended: {task['state']}")
    else:
        print(f"{task['id']} {task['state']}")
    return 0


def _print_task(task: dict[str, Any], options: argparse.Namespace) -> None:
    from mesh.cli.task_text import task_facts
    from mesh.cli.text import print_json

    if options.json:
        print_json(task)
    else:
        print(task_facts(task))
