"""`tasks`, `task`, `cancel` and `retry`: see where the mesh's work is, end it, or let it be done anew."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from mesh.cli.arguments import Commands, add_command, add_data, add_json
from mesh.cli.local_node import MAJORITY_S, answering_node
from mesh.cli.stdio import complain
from mesh.errors import CommandRefused

if TYPE_CHECKING:
    from mesh.client import Client

CANCEL_S: Final = 40.0
"""The node gives up itself before that, and says why."""

END_S: Final = 20.0
END_POLL_S: Final = 0.1
RETRY_S: Final = 20.0
EXIT_FAILED: Final = 1

WORDS: Final = """\
state    scheduled  its time has not come, or that of its next try
         ready      waits for a slot
         running    a node has it (`leased` in JSON): nobody else can
         frozen     this node has it, and cannot tell whether its lease lives: the run is stopped until it can
                    (in JSON `leased`, with `frozen` true)
         lost       whoever had it runs it no more, and nobody else has it yet (in JSON `leased`, with `lost`
                    true): it waits as one that is ready does
         done, failed, cancelled: for good; mesh retry submits a failed one anew
home     the member that the task's key points to: it is asked first, others when it is busy. Only a task that has
         not ended, of a queue with the strategy rendezvous, has one, and none is named where too few of the queue's
         voters answer to know that; mesh why ID says of the others why they ran there
origin   the node that took the task in (`keeper` in JSON); its record is with the task's voters
attempt  one run of the task on one node; its cause is why it was started, not why there:
           first run                                nothing ran before it
           the run before failed                    and a retry was left
           the node before was not heard of any more  its lease lapsed
           the node before was lost                 that its session is over is proven
           the node before let it go                it left, or ran short of something
began    when its process was started (`started` in JSON): its node knows, and says so at the end. Of one that still
         runs elsewhere, or was lost, it is when its node asked for it (`claimed` in JSON), a moment before as a rule
"""


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
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
    task.add_argument(
        "id", metavar="ID", help="the task's id, as `mesh submit` printed it, or how it begins"
    )
    cancel = add_command(commands, "cancel", cancel_tasks, "cancel tasks, stopping those that run")
    retry = add_command(commands, "retry", retry_tasks, "submit tasks anew that failed for good")
    for parser in (cancel, retry):
        parser.add_argument("ids", metavar="ID", nargs="+", help="a task's id, or how it begins")
    for parser in (tasks, task, cancel, retry):
        add_data(parser)
        add_json(
            parser,
            "print a JSON object a line" if parser is retry else "print JSON for programs",
        )


def show_tasks(options: argparse.Namespace) -> int:
    """Print the tasks that the local node votes on."""
    from mesh.cli.task_text import task_table
    from mesh.cli.text import print_json

    with answering_node(options, MAJORITY_S) as client:
        found = client.call("tasks")
        standstill = client.call("status")["registers"].get("standstill", "")
    if standstill:
        complain(standstill)
    if options.json:
        print_json(found["tasks"])
    else:
        print(task_table(found["tasks"]))
        print(f"\n{found['local']}")
    return 0


def show_task(options: argparse.Namespace) -> int:
    """Print one task, or its output."""
    from mesh.cli.output import print_output
    from mesh.cli.which_task import ask_about

    with answering_node(options, MAJORITY_S) as client:
        task = ask_about(client, "task", options.id)
        if options.output:
            print_output(client, task)
            return 0
    _print_task(task, options)
    return 0


def cancel_tasks(options: argparse.Namespace) -> int:
    """Cancel tasks one after another, wait until each has ended, and print what became of it."""

    def cancel(client: Client, given: str) -> None:
        _print_cancelled(_cancel(client, given), options)

    return _each(options, CANCEL_S, cancel)


def retry_tasks(options: argparse.Namespace) -> int:
    """Submit each task anew that failed for good, and print the new one's id."""
    from mesh.cli.text import print_json
    from mesh.cli.which_task import ask_about

    def retry(client: Client, given: str) -> None:
        answer = ask_about(client, "retry", given)
        if answer.get("known"):
            complain(f"{answer['retry_of']} was retried already, as {answer['id']}")
        if options.json:
            print_json({"id": answer["id"], "retry_of": answer["retry_of"]}, is_line=True)
        else:
            print(answer["id"])

    return _each(options, RETRY_S, retry)


def _each(options: argparse.Namespace, timeout_s: float, do: Callable[[Client, str], None]) -> int:
    """Do it to each task; one that is refused is said, and the others are done all the same."""
    code = 0
    with answering_node(options, timeout_s) as client:
        for given in options.ids:
            try:
                do(client, given)
            except CommandRefused as error:
                complain(str(error))
                code = EXIT_FAILED
    return code


def _cancel(client: Client, given: str) -> tuple[dict[str, Any], bool]:
    """Return the task as it is after cancelling, and whether it had ended before."""
    import time

    from mesh.cli.which_task import ask_about
    from mesh.tasks.words import UNFINISHED

    task = ask_about(client, "cancel", given)
    had_ended = task["state"] not in UNFINISHED and not task["cancel_requested"]
    deadline = time.monotonic() + END_S
    while task["state"] in UNFINISHED and time.monotonic() < deadline:
        time.sleep(END_POLL_S)  # what runs is given a moment to end by itself
        task = client.call("task", id=task["id"])
    return task, had_ended


def _print_cancelled(found: tuple[dict[str, Any], bool], options: argparse.Namespace) -> None:
    from mesh.cli.text import printable
    from mesh.tasks.words import UNFINISHED

    task, had_ended = found
    name, owner = printable(task["id"]), printable(task["owner"])
    if options.json:
        _print_task(task, options)
    elif had_ended:
        print(f"{name} had already ended: {task['state']}")
    elif task["state"] in UNFINISHED:
        print(f"{name} is being stopped on {owner}, and will not be started again")
    else:
        print(f"{name} {task['state']}")


def _print_task(task: dict[str, Any], options: argparse.Namespace) -> None:
    from mesh.cli.task_text import task_facts
    from mesh.cli.text import print_json

    if options.json:
        print_json(task)
    else:
        print(task_facts(task))
