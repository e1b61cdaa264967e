"""`bench contest`: what it takes, and its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from mesh.cli.arguments import add_command, decimal, whole_number
from mesh.errors import ConfigError

if TYPE_CHECKING:
    import argparse

    from mesh.cli.arguments import Commands

NETWORKS: Final = ("lan", "wan")
NODES_MIN: Final = 3
NODES_MAX: Final = 3_000
LOSS_PCT_MAX: Final = 20.0
"""With more, members hold each other for dead now and then, and what is measured is that."""

CONTESTS_MAX: Final = 10_000
JOBS_MAX: Final = 256
SEED_MAX: Final = (1 << 63) - 1

T = TypeVar("T")


def add_contest(benches: Commands) -> None:
    """Add `bench contest`."""
    contest = add_command(
        benches,
        "contest",
        run_contest,
        "measure contests in simulated meshes: how many bid, who wins, how soon, and what a scheme without a quorum makes of it",
    )
    for flag, metavar, read, default, text in (
        ("--nodes", "N,…", whole_number("--nodes", NODES_MIN, NODES_MAX), "5,50,500", "members"),
        ("--network", "NAME,…", _network, "lan,wan", "lan, wan, or both"),
        ("--loss", "PERCENT,…", decimal("--loss", 0, LOSS_PCT_MAX), "0,1,5", "lost datagrams"),
    ):
        contest.add_argument(
            flag,
            metavar=metavar,
            type=several(flag, read),
            default=default,
            help=f"{text}; a mesh for each (default: {default})",
        )
    for flag, metavar, bounds, number, text in (
        ("--contests", "K", (1, CONTESTS_MAX), 100, "in each mesh"),
        ("--seed", "N", (0, SEED_MAX), 1, "replays a run"),
        ("--jobs", "N", (1, JOBS_MAX), 1, "processes; the result is the same"),
    ):
        contest.add_argument(
            flag,
            metavar=metavar,
            type=whole_number(flag, *bounds),
            default=number,
            help=f"{text} (default: {number})",
        )
    contest.add_argument("--json", metavar="FILE", default=None, help="write the results there")
    contest.add_argument("--svg", metavar="FILE", default=None, help="write a figure there")


def several(flag: str, read: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    """Return the reader of one value or more, apart by commas; each counts once."""

    def read_all(text: str) -> tuple[T, ...]:
        parts = text.split(",")
        if not all(parts):
            raise ConfigError(
                f"{flag} expects one value or more, apart by commas, found {text!r}; leave no gap"
            )
        return tuple(dict.fromkeys(map(read, parts)))

    return read_all


def _network(text: str) -> str:
    if text not in NETWORKS:
        raise ConfigError(f"--network is one or more of {', '.join(NETWORKS)}, found {text!r}")
    return text


def run_contest(options: argparse.Namespace) -> int:
    """Measure; exit 0 only if Mesh's contests had no task with two owners."""
    import json

    from mesh.bench.contest import ContestSettings, measure
    from mesh.bench.contest_figure import contest_figure
    from mesh.bench.contest_results import MESH, contest_json, contest_text
    from mesh.bench.progress import open_progress
    from mesh.cli.bench import check_results, write_results

    settings = ContestSettings(
        nodes=options.nodes,
        networks=options.network,
        losses_pct=options.loss,
        contests=options.contests,
        seed=options.seed,
        jobs=options.jobs,
    )
    settings.check()
    check_results(options.json, options.svg)
    with open_progress(len(settings.meshes)) as progress:
        results = measure(settings, progress)
    print()
    print(contest_text(results), flush=True)
    texts = {}
    if options.json is not None:
        texts[options.json] = json.dumps(contest_json(settings.to_json(), results), indent=1) + "\n"
    if options.svg is not None:
        title = f"Contests for a task, {settings.contests} in each simulated mesh"
        texts[options.svg] = contest_figure(results, title)
    is_written = write_results(texts)
    is_held = all(one.two_owners == 0 for one in results if one.scheme == MESH)
    return 0 if is_written and is_held else 1
