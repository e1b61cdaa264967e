"""The experiment of the Lifeguard paper, small: what it counts."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from mesh.errors import ConfigError
from mesh.node.config import LifeguardConfig, paper, plain_swim, profile
from mesh.node.node import Node
from mesh.sim.anomalies import Anomalies, Harm, run_anomalies
from mesh.sim.comparison import compare, to_text
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.inspection import Inspection
from mesh.sim.network import Conditions, Network
from mesh.sim.variants import MODEL, OURS, VARIANTS, jobs_of, perform
from mesh.sim.world import World

SMALL = Anomalies(members=16, blocked=3, block_s=6.0, total_s=12.0)
HARSH = replace(SMALL, blocked=5, block_s=16.0, total_s=40.0)


def test_the_same_seed_does_the_same_harm() -> None:
    first, again = (run_anomalies(4, SMALL, plain_swim()) for _ in range(2))
    assert first == again
    assert first.false_in_total > 0
    assert first.blocked_accused > 0


def test_short_blocks_harm_nobody_and_every_crash_is_noticed_by_all_the_healthy() -> None:
    harm = run_anomalies(1, replace(SMALL, block_s=0.3), LifeguardConfig())
    assert (harm.false_in_total, harm.blocked_accused) == (0, 0)
    assert [crash.missing for crash in harm.crashes] == [0] * SMALL.crashes
    for crash in harm.crashes:
        assert crash.first_s is not None
        assert crash.median_s is not None
        assert crash.last_s is not None
        assert crash.first_s <= crash.median_s <= crash.last_s
        if crash.is_lost:
            assert crash.first_s > SMALL.shortest_suspicion_s
        else:
            assert crash.last_s < 0.1


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_blocked_member_accuses_nobody_however_long_it_is_blocked(seed: int) -> None:
    for blocked in (1, 3):
        anomalies = replace(SMALL, blocked=blocked, block_s=60.0, total_s=60.0, crashes=2)
        harm = run_anomalies(seed, anomalies, LifeguardConfig())
        assert (harm.false_at_healthy, harm.false_in_total) == (0, 0)
        assert [crash.missing for crash in harm.crashes] == [0, 0]


def test_members_crash_at_even_steps_as_many_as_are_wanted() -> None:
    assert replace(SMALL, crashes=4).crash_times_s() == pytest.approx([1.8, 4.8, 7.8, 10.8])
    harm = run_anomalies(1, replace(SMALL, block_s=0.3, crashes=2), LifeguardConfig())
    assert len(harm.crashes) == 2


def test_who_was_accused_just_before_the_crash_is_found_at_once_unless_it_had_refuted() -> None:
    # The second block ends 36 s after the first began, and false verdicts leave; so does the last to crash.
    at_once = run_anomalies(5, HARSH, plain_swim()).crashes[-1]
    assert at_once.median_s is not None
    assert at_once.median_s < 0.1
    later = run_anomalies(5, replace(HARSH, total_s=40.001), plain_swim()).crashes[-1]
    assert later.first_s is not None
    assert later.first_s > HARSH.shortest_suspicion_s


def test_harm_comes_back_from_json() -> None:
    harm = run_anomalies(4, SMALL, plain_swim())
    assert Harm.from_json(json.loads(json.dumps(harm.to_json()))) == harm


def test_what_a_blocked_member_says_is_held_or_not() -> None:
    held, said = (
        run_anomalies(4, replace(SMALL, holds_sends=holds), plain_swim()) for holds in (True, False)
    )
    assert said.false_at_healthy < held.false_at_healthy


@pytest.mark.parametrize(
    "wrong", [{"blocked": 0}, {"blocked": 10}, {"block_s": 0.0}, {"crashes": 1}]
)
def test_anomalies_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        run_anomalies(1, replace(SMALL, **wrong), paper())  # type: ignore[arg-type]  # one each


@pytest.mark.sweep
def test_ours_accuses_at_most_half_as_often_as_lifeguard_and_notices_no_later() -> None:
    found = compare(map(perform, jobs_of((1,), is_quick=False)))
    print(to_text(found))
    false = {name: found.total.sums[name].false_in_total for name in VARIANTS}
    assert 2 * false[OURS] <= false[MODEL] < false["SWIM"]
    assert found.worse() == 0
    assert found.total.killed is not None
    assert found.total.killed.side == "below"
    assert found.total.lost is not None
    assert found.total.lost.side != "above"


# Members that have known each other for long.


def test_members_that_are_made_to_know_each_other_are_a_mesh_at_rest() -> None:
    world = World(3, Node, Network(3, Conditions()), check=True)
    Fleet(world, profile("lan"), FleetOptions()).boot_acquainted(12)
    inspection = Inspection(world, profile("lan"), check=True)
    inspection.demand_converged()
    assert inspection.violations == []
    world.run_for(2.0)  # in which lifelines are opened
    emitted, before = len(world.events), sum(host.traffic.packets_sent for host in world.hosts)
    world.run_for(10.0)
    assert len(world.events) == emitted
    sent = (sum(host.traffic.packets_sent for host in world.hosts) - before) / 12 / 10.0
    assert sent == pytest.approx(2.0, rel=0.1)


@pytest.mark.sweep
def test_a_hundred_seconds_of_three_hundred_members_take_less_than_a_minute() -> None:
    world = World(1, Node, Network(1, Conditions()))
    Fleet(world, profile("lan"), FleetOptions()).boot_acquainted(300)
    began_s = time.process_time()
    world.run_for(100.0)
    assert time.process_time() - began_s < 60.0
