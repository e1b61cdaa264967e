"""`bench tasks`: what it takes, and its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mesh.cli.arguments import add_command, whole_number

if TYPE_CHECKING:
    import argparse

    from mesh.cli.arguments import Commands

NODES_MIN: Final = 3
"""So many vote: one of them may be killed."""

NODES_MAX: Final = 64
TASKS_MAX: Final = 40_000
"""Of two kinds: a voter keeps the last 100,000 that have ended, and all are counted there."""
ROUNDS_MAX: Final = 1_000


def add_tasks(benches: Commands) -> None:
    """Add `bench tasks`."""
    tasks = add_command(
        benches,
        "tasks",
        run_tasks,
        "measure how fast nodes take tasks in, start them and end them, and how soon a lost one runs elsewhere",
    )
    for flag, metavar, bounds, default, text in (
        ("--nodes", "N", (NODES_MIN, NODES_MAX), 3, "members, each a process"),
        ("--tasks", "M", (1, TASKS_MAX), 1_000, "tasks, of each of two kinds"),
        ("--slots", "N", (1, 1_024), 2, "of each node"),
        ("--recoveries", "K", (0, ROUNDS_MAX), 3, "nodes that are killed while they run a task"),
    ):
        tasks.add_argument(
            flag,
            metavar=metavar,
            type=whole_number(flag, *bounds),
            default=default,
            help=f"{text} (default: {default})",
        )
    tasks.add_argument(
        "--profile",
        metavar="NAME",
        choices=("local", "lan", "wan"),
        default="local",
        help="local, lan or wan (default: local; the others take minutes until three nodes vote)",
    )
    tasks.add_argument("--json", metavar="FILE", default=None, help="write the results there")


def run_tasks(options: argparse.Namespace) -> int:
    """Measure; exit 0 only if all came to its end and nobody was accused falsely."""
    import json

    from mesh.bench.progress import open_progress
    from mesh.bench.tasks import STEPS, TaskSettings, measure
    from mesh.cli.bench import check_results, write_results

    settings = TaskSettings(
        nodes=options.nodes,
        tasks=options.tasks,
        slots=options.slots,
        profile=options.profile,
        recoveries=options.recoveries,
    )
    check_results(options.json)
    with open_progress(STEPS) as progress:
        figures = measure(settings, progress)
    print(figures.text(), flush=True)
    texts = {}
    if options.json is not None:
        texts[options.json] = json.dumps(figures.to_json(settings.to_json()), indent=1) + "\n"
    is_written = write_results(texts)
    return 0 if is_written and not figures.failure and not figures.blame.false_accusations else 1
