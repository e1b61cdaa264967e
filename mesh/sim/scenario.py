"""What `mesh sim` runs: one fault in a calm mesh, or a mixed run drawn from a seed; and sweeps of seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TextIO

from mesh.errors import ConfigError
from mesh.sim.experiment import FAULTS as SINGLE_FAULTS
from mesh.sim.experiment import Settings, run_experiment
from mesh.sim.inspection import Progress
from mesh.sim.mixed import draw_options, run_mixed
from mesh.sim.report import Result

MIXED: Final = "mixed"
FAULTS: Final = (*SINGLE_FAULTS, MIXED)


def run(
    seed: int,
    *,
    nodes: int | None = None,
    profile: str | None = None,
    check: bool = True,
    sink: TextIO | None = None,
    progress: Progress | None = None,
) -> Result:
    """Run the mixed scenario of a seed; `nodes` and `profile` override what the seed draws.

    Raises:
        ConfigError: fewer than 5 nodes, or no such profile.
    """
    if nodes is not None and nodes < 5:
        raise ConfigError(f"a mixed run needs at least 5 nodes, found {nodes}")
    replay = f"mesh sim --seed {seed} --scenario {MIXED}"
    replay += f" --nodes {nodes}" if nodes is not None else ""
    replay += f" --profile {profile}" if profile is not None else ""
    options = draw_options(seed, nodes=nodes, profile_name=profile)
    return run_mixed(seed, options, replay=replay, check=check, sink=sink, progress=progress)


def run_sim(  # noqa: PLR0913 - the options of the command line
    nodes: int = 100,
    fault: str = "crash",
    seed: int = 1,
    *,
    profile: str = "lan",
    duration_s: float | None = None,
    loss: float = 0.0,
    delay_ms: float = 1.0,
    is_converged: bool = False,
    check: bool = False,
    sink: TextIO | None = None,
    progress: Progress | None = None,
) -> Result:
    """Measure one fault (one of `FAULTS`) in a mesh of so many nodes.

    Args:
        nodes: at least 2 (mixed: 5).
        fault: what happens; `mixed` draws everything but nodes and profile from the seed.
        seed: the same seed gives the same run.
        profile: local, lan or wan.
        duration_s: how long the idle mesh is measured; None: twenty protocol periods.
        loss: the ratio of datagrams lost all the time, from 0 to below 1.
        delay_ms: the delay one way; a tenth of it more varies.
        is_converged: the members have known each other for long; else they join through one seed.
        check: check every node's invariants after every input, and every view now and then: slow.
        sink: gets one line for each record of the trace.
        progress: called with the simulated time and a line of text.

    Raises:
        ConfigError: a setting is out of range, or there is no such profile.
    """
    if fault == MIXED:
        return run(seed, nodes=nodes, profile=profile, check=True, sink=sink, progress=progress)
    settings = Settings(
        nodes=nodes,
        fault=fault,
        profile=profile,
        idle_s=duration_s,
        loss_ratio=loss,
        delay_ms=delay_ms,
        is_converged=is_converged,
    )
    return run_experiment(seed, settings, check=check, sink=sink, progress=progress)


def sweep(
    seeds: Iterable[int], *, nodes: int | None = None, profile: str | None = None
) -> Iterator[Result]:
    """Run the mixed scenario of each seed, one after the other."""
    for seed in seeds:
        yield run(seed, nodes=nodes, profile=profile)
