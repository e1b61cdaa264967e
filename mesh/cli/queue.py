"""`queue set` and `queue show`: how a queue's tasks are given to members, and who is fit for them, for the whole mesh."""

from __future__ import annotations

import argparse
from typing import Any, Final

from mesh.cli.arguments import Commands, Parser, add_command, add_data, add_json
from mesh.cli.local_node import MAJORITY_S, answering_node
from mesh.cli.queue_list import list_queues, weights_words
from mesh.cli.stdio import complain

WORDS: Final = """\
A queue is a word that a task is submitted with (mesh submit --queue NAME; `default` where none is given). It is
there as soon as a task has it, and needs no setting. Its strategy says which member asks for a task:

  rendezvous   the task's home, which its key points to; another where that is busy (the default)
  contest      the fittest of some that are called
  round_robin  one member after the other
  pull         whoever is idle, the oldest task first

None of them decides who has a task: that is for its voters.

Who is fittest is a sum of parts, each weighed; --weight sets what a part counts for this queue, 0 leaves it out, and
only the shares matter. Parts that are not named stay as they are; PART=default sets one back, `default` all of them.
By default they count:

  free_slots   0.25   how many of its slots are free
  cpu          0.20   how idle its processors are
  lag          0.05   its loop is on time
  history      0.25   how tasks of this queue fared on it of late: on whom they fail is called last
  match        0.05   how little of what is special about it the task does without
  distance     0.05   it is near the task's voters

The sum is from 0 to 1; seven eighths of it are the score, and one eighth more has a member that is dedicated to the
queue. Scores within one of eight steps count as equal, and the task's own lot decides between them, so that not all
go to one member.

A setting is kept as safely as a task is, is known at the node that it was set at from then on, and wherever the queue
has tasks within ten seconds.
"""


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    text = "set or show how a queue's tasks are given to members"
    queue = commands.add_parser("queue", help=text, description=f"{text[:1].upper()}{text[1:]}.")
    queue.formatter_class = argparse.RawDescriptionHelpFormatter
    queue.epilog = WORDS
    actions = queue.add_subparsers(metavar="ACTION", required=True, parser_class=Parser)
    setting = add_command(actions, "set", set_queue, "set a queue's strategy, its weights, or both")
    setting.add_argument(
        "--strategy",
        metavar="STRATEGY",
        type=_strategy,
        help="rendezvous, contest, round_robin or pull; as it is, if not given",
    )
    setting.add_argument(
        "--weight",
        metavar="PART=N",
        type=_weight,
        action="append",
        help="what a part of the fitness counts, or PART=default; may be given again; `default`: all as by default",
    )
    showing = add_command(actions, "show", show_queue, "show a queue's strategy and weights")
    listing = add_command(actions, "list", list_queues, "list the queues that something is set for")
    for parser in (setting, showing):
        parser.add_argument("queue", metavar="NAME", type=_name, help="the queue")
    for parser in (setting, showing, listing):
        add_data(parser)
        add_json(parser)


DEFAULT_WEIGHTS: Final = "default"


def _name(text: str) -> str:
    from mesh.queues.settings import check_name

    check_name(text)
    return text


def _strategy(text: str) -> str:
    from mesh.queues.settings import read_strategy

    return str(read_strategy(text))


def _weight(text: str) -> tuple[str, float | None] | None:
    """Return a part and what it counts, None: what it does by default; None alone: `default`."""
    from mesh.contest.weighing import merged
    from mesh.errors import ConfigError

    if text == DEFAULT_WEIGHTS:
        return None
    name, equals, number = text.partition("=")
    weight: float | None
    try:
        weight = None if number == DEFAULT_WEIGHTS else float(number)
    except ValueError:
        equals = ""
    if not equals:
        raise ConfigError(
            f"--weight: PART=N with a number N, or `{DEFAULT_WEIGHTS}`, is expected, such as cpu=0.5 or cpu=default; found {text[:40]!r}"
        )
    # What it may count is looked at together with the others.
    merged((), {name: 1.0})
    return name, weight


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    """Return what is to be set.

    Raises:
        ConfigError: nothing is, or a weight twice, or the weights leave nothing that counts.
    """
    from mesh.contest.weighing import merged
    from mesh.errors import ConfigError

    changes: dict[str, Any] = {} if options.strategy is None else {"strategy": options.strategy}
    if options.weight is not None:
        given = [one for one in options.weight if one is not None]
        weights = dict(given)
        if len(weights) < len(options.weight) and options.weight != [None]:
            raise ConfigError(
                f"--weight: each part once, or `{DEFAULT_WEIGHTS}` alone, is expected; found one twice, or both"
            )
        merged((), weights)
        changes["weights"] = weights
    if not changes:
        raise ConfigError(
            "mesh queue set: --strategy, --weight or both are expected, found neither"
        )
    return changes


def set_queue(options: argparse.Namespace) -> int:
    """Set a queue's strategy and weights, and print what holds from now on."""
    from mesh.cli.text import print_json, printable

    changes = _changes(options)
    with answering_node(options, MAJORITY_S) as client:
        found = client.call("queue_set", queue=options.queue, **changes)
    outcome = found["outcome"]
    if outcome == "overtaken":
        what = options.strategy or "these weights"
        complain(
            f"{printable(options.queue)} was set to {what}, and by somebody else at the same time to what holds now"
        )
    if options.json:
        print_json(found)
    else:
        print(queue_line(found, is_kept=outcome == "kept"))
        print(weights_line(found))
    return 0


def show_queue(options: argparse.Namespace) -> int:
    """Print a queue's strategy and weights, as a majority holds them."""
    from mesh.cli.text import print_json

    with answering_node(options, MAJORITY_S) as client:
        found = client.call("queue_show", queue=options.queue)
    if options.json:
        print_json(found)
    else:
        print(queue_line(found))
        print(weights_line(found))
    return 0


def queue_line(found: dict[str, Any], *, is_kept: bool = False) -> str:
    """Return a queue's setting in one line; `is_kept`: it was set so, and was so before."""
    from mesh.cli.text import printable, since

    line = f"{printable(found['queue'])}: {printable(found['strategy'])}"
    if found["set_at"] is None:
        return f"{line} (the default: nothing was set)"
    already = "already " if is_kept else ""
    return f"{line} ({already}set {since(found['set_at'])} ago at {printable(found['set_by'])})"


def weights_line(found: dict[str, Any]) -> str:
    """Return what each part of a fitness counts in contests for a queue's tasks, in one line."""
    weights = weights_words(found["weights"])
    return f"  weights: {weights}" + (" (the default)" if found["default_weights"] else "")
