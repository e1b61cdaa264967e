"""Hosts lost one after the other, each soon after the last one is back: every loss is noticed as soon as the first."""

from __future__ import annotations

import statistics

from mesh.core.events import EventKind
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World

LAN = profile("lan")
BETWEEN_S = 3.0
BEYOND_TOLERANCE_S = (1.2, 2.0)
"""How much later than the pause tolerance all survivors know: at the median, and at most."""


def losses_s(seed: int, size: int, rounds: int) -> list[float]:
    """Return, for each lost host, when the last survivor declared it dead."""
    world = World(seed, Node, Network(seed, Conditions(delay_s=0.0005, jitter_s=0.0005)))
    Fleet(world, LAN, FleetOptions(clock_rate_error=1e-4)).boot_acquainted(size)
    world.run_for(6.0 + seed / 3)
    return [loss_s(world, (seed + 3 * turn) % size) for turn in range(rounds)]


def loss_s(world: World, index: int) -> float:
    victim, rest = world.hosts[index], [i for i in range(len(world.hosts)) if i != index]
    first, start_s = len(world.events), world.loop.now_s
    cuts = [world.network.cut([index], rest), world.network.cut(rest, [index])]
    while not (known := verdicts_s(world, first, victim)) or len(known) < len(rest):
        world.run_for(0.05)
        assert world.loop.now_s - start_s < 30.0, f"{victim.spec.name}: {len(known)} know"
    for cut in cuts:
        world.network.mend(cut)
    world.run_for(BETWEEN_S + index / 8)
    return max(known) - start_s


def verdicts_s(world: World, first: int, victim: Host) -> list[float]:
    return [
        observed.at_s
        for observed in world.events[first:]
        if observed.event.kind is EventKind.DEAD
        and observed.event.member == victim.spec.name
        and observed.observer is not victim
    ]


def test_a_host_that_is_back_misses_the_next_one_as_soon_as_anybody() -> None:
    took_s = [took for seed in range(1, 5) for took in losses_s(seed, size=8, rounds=8)]
    median_s, last_s = BEYOND_TOLERANCE_S
    assert statistics.median(took_s) <= LAN.pause_tolerance_s + median_s
    assert max(took_s) <= LAN.pause_tolerance_s + last_s
