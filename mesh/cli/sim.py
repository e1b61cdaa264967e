"""`sim`: the simulated mesh, one seed at a time or a sweep of many."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from mesh.cli.arguments import Commands, add_command, add_json, decimal, is_number, whole_number
from mesh.errors import ConfigError

if TYPE_CHECKING:
    from mesh.sim.report import Result

SEED_MAX: Final = (1 << 63) - 1
SWEEP_SEEDS_MAX: Final = 1_000_000
NODES_DEFAULT: Final = 100


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    sim = add_command(commands, "sim", run_simulation, "run a whole mesh in a simulated world")
    sim.add_argument(
        "--nodes",
        metavar="N",
        type=whole_number("--nodes", 1, 10_000),
        default=None,
        help="members (default: 100)",
    )
    sim.add_argument(
        "--fault", metavar="NAME", default="crash", help="what goes wrong (default: crash)"
    )
    sim.add_argument(
        "--seed",
        metavar="N",
        type=whole_number("--seed", 0, SEED_MAX),
        default=1,
        help="replays a run (default: 1)",
    )
    sim.add_argument(
        "--profile", metavar="NAME", default="lan", help="local, lan or wan (default: lan)"
    )
    sim.add_argument(
        "--duration",
        metavar="S",
        type=decimal("--duration", 1, 1e6),
        default=None,
        help="virtual seconds",
    )
    sim.add_argument(
        "--loss",
        metavar="RATIO",
        type=decimal("--loss", 0, 0.99),
        default=0.0,
        help="lost datagrams, 0 to 0.99",
    )
    sim.add_argument(
        "--delay",
        metavar="MS",
        type=decimal("--delay", 0, 60_000),
        default=None,
        help="one-way delay",
    )
    sim.add_argument(
        "--check", action="store_true", help="check every node's invariants after every input"
    )
    sim.add_argument(
        "--seeds", metavar="A..B", type=_seed_range, default=None, help="sweep these seeds"
    )
    sim.add_argument(
        "--scenario",
        metavar="NAME",
        default=None,
        help="what each seed of a sweep draws (default: mixed)",
    )
    add_json(sim)


def _seed_range(text: str) -> range:
    first, dots, last = text.partition("..")
    if dots and is_number(first) and is_number(last) and int(first) <= int(last) <= SEED_MAX:
        seeds = range(int(first), int(last) + 1)
        if len(seeds) <= SWEEP_SEEDS_MAX:
            return seeds
    raise ConfigError(
        f"--seeds expects FIRST..LAST, found {text!r}; write for instance --seeds 1..300"
    )


def run_simulation(options: argparse.Namespace) -> int:
    """Run one seed, or sweep many; exit 0 only if every invariant held in every run."""
    import sys

    from mesh.cli.text import print_json

    is_shown = sys.stderr.isatty()
    results = [_run_one(options, seed, is_shown=is_shown) for seed in _seeds(options)]
    failed = [result for result in results if not result.has_held]
    if options.seeds is None:
        result = results[0]
        if options.json:
            print_json(result.to_json())
        else:
            print(result.to_text())
    elif options.json:
        print_json([result.to_json() for result in results])
    else:
        for result in failed:
            print(result.to_text())
        print(f"{len(results)} seeds, {len(failed)} of them broke an invariant")
    return 1 if failed else 0


def _seeds(options: argparse.Namespace) -> range:
    seeds: range | None = options.seeds
    return range(options.seed, options.seed + 1) if seeds is None else seeds


def _run_one(options: argparse.Namespace, seed: int, *, is_shown: bool) -> Result:
    from mesh.sim.mixed import run_mixed
    from mesh.sim.scenario import run_sim

    progress = _show if is_shown else None
    scenario = options.scenario or ("mixed" if options.seeds is not None else "fault")
    if scenario == "mixed":
        return run_mixed(seed, check=options.check or options.seeds is not None, progress=progress)
    return run_sim(
        nodes=options.nodes or NODES_DEFAULT,
        fault=options.fault,
        seed=seed,
        profile=options.profile,
        duration_s=options.duration,
        loss=options.loss,
        delay_ms=options.delay,
        check=options.check,
        progress=progress,
    )


def _show(at_s: float, text: str) -> None:
    """Show on stderr how far a run is, in place of what stood there."""
    import sys

    sys.stderr.write(f"\r\x1b[2K{at_s:8.1f} s  {text[:60]}")
    sys.stderr.flush()
