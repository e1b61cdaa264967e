"""`submit`: hand the mesh a command to run.

The task's id is drawn here unless it is given: whatever becomes of the answer, the same id submitted again runs once.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from mesh.cli.arguments import (
    Commands,
    Parser,
    add_command,
    add_data,
    add_json,
    amount,
    data_dirs,
    distinct,
    pair,
    user_path,
    whole_number,
)
from mesh.cli.local_node import check_answers, node_at
from mesh.cli.stdio import complain
from mesh.cli.times import duration, moment
from mesh.errors import CommandRefused, ConfigError, MeshUnreachable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SUBMIT_S: Final = 60.0
NOT_FOUND: Final = 127
RETRIES_MAX: Final = 65_535
SECONDS_MAX: Final = 1e8

WORDS: Final = """\
--data may be given several times, and MESH_DATA may name several directories, apart by a colon: the first node
that answers takes the task. With --wait the next one is asked to go on when that node is lost.

With --wait the task that this command submitted ends with it: Ctrl-C cancels it and waits for its end (exit code
130; a second one leaves at once), SIGTERM (143), SIGHUP (129) and a reader that is gone (141) cancel it. A task that
was known already under its --id, so that this command submitted nothing, goes on in all of these cases, with the same
exit codes; mesh cancel ID ends it. Without --wait a task that was taken goes on whatever becomes of this command.

Exit code 125 says that this command has no exit code to pass on: the mesh refused the task or could not finish it,
somebody else cancelled it, or the last node to ask was lost, and then the task may go on. stderr says which, and
mesh task ID how it stands. A command may exit with 125 itself.
"""


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    submit = add_command(commands, "submit", run_submit, "run a command somewhere in the mesh")
    submit.usage = "mesh submit [options] -- COMMAND [ARGUMENT …]"
    submit.formatter_class = argparse.RawDescriptionHelpFormatter
    submit.epilog = WORDS
    submit.add_argument(
        "--wait",
        action="store_true",
        help="stream the command's output and exit as it does (125: the mesh failed it, see below)",
    )
    _add_names(submit)
    _add_terms(submit)
    _add_needs(submit)
    add_data(submit)
    add_json(submit, "print {id} as JSON; with --wait, the finished task on stderr")


def _add_names(submit: Parser) -> None:
    texts = {
        "--id": "the task's id: submitting the same id again starts nothing new (default: a fresh one)",
        "--queue": "the queue it belongs to (default: default); mesh queue sets how its tasks are given to members",
        "--key": "tasks with one key run on the same node (default: the task's id)",
    }
    for flag, text in texts.items():
        submit.add_argument(
            flag,
            metavar=flag.lstrip("-").upper(),
            type=_given_id if flag == "--id" else str,
            default=None if flag == "--id" else "",
            help=text,
        )


def _given_id(text: str) -> str:
    from mesh.core.ids import TASK_ID_CHARS_MAX

    expected = f"--id expects 1 to {TASK_ID_CHARS_MAX} characters, found"
    if not text:
        raise ConfigError(
            f"{expected} none, as from a variable that is not set: each submission would start it anew; "
            "leave --id out for a fresh id"
        )
    if len(text) > TASK_ID_CHARS_MAX:
        raise ConfigError(f"{expected} {len(text)}: shorten it, or give a hash of it")
    return text


def _add_terms(submit: Parser) -> None:
    """Add when it starts, and how often."""
    submit.add_argument(
        "--retries",
        metavar="N",
        type=whole_number("--retries", 0, RETRIES_MAX),
        default=0,
        help="start it again so often after a failure (default: 0); a node that is lost spends none",
    )
    submit.add_argument(
        "--retry-delay",
        metavar="DURATION",
        type=duration("--retry-delay", 0, SECONDS_MAX),
        default=None,
        help="the pause before the first retry, twice as long before each further one (default: 1s)",
    )
    when = submit.add_mutually_exclusive_group()
    when.add_argument(
        "--in",
        metavar="DURATION",
        dest="in_s",
        type=duration("--in", 0, SECONDS_MAX),
        default=None,
        help="do not start it before that has passed: 300ms, 5s, 10m, 2h, 7d",
    )
    when.add_argument(
        "--at",
        metavar="TIME",
        type=moment("--at"),
        default=None,
        help="do not start it before that: 03:00, 2027-01-31T03:00, or with a zone 2027-01-31T03:00Z",
    )


def _add_needs(submit: Parser) -> None:
    """Add where it may run, and in what surroundings."""
    submit.add_argument("--pool", metavar="POOL", default="", help="only on members of this pool")
    submit.add_argument(
        "--class", metavar="CLASS", default="", help="only on members of this class"
    )
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
    if not options.words:
        raise ConfigError(
            "a command is expected after --, found none; write for instance: mesh submit -- echo hello"
        )
    request = _request(options)
    nodes = data_dirs(options)
    if options.wait:
        return _submit_and_wait(options, nodes, request)
    from mesh.cli.text import print_json
    from mesh.cli.wait import known_text

    answer, is_again = _submit(nodes, request)
    if answer.get("known") and not is_again:
        complain(known_text(answer))
    if options.json:
        print_json({"id": answer["id"]}, is_line=True)
    else:
        print(answer["id"])
    return 0


def _submit(nodes: Sequence[Path], request: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the answer of the first node that takes it, and whether one before it may have taken it already."""
    is_again = False
    for node in nodes[:-1]:
        try:
            return _submit_at(node, request), is_again
        except (MeshUnreachable, CommandRefused) as error:
            complain(f"{error}: submitting to the next node")
            is_again = True
    return _submit_at(nodes[-1], request), is_again


def _submit_at(node: Path, request: dict[str, Any]) -> dict[str, Any]:
    check_answers(node)
    with node_at(node, SUBMIT_S) as client:
        answer: dict[str, Any] = client.call("submit", **request)
        return answer


def _submit_and_wait(
    options: argparse.Namespace, nodes: Sequence[Path], request: dict[str, Any]
) -> int:
    from mesh.cli.hints import shell_line
    from mesh.cli.wait import Waiter

    code = Waiter(nodes, request, is_id_given=bool(options.id)).run(is_json=options.json)
    if code == NOT_FOUND and (meant := shell_line(options.words)):
        complain(meant)
    return code


def _request(options: argparse.Namespace) -> dict[str, Any]:
    import random

    from mesh.core.ids import new_task_id

    request = {
        "argv": options.words,
        "env": distinct("--env", options.env),
        "cwd": str(user_path("--cwd", options.cwd).absolute()) if options.cwd else "",
        "id": options.id or new_task_id(random.SystemRandom()),
        "key": options.key,
        "queue": options.queue or "default",
        "pool": options.pool,
        "class": getattr(options, "class"),
        "labels": distinct("--label", options.label),
        "needs": distinct("--need", options.need),
        "retries": options.retries,
        "not_before": _not_before(options),
    }
    if options.retry_delay is not None:
        request["retry_delay_s"] = options.retry_delay
    return request


def _not_before(options: argparse.Namespace) -> float:
    import time

    if options.in_s is not None:
        return time.time() + float(options.in_s)
    if options.at is None:
        return 0.0
    if options.at <= time.time():
        complain("--at names a time that is past: the task may start at once")
    return float(options.at)
