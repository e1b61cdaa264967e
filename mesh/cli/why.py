"""`why`: a member's story, as this host's node saw it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from mesh.cli.arguments import Commands, add_command, add_data, add_json
from mesh.cli.local_node import local_node
from mesh.errors import CommandRefused, ConfigError

if TYPE_CHECKING:
    from mesh.client import Client

NEAR_MAX: Final = 5

WORDS: Final = """\
Who suspected it, on what evidence, who confirmed it, whether it refuted, and what would have changed the
outcome. Every node has seen for itself: this is the story of the node that is asked, with its clock.
"""


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    parser = add_command(commands, "why", run_why, "tell why a member is alive, suspected or dead")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = WORDS
    parser.add_argument(
        "whom", metavar="NAME|ID", help="the member's name, its id, or the beginning of its id"
    )
    add_data(parser)
    add_json(parser)


def run_why(options: argparse.Namespace) -> int:
    """Print the story of one member."""
    from mesh.cli.text import print_json
    from mesh.cli.why_text import as_text, otherwise, story

    if not options.whom:
        raise ConfigError("a member's name or id is expected, found nothing; see `mesh members`")
    with local_node(options) as client:
        told = _ask(client, options.whom)
    if options.json:
        print_json({**told, "story": story(told), "otherwise": otherwise(told)})
    else:
        print(as_text(told))
    return 0


def _ask(client: Client, whom: str) -> dict[str, Any]:
    """Return the node's answer.

    Raises:
        CommandRefused: several members are meant, or none; then those whose names are near are named.
    """
    try:
        answer: dict[str, Any] = client.call("why", whom=whom)
    except CommandRefused as error:
        members = client.call("members")
        names = sorted({member["name"] for member in members})
        is_known = whom in names or any(m["node_id"].startswith(whom.lower()) for m in members)
        if is_known:
            raise
        found = near(whom, names)
        guess = f"did you mean {' or '.join(found)}?" if found else "see `mesh members`"
        raise CommandRefused(f"{error}: {guess}") from error
    return answer


def near(word: str, names: list[str]) -> list[str]:
    """Return the names that are like `word`, the likest first: few typing errors away, or it is a part of them."""
    from difflib import get_close_matches

    lower = {name.lower(): name for name in names}
    like = get_close_matches(word.lower(), lower, n=NEAR_MAX, cutoff=0.5)
    part = [name for name in lower if word.lower() in name]
    return [lower[name] for name in dict.fromkeys([*like, *part])][:NEAR_MAX]
