"""Contests in whole simulated meshes: few bid, the fittest mostly wins, soon, and nobody ever has a task twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mesh.bench.contest import ContestSettings, measure, measure_one
from mesh.bench.contest_results import Result
from mesh.bench.contest_world import NETWORKS, ContestWorld, Setting
from mesh.bench.progress import Lines

CONTESTS = 60


def check(mesh: Result, plain: Result) -> None:
    print(mesh.to_json(), plain.to_json())
    assert mesh.two_owners == 0
    assert mesh.granted == mesh.contests >= 0.8 * CONTESTS
    assert mesh.bids is not None
    assert mesh.bids <= 1.3
    assert mesh.fittest is not None
    assert mesh.fittest >= 0.85
    assert mesh.grant_ms is not None
    if mesh.network == "lan":
        assert mesh.grant_ms <= 10
    assert plain.bids is not None
    assert plain.bids > 2 * mesh.bids


def test_a_small_mesh_on_a_lan_holds_its_contests_as_promised() -> None:
    check(*measure_one(1, CONTESTS, Setting(5, "lan", 0.01)))


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(2, 5))
@pytest.mark.parametrize("network", sorted(NETWORKS))
@pytest.mark.parametrize("nodes", [5, 50])
def test_meshes_hold_their_contests_as_promised(nodes: int, network: str, seed: int) -> None:
    check(*measure_one(seed, 2 * CONTESTS, Setting(nodes, network, 0.01)))


def test_one_seed_gives_the_same_contests() -> None:
    found = []
    for _ in range(2):
        world = ContestWorld(3, Setting(4, "lan", 0.05))
        world.warm_up()
        assert list(world.hold(8)) == list(range(1, 9))
        found.append((world.contests(), world.starts_s(), world.world.trace.hash_hex))
    assert found[0] == found[1]
    contests, starts_s, _ = found[0]
    assert contests
    assert len(starts_s) == 8
    assert all(len(one.scores) == 4 and one.called for one in contests)


def test_however_many_processes_share_the_work_the_results_are_the_same() -> None:
    settings = ContestSettings(nodes=(3,), networks=("lan",), losses_pct=(0, 1), contests=2)
    alone = measure(settings, Lines())
    assert [(one.scheme, one.loss) for one in alone] == [
        ("mesh", 0),
        ("plain", 0),
        ("mesh", 0.01),
        ("plain", 0.01),
    ]
    assert measure(replace(settings, jobs=2), Lines()) == alone
