"""`why`: the story of a member, as this host's node saw it, or of a task, as its voters have it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from mesh.cli.arguments import Commands, add_command, add_data, add_json
from mesh.cli.local_node import MAJORITY_S, answering_node
from mesh.errors import CommandRefused, ConfigError

if TYPE_CHECKING:
    from mesh.client import Client

NEAR_MAX: Final = 5

WORDS: Final = """\
Of a member: who suspected it, on what evidence, who confirmed it, whether it refuted, and what would have changed
the outcome. Every node has seen for itself: this is the story of the node that is asked, with its clock.

Of a task: what it waits for, each attempt, why it was started and how it ended; that is what a majority of the
task's voters has on record. And whom it was offered to first: its home, or, where members contested it, who was
called and what each bid; where its queue has another strategy, that one. Who is free just now, and what is set for
the queue, is what the node that is asked knows.
"""


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    parser = add_command(
        commands, "why", run_why, "tell why a member is dead, or a task has not run"
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = WORDS
    parser.add_argument(
        "whom",
        metavar="NAME|ID",
        help="a member's name or id, or a task's id; the beginning of an id is enough",
    )
    add_data(parser)
    add_json(parser)


def run_why(options: argparse.Namespace) -> int:
    """Print the story of one member, or of one task."""
    if not options.whom:
        raise ConfigError(
            "a member's name or id, or a task's id, is expected, found nothing; see `mesh members`, `mesh tasks`"
        )
    with answering_node(options, MAJORITY_S) as client:
        told = _ask(client, options.whom)
    if "task" in told:
        _print_task(told, options)
    else:
        _print_member(told, options)
    return 0


def _print_member(told: dict[str, Any], options: argparse.Namespace) -> None:
    from mesh.cli.text import print_json
    from mesh.cli.why_text import as_text, otherwise, story

    if options.json:
        print_json({**told, "story": story(told), "otherwise": otherwise(told)})
    else:
        print(as_text(told))


def _print_task(told: dict[str, Any], options: argparse.Namespace) -> None:
    import time

    from mesh.cli.text import print_json
    from mesh.cli.why_task import as_text, story, what_next

    task, now = told["task"], time.time()
    if options.json:
        print_json({**told, "story": story(task, now), "next": what_next(task, told["observer"])})
    else:
        print(as_text(task, told["observer"], now))


def _ask(client: Client, whom: str) -> dict[str, Any]:
    """Return the node's answer.

    Raises:
        CommandRefused: several are meant, or none; then members whose names are near are named.
    """
    from mesh.cli.which_task import ask_about

    try:
        answer: dict[str, Any] = client.call("why", whom=whom)
    except CommandRefused as error:
        members = client.call("members")
        names = sorted({member["name"] for member in members})
        is_known = whom in names or any(m["node_id"].startswith(whom.lower()) for m in members)
        if is_known:
            raise
        begun = [
            task["id"] for task in client.call("tasks")["tasks"] if task["id"].startswith(whom)
        ]
        if begun:
            return {
                "task": ask_about(client, "task", whom),
                "observer": client.call("status")["name"],
            }
        found = near(whom, names)
        guess = (
            f"did you mean {' or '.join(found)}?" if found else "see `mesh members`, `mesh tasks`"
        )
        raise CommandRefused(f"{error}: {guess}") from error
    return answer


def near(word: str, names: list[str]) -> list[str]:
    """Return the names that are like `word`, the likest first: few typing errors away, or it is a part of them."""
    from difflib import get_close_matches

    lower = {name.lower(): name for name in names}
    like = get_close_matches(word.lower(), lower, n=NEAR_MAX, cutoff=0.5)
    part = [name for name in lower if word.lower() in name]
    return [lower[name] for name in dict.fromkeys([*like, *part])][:NEAR_MAX]
