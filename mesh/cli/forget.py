"""`forget`: remove a member for good that is gone."""

from __future__ import annotations

import argparse
from typing import Final

from mesh.cli.arguments import Commands, add_command, add_data, add_json
from mesh.cli.local_node import answering_node
from mesh.errors import ConfigError

FORGET_S: Final = 20.0

WORDS: Final = """\
Only a member that is dead, or has left, is forgotten: it goes from every member's lists, and is tried
again by nobody. If it was alive after all, only cut off, it comes back by itself as soon as it hears of
this. Started again, on the same data directory, it is a member as before.

The work of a forgotten member is not ended by this: be sure that its host is off.
"""


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    parser = add_command(commands, "forget", run_forget, "remove a member for good that is gone")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = WORDS
    parser.add_argument(
        "whom",
        metavar="NAME|ID",
        help="the member's name, or its id (16 digits) if several of that name are gone",
    )
    add_data(parser)
    add_json(parser)


def run_forget(options: argparse.Namespace) -> int:
    """Let the mesh forget one member, and print which."""
    from mesh.cli.text import print_json, printable

    if not options.whom:
        raise ConfigError("a member's name or id is expected, found nothing; see `mesh members`")
    with answering_node(options, FORGET_S) as client:
        found = client.call("forget", whom=options.whom)
    if options.json:
        print_json(found)
        return 0
    who = printable(f"{found['name']} ({found['node_id']})")
    was = found["was"]
    print(
        f"{who} was forgotten already"
        if was == "forgotten"
        else f"{who} is forgotten; it was {was}"
    )
    return 0
