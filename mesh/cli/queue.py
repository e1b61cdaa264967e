"""`queue set` and `queue show`: how a queue's tasks are given to members, for the whole mesh."""

from __future__ import annotations

import argparse
from typing import Any, Final

from mesh.cli.arguments import Commands, Parser, add_command, add_data, add_json
from mesh.cli.local_node import MAJORITY_S, answering_node
from mesh.cli.queue_list import list_queues
from mesh.cli.stdio import complain

WORDS: Final = """\
A queue is a word that a task is submitted with (mesh submit --queue NAME; `default` where none is given). It is
there as soon as a task has it, and needs no setting. Its strategy says which member asks for a task:

  rendezvous   the task's home, which its key points to; another where that is busy (the default)
  contest      the fittest of some that are called
  round_robin  one member after the other
  pull         whoever is idle, the oldest task first

None of them decides who has a task: that is for its voters. A setting is kept as safely as a task is, is known at
the node that it was set at from then on, and wherever the queue has tasks within ten seconds.
"""


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    text = "set or show how a queue's tasks are given to members"
    queue = commands.add_parser("queue", help=text, description=f"{text[:1].upper()}{text[1:]}.")
    queue.formatter_class = argparse.RawDescriptionHelpFormatter
    queue.epilog = WORDS
    actions = queue.add_subparsers(metavar="ACTION", required=True, parser_class=Parser)
    setting = add_command(actions, "set", set_queue, "set a queue's strategy")
    setting.add_argument(
        "--strategy",
        metavar="STRATEGY",
        type=_strategy,
        required=True,
        help="rendezvous, contest, round_robin or pull",
    )
    showing = add_command(actions, "show", show_queue, "show a queue's strategy")
    listing = add_command(actions, "list", list_queues, "list the queues that something is set for")
    for parser in (setting, showing):
        parser.add_argument("queue", metavar="NAME", type=_name, help="the queue")
    for parser in (setting, showing, listing):
        add_data(parser)
        add_json(parser)


def _name(text: str) -> str:
    from mesh.queues.settings import check_name

    check_name(text)
    return text


def _strategy(text: str) -> str:
    from mesh.queues.settings import read_strategy

    return str(read_strategy(text))


def set_queue(options: argparse.Namespace) -> int:
    """Set a queue's strategy, and print what holds from now on."""
    from mesh.cli.text import print_json, printable

    with answering_node(options, MAJORITY_S) as client:
        found = client.call("queue_set", queue=options.queue, strategy=options.strategy)
    outcome = found["outcome"]
    if outcome == "overtaken":
        complain(
            f"{printable(options.queue)} was set to {options.strategy}, and by somebody else at the same time to what "
            "holds now"
        )
    if options.json:
        print_json(found)
    else:
        print(queue_line(found, is_kept=outcome == "kept"))
    return 0


def show_queue(options: argparse.Namespace) -> int:
    """Print a queue's strategy, as a majority holds it."""
    from mesh.cli.text import print_json

    with answering_node(options, MAJORITY_S) as client:
        found = client.call("queue_show", queue=options.queue)
    if options.json:
        print_json(found)
    else:
        print(queue_line(found))
    return 0


def queue_line(found: dict[str, Any], *, is_kept: bool = False) -> str:
    """Return a queue's setting in one line; `is_kept`: it was set so, and was so before."""
    from mesh.cli.text import printable, since

    line = f"{printable(found['queue'])}: {printable(found['strategy'])}"
    if found["set_at"] is None:
        return f"{line} (the default: nothing was set)"
    already = "already " if is_kept else ""
    return f"{line} ({already}set {since(found['set_at'])} ago at {printable(found['set_by'])})"
