"""`sim`: the simulated mesh, one seed at a time or a sweep of many."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mesh.cli.arguments import (
    Commands,
    Parser,
    add_command,
    add_json,
    decimal,
    is_number,
    user_path,
    whole_number,
)
from mesh.cli.stdio import complain
from mesh.errors import ConfigError

if TYPE_CHECKING:
    from mesh.sim.report import Result

SEED_MAX: Final = (1 << 63) - 1
SWEEP_SEEDS_MAX: Final = 1_000_000
NODES_DEFAULT: Final = 100
NODES_MAX: Final = 10_000
SCALE_MIN: Final = 10  # some are killed, and enough are to be left
JOBS_MAX: Final = 256
FAULTS: Final = ("crash", "host", "pause", "partition", "loss", "restart", "leave", "none", "mixed")
_DRAWN: Final = ("duration", "loss", "delay")
"""What a mixed run draws from its seed."""

_CLEAR: Final = "\r\x1b[2K"


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    sim = add_command(commands, "sim", run_simulation, "run a whole mesh in a simulated world")
    sim.add_argument(
        "--nodes",
        metavar="N",
        type=whole_number("--nodes", 1, NODES_MAX),
        default=None,
        help="members (default: 100; a mixed run draws from 5 to 30)",
    )
    sim.add_argument(
        "--fault",
        metavar="NAME",
        default=None,
        help=f"what goes wrong: {', '.join(FAULTS)} (default: crash, of a process; host: with its whole host)",
    )
    sim.add_argument(
        "--seed",
        metavar="N",
        type=whole_number("--seed", 0, SEED_MAX),
        default=1,
        help="replays a run (default: 1)",
    )
    sim.add_argument(
        "--profile", metavar="NAME", default=None, help="local, lan or wan (default: lan)"
    )
    _add_conditions(sim)
    sim.add_argument(
        "--check",
        action="store_true",
        help="look at every node after every input, and at every view",
    )
    sim.add_argument(
        "--seeds", metavar="A..B", type=_seed_range, default=None, help="sweep these seeds"
    )
    sim.add_argument(
        "--scenario",
        metavar="NAME",
        default=None,
        help="mixed: the seed draws mesh, network and faults (default with --seeds)",
    )
    sim.add_argument("--verbose", action="store_true", help="also when each survivor noticed")
    sim.add_argument(
        "--trace",
        metavar="FILE",
        default=None,
        help="write every input and effect to FILE, line by line",
    )
    _add_experiments(sim)
    add_json(sim)


def _add_experiments(sim: Parser) -> None:
    """Add what measures more than one run."""
    sim.add_argument(
        "--converged",
        action="store_true",
        help="begin with members that know each other, not with their joining",
    )
    sim.add_argument(
        "--experiment",
        metavar="NAME",
        default=None,
        help="lifeguard: detectors side by side, members blocked",
    )
    sim.add_argument(
        "--scale",
        metavar="N,N,...",
        type=_sizes,
        default=None,
        help="cost against size: packets, detection, joining and memory of meshes of N members",
    )
    sim.add_argument(
        "--quick", action="store_true", help="a smaller experiment; with --scale: no joining"
    )
    sim.add_argument(
        "--jobs",
        metavar="N",
        type=whole_number("--jobs", 1, JOBS_MAX),
        default=1,
        help="processes for --experiment lifeguard (default: 1; the result is the same)",
    )
    sim.add_argument(
        "--journal",
        metavar="FILE",
        default=None,
        help="keep each run of --experiment lifeguard in FILE, and do none that it has again",
    )
    sim.add_argument(
        "--svg", metavar="FILE", default=None, help="write the figure of --scale to FILE"
    )


def _add_conditions(sim: Parser) -> None:
    """Add what a mixed run draws from its seed."""
    sim.add_argument(
        "--duration",
        metavar="S",
        type=decimal("--duration", 1, 1e6),
        default=None,
        help="how long the idle mesh is measured (default: twenty protocol periods)",
    )
    sim.add_argument(
        "--loss",
        metavar="RATIO",
        type=decimal("--loss", 0, 0.99),
        default=None,
        help="lost datagrams, 0 to 0.99 (default: 0)",
    )
    sim.add_argument(
        "--delay",
        metavar="MS",
        type=decimal("--delay", 0, 60_000),
        default=None,
        help="one-way delay (default: 1)",
    )


def _seed_range(text: str) -> range:
    first, dots, last = text.partition("..")
    if dots and is_number(first) and is_number(last) and int(first) <= int(last) <= SEED_MAX:
        seeds = range(int(first), int(last) + 1)
        if len(seeds) <= SWEEP_SEEDS_MAX:
            return seeds
    raise ConfigError(
        f"--seeds expects FIRST..LAST, found {text!r}; write for instance --seeds 1..300"
    )


def _sizes(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if all(is_number(part) and SCALE_MIN <= int(part) <= NODES_MAX for part in parts):
        return tuple(map(int, parts))
    raise ConfigError(
        f"--scale expects sizes from {SCALE_MIN} to {NODES_MAX}, found {text!r}; write for instance "
        "--scale 100,300,1000"
    )


def run_simulation(options: argparse.Namespace) -> int:
    """Run one seed, or sweep many; exit 0 only if every invariant held in every run."""
    import sys

    from mesh.cli.text import print_json

    if options.scale is not None:
        from mesh.cli.scale import run_scale

        return run_scale(options)
    if options.experiment is not None:
        return _run_experiment(options)
    is_sweep = options.seeds is not None
    _check(options, is_sweep=is_sweep)
    is_shown = sys.stderr.isatty()
    runs = failures = 0
    for seed in options.seeds if is_sweep else (options.seed,):
        result = _run_one(options, seed, progress=_show if is_shown else None)
        if is_shown:
            sys.stderr.write(_CLEAR)
        runs += 1
        failures += not result.has_held
        if options.json:
            print_json(result.to_json(), is_line=is_sweep)
        elif not is_sweep or not result.has_held:
            print(result.to_text(is_verbose=options.verbose), flush=True)
        if not is_sweep and not options.json:
            complain(result.to_speed())
    if is_sweep and not options.json:
        print(f"{runs} seeds: {f'{failures} broke an invariant' if failures else 'all held'}")
    return 1 if failures else 0


def _run_experiment(options: argparse.Namespace) -> int:
    """Run what measures more than one run, and print its table."""
    if options.experiment != "lifeguard":
        raise ConfigError(f"--experiment expects lifeguard, found {options.experiment!r}")
    from mesh.cli.lifeguard import run_lifeguard

    return run_lifeguard(options)


def _name(options: argparse.Namespace) -> str:
    """Return the fault or scenario that is meant."""
    default = "crash" if options.seeds is None else "mixed"
    return str(options.scenario or options.fault or default)


def _check(options: argparse.Namespace, *, is_sweep: bool) -> None:
    if options.fault and options.scenario:
        raise ConfigError("either --fault or --scenario is expected, found both; drop one")
    if options.fault is not None and options.fault not in FAULTS:
        from mesh.cli.hints import closest

        meant = closest(options.fault, FAULTS)
        guess = f"; did you mean {meant}?" if meant else ""
        raise ConfigError(
            f"--fault expects one of {', '.join(FAULTS)}, found {options.fault!r}{guess}"
        )
    if options.trace is not None and is_sweep:
        raise ConfigError("--trace is for one run, found --seeds; name one with --seed")
    given = [f"--{name}" for name in _DRAWN if getattr(options, name) is not None]
    if given and _name(options) == "mixed":
        raise ConfigError(
            f"{given[0]} is drawn by the seed of a mixed run; drop it, or name a single --fault"
        )


def _run_one(
    options: argparse.Namespace, seed: int, *, progress: Callable[[float, str], None] | None
) -> Result:
    from contextlib import ExitStack

    from mesh.sim.scenario import MIXED, run, run_sim

    name = _name(options)
    if options.scenario and name != MIXED:
        raise ConfigError(
            f"a scenario is {MIXED}, found {name!r}; a single fault is named by --fault"
        )
    with ExitStack() as stack:
        sink = None
        if options.trace is not None:
            path = user_path("--trace", options.trace)
            sink = stack.enter_context(path.open("w", encoding="utf-8"))
        if name == MIXED:
            return run(
                seed, nodes=options.nodes, profile=options.profile, sink=sink, progress=progress
            )
        return run_sim(
            nodes=options.nodes or NODES_DEFAULT,
            fault=name,
            seed=seed,
            profile=options.profile or "lan",
            duration_s=options.duration,
            loss=options.loss or 0.0,
            delay_ms=1.0 if options.delay is None else options.delay,
            is_converged=options.converged,
            check=options.check,
            sink=sink,
            progress=progress,
        )


def _show(at_s: float, text: str) -> None:
    """Show on stderr how far a run is, in place of what stood there."""
    import sys

    sys.stderr.write(f"{_CLEAR}{at_s:8.1f} s  {text[:60]}")
    sys.stderr.flush()
