"""Mass restarts, changed addresses, rolled-back disks and long cuts, one at a time: the mesh is whole again."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from mesh.core.rng import stream
from mesh.node.config import SwimConfig, profile
from mesh.node.node import Node
from mesh.sim.checkers import settle_bound_s
from mesh.sim.faults import Fault, FaultKind
from mesh.sim.fleet import SEED_HOSTS, Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.inspection import Inspection
from mesh.sim.nemesis import Nemesis
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World

LOCAL = profile("local")


class Stage:
    """Seven members that have known each other for a while, under inspection."""

    def __init__(self, seed: int = 3, swim: SwimConfig = LOCAL) -> None:
        self.swim = swim
        self.world = World(seed, Node, Network(seed, Conditions()), check=True)
        self.fleet = Fleet(self.world, swim, FleetOptions())
        for _ in range(7):
            self.fleet.boot(self.fleet.add())
        self.inspection = Inspection(self.world, swim, check=True, progress=None)
        self.nemesis = Nemesis(
            self.world,
            self.fleet,
            stream(seed, "nemesis"),
            forgot=self.inspection.absence.note,
        )
        self.run(5.0)

    def run(self, seconds: float) -> None:
        assert self.inspection.run_for(seconds, self.swim.probe_interval_s)

    def begin(self, kind: FaultKind, *hosts: int, duration_s: float = 1.0) -> None:
        self.nemesis.begin(Fault(self.world.loop.now_s, kind, hosts, duration_s))

    def converges(self, bound_s: float) -> bool:
        return self.inspection.wait_converged(bound_s, self.swim.probe_interval_s) is not None

    @property
    def hosts(self) -> list[Host]:
        return self.world.hosts


def everybody(stage: Stage) -> tuple[int, ...]:
    return tuple(range(len(stage.hosts)))


def test_a_mass_restart_without_seeds_is_one_mesh_within_five_seconds() -> None:
    stage = Stage()
    stage.begin(FaultKind.RESTART, *everybody(stage))
    stage.run(1.05)
    assert all(host.node is not None for host in stage.hosts)
    assert [host.spec.seeds for host in stage.hosts] == [()] * 7
    assert stage.converges(5.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_mass_restart_with_every_address_changed_but_one_is_one_mesh_within_five_seconds(
    seed: int,
) -> None:
    stage = Stage(seed)
    before = [host.spec.address for host in stage.hosts]
    stage.begin(FaultKind.UPROOT, *everybody(stage))
    stage.run(1.05)
    same = [
        host.index
        for host, old in zip(stage.hosts, before, strict=True)
        if host.spec.address == old
    ]
    assert len(same) == 1
    assert same[0] < SEED_HOSTS
    assert [host.spec.seeds for host in stage.hosts] == [()] * 7
    assert stage.converges(5.0)


def test_two_such_restarts_keep_one_address() -> None:
    stage = Stage()
    first = stage.hosts
    for _ in range(2):
        stage.begin(FaultKind.UPROOT, *everybody(stage), duration_s=0.5)
        stage.run(15.0)
    assert stage.converges(5.0)
    assert sum(host.spec.address.host.startswith("10.0.") for host in first) == 1


def test_whoever_does_not_know_the_one_that_stays_returns_with_seeds() -> None:
    stage = Stage()
    stage.hosts[5].snapshot = None
    stage.begin(FaultKind.UPROOT, *everybody(stage))
    stage.run(1.05)
    assert [bool(host.spec.seeds) for host in stage.hosts] == [False] * 5 + [True, False]
    assert stage.converges(5.0)


def test_the_one_that_stays_neither_moves_nor_leaves_nor_loses_its_disk() -> None:
    stage = Stage()
    stage.begin(FaultKind.RESTART, *everybody(stage), duration_s=0.1)
    stage.run(1.0)
    keeper = stage.nemesis._returning.keeper
    assert keeper is not None
    for kind in (FaultKind.MOVE, FaultKind.DISK, FaultKind.ROLL_BACK, FaultKind.LEAVE):
        stage.begin(kind, keeper.index)
    assert keeper.node is not None


@pytest.mark.parametrize("seed", range(3))
def test_a_disk_that_was_rolled_back_with_the_clock_is_outranked_and_returns(seed: int) -> None:
    stage = Stage(seed)
    host = stage.hosts[4]
    for _ in range(3):
        stage.begin(FaultKind.CRASH, 4, duration_s=1.2)
        stage.run(3.0)
    boot = host.disk["boot"]
    stage.begin(FaultKind.ROLL_BACK, 4, duration_s=1.0)
    assert host.disk["boot"] < boot
    stage.run(1.1)
    assert stage.converges(5.0)
    assert host.disk["boot"] > boot


def test_a_forgotten_member_is_in_no_view_though_two_slept_through_it() -> None:
    stage = Stage()
    stage.begin(FaultKind.CRASH, 6, duration_s=inf)
    stage.run(6.0)
    stage.begin(FaultKind.PAUSE, 5, duration_s=20.0)
    stage.begin(FaultKind.CRASH, 4, duration_s=20.0)
    stage.begin(FaultKind.FORGET, 1)
    assert len(stage.inspection.absence) == 1
    stage.run(25.0)
    assert stage.converges(settle_bound_s(stage.swim, 7, SEED_HOSTS))
    assert all(
        "node-6" not in [m["name"] for m in v.members] for v in stage.inspection.views().values()
    )


def test_nobody_forgets_where_nobody_is_dead() -> None:
    stage = Stage()
    stage.begin(FaultKind.FORGET, 1)
    assert stage.nemesis.log == []


def short_memory() -> SwimConfig:
    return replace(
        LOCAL,
        sync_interval_s=1.5,
        dead_retention_s=3.0,
        left_retention_s=3.0,
        forgotten_retention_s=3.0,
    )


def test_a_cut_that_outlasts_all_memory_heals_by_itself() -> None:
    stage = Stage(swim=short_memory())
    stage.begin(FaultKind.LEAVE, 6, duration_s=inf)
    stage.run(1.0)
    stage.begin(FaultKind.LONG_CUT, 0, 1, 2, duration_s=120.0)
    stage.run(119.0)
    states = {m["state"] for m in stage.inspection.views()["node-0"].members}
    assert states == {"alive", "dead"}
    stage.run(1.0)
    assert stage.converges(5.0)


def test_a_mass_restart_within_a_cut_heals_by_itself() -> None:
    stage = Stage()
    stage.begin(FaultKind.HALVES, 0, 1, 2, duration_s=30.0)
    stage.begin(FaultKind.RESTART, *everybody(stage), duration_s=1.0)
    stage.run(30.05)
    assert stage.converges(5.0)
