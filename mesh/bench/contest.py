"""`mesh bench contest`: a simulated mesh for each size, network and loss, and the plain scheme over the same contests.

    for each size, network and loss:
        ContestWorld ── warm-up ── contests ──► who was fittest, who won, when, for how many bids, two owners?
                                      └── the same members, fitness and network ──► plain scheme

Each mesh is a world of its own, from one seed, so what is measured repeats to the digit, however many processes
(`jobs`) share the work.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from mesh.bench.contest_results import Result, mesh_result, plain_result, result_line
from mesh.bench.contest_world import NETWORKS, ContestWorld, Setting
from mesh.bench.plain_contest import play
from mesh.bench.progress import Progress
from mesh.core.rng import stream
from mesh.errors import ConfigError
from mesh.sim.network import Network

NODES: Final = (5, 50, 500)
LOSSES_PCT: Final = (0.0, 1.0, 5.0)
NODES_MIN: Final = 3
"""So many vote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestSettings:
    """What is to be measured."""

    nodes: tuple[int, ...] = NODES
    networks: tuple[str, ...] = tuple(NETWORKS)
    losses_pct: tuple[float, ...] = LOSSES_PCT
    contests: int = 100
    """In each mesh."""

    seed: int = 1
    jobs: int = 1

    def check(self) -> None:
        """Raise ConfigError if what is asked for cannot be measured."""
        if min(self.nodes) < NODES_MIN:
            raise ConfigError(
                f"--nodes: {NODES_MIN} members or more are expected, as so many vote, found {min(self.nodes)}"
            )

    @property
    def meshes(self) -> list[Setting]:
        """All that is measured, the smallest first."""
        return [
            Setting(nodes, network, loss_pct / 100)
            for nodes in self.nodes
            for network in self.networks
            for loss_pct in self.losses_pct
        ]

    def to_json(self) -> dict[str, Any]:
        """Return it for programs; losses in percent, as they were asked for."""
        return {
            "nodes": list(self.nodes),
            "networks": list(self.networks),
            "losses_pct": list(self.losses_pct),
            "contests": self.contests,
            "seed": self.seed,
            "conditions": {
                name: {
                    "delay_ms": 1000 * NETWORKS[name].delay_s,
                    "jitter_ms": 1000 * NETWORKS[name].jitter_s,
                }
                for name in self.networks
            },
        }


def measure(settings: ContestSettings, progress: Progress) -> list[Result]:
    """Measure every mesh, and return the results of both schemes in the order of `meshes`, Mesh's own first.

    Raises:
        ConfigError: it cannot be measured.
        BenchError: a mesh could not be made ready.
    """
    settings.check()
    results: list[Result] = []
    tasks = [(settings.seed, settings.contests, setting) for setting in settings.meshes]
    with _mapped(settings.jobs) as mapped:
        progress.task("the first mesh")
        for pair in mapped(_measure, tasks):
            for result in pair:
                progress.say(result_line(result))
            results += pair
            progress.advance()
            progress.task(f"{len(results) // 2} of {len(tasks)} meshes")
    return results


def measure_one(seed: int, contests: int, setting: Setting) -> tuple[Result, Result]:
    """Return what both schemes do in one mesh: Mesh's own, and the plain one."""
    world = ContestWorld(seed, setting)
    world.warm_up()
    for _ in world.hold(contests):
        pass
    held = world.contests()
    network = Network(seed, setting.conditions)
    rng = stream(seed, "plain contest")
    outcomes = [play(network, rng, one.caller, one.scores) for one in held]
    return (
        mesh_result(setting, held, world.starts_s(), world.two_owners),
        plain_result(setting, held, outcomes),
    )


def _measure(task: tuple[int, int, Setting]) -> tuple[Result, Result]:
    return measure_one(*task)


@contextmanager
def _mapped(jobs: int) -> Iterator[Callable[..., Any]]:
    """Return a `map` whose results come in order as they are ready, over so many processes, or in this one."""
    if jobs == 1:
        yield map
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        yield pool.imap
