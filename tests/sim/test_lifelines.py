"""What the end of a lifeline is worth: crashes known at once, and nobody accused of one who only paused."""

from __future__ import annotations

import pytest

from mesh.core.events import EventKind
from mesh.membership.observers import observers_of
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.world import Observed, World

CRASH_S = 0.15
"""How soon everybody is to know of a crash, with 1 ms of delay."""


def mesh_of(count: int, *, seed: int = 1, timings: str = "lan", settle_s: float = 3.0) -> World:
    """Return a mesh of members that have known each other for a while."""
    world = World(seed, Node, Network(seed, Conditions(delay_s=0.001)), check=True)
    Fleet(world, profile(timings), FleetOptions()).boot_acquainted(count)
    world.run_for(settle_s)
    assert verdicts(world) == []
    return world


def fall(world: World, host: Host, *, power: bool = True) -> None:
    """Let a node end, and its guardian with it: nobody is left to vouch for its end."""
    host.letters = ()
    world.crash(host, power=power)


def verdicts(world: World) -> list[Observed]:
    """Return all deaths that were declared."""
    return [seen for seen in world.events if seen.event.kind is EventKind.DEAD]


def suspected(world: World) -> list[str]:
    return [seen.event.member for seen in world.events if seen.event.kind is EventKind.SUSPECT]


def crash(world: World, host: Host, *, power: bool = True) -> dict[str, tuple[float, str]]:
    """Let a node end and a minute pass; return when each survivor declared it dead, and why."""
    at_s = world.loop.now_s
    fall(world, host, power=power)
    world.run_for(60.0)
    return {
        seen.observer.spec.name: (seen.at_s - at_s, seen.event.cause)
        for seen in verdicts(world)
        if seen.event.member == host.spec.name
    }


def kept(world: World) -> int:
    """Return how many lifelines are kept, after checking that both ends agree."""
    lines = [host.node._swim.lines for host in world.hosts if isinstance(host.node, Node)]
    own = sum(line.own.kept for line in lines)
    assert own == sum(line.evidence.held for line in lines)
    return own


@pytest.mark.parametrize("count", [2, 3, 5, 8, 32, pytest.param(100, marks=pytest.mark.sweep)])
def test_crash_is_known_to_all_at_once_with_its_evidence(count: int) -> None:
    world = mesh_of(count)
    victim = world.hosts[count // 2]
    known = crash(world, victim)
    assert len(known) == count - 1
    assert {cause for _, cause in known.values()} == {"crashed"}
    assert max(at_s for at_s, _ in known.values()) <= CRASH_S
    evidence = [text for seen in verdicts(world) for text in seen.event.evidence]
    refusals = ("its port refuses datagrams", "its host refuses connections")
    assert any(f"its lifeline ended, {text}" in " ".join(evidence) for text in refusals)


def test_every_member_has_its_four_observers_and_others_where_one_dies() -> None:
    world = mesh_of(12)
    assert kept(world) == 12 * 4
    crash(world, world.hosts[3])
    assert kept(world) == 11 * 4


def test_in_a_small_mesh_everybody_observes_everybody() -> None:
    assert kept(mesh_of(3)) == 3 * 2


def test_paused_member_is_accused_by_nobody_for_as_long_as_the_profile_forgives() -> None:
    world = mesh_of(8)
    world.pause(world.hosts[2])
    world.run_for(2.5)
    world.resume(world.hosts[2])
    world.run_for(60.0)
    assert verdicts(world) == []


def test_host_that_is_lost_is_found_by_its_silence() -> None:
    world = mesh_of(8)
    known = crash(world, world.hosts[4], power=False)
    assert len(known) == 7
    assert {cause for _, cause in known.values()} == {"silent"}
    assert min(at_s for at_s, _ in known.values()) >= profile("lan").pause_tolerance_s


def test_middlebox_that_resets_every_lifeline_accuses_nobody() -> None:
    world = mesh_of(16)
    world.lifelines.cut_all()
    world.run_for(5.0)
    assert suspected(world) == []
    assert kept(world) == 16 * 4


def test_who_restarts_at_once_is_known_dead_and_back_and_never_again() -> None:
    world = mesh_of(8)
    victim = world.hosts[5]
    fall(world, victim)
    world.run_for(0.3)
    world.boot(victim)
    world.run_for(60.0)
    deaths = [seen for seen in verdicts(world) if seen.event.member == victim.spec.name]
    assert len(deaths) == 7
    for host in world.hosts:
        assert host.node is not None
        members = host.node.view(host.clock.read(world.loop.now_s)).members
        assert {member["state"] for member in members} == {"alive"}
    assert kept(world) == 8 * 4


def test_who_is_back_before_anybody_could_ask_is_never_declared_dead() -> None:
    world = mesh_of(8)
    victim = world.hosts[5]
    fall(world, victim)
    world.boot(victim)
    world.run_for(30.0)
    assert verdicts(world) == []


def test_observers_that_die_with_their_subject_do_not_hide_its_crash() -> None:
    world = mesh_of(24)
    at_s = world.loop.now_s
    victims = world.hosts[4:10]
    for victim in victims:
        fall(world, victim)
    world.run_for(60.0)
    names = {victim.spec.name for victim in victims}
    survivors = len(world.hosts) - len(victims)
    told = [seen for seen in verdicts(world) if seen.event.member in names]
    assert len(told) == survivors * len(victims)
    assert sorted(seen.at_s - at_s for seen in told)[len(told) // 2] <= 1.0


def test_lost_datagrams_do_not_hide_a_crash() -> None:
    world = World(7, Node, Network(7, Conditions(delay_s=0.001, loss_ratio=0.3)))
    Fleet(world, profile("lan"), FleetOptions()).boot_acquainted(16)
    world.run_for(3.0)
    known = crash(world, world.hosts[7])
    assert len(known) == 15
    # Whoever misses the news is told by the next two pings, and gives the member a moment.
    swim = profile("lan")
    bound_s = 2 * swim.probe_interval_s + swim.moment_s(16)
    assert max(at_s for at_s, _ in known.values()) <= bound_s


@pytest.mark.parametrize("seed", range(1, 6))
def test_deaf_member_accuses_nobody_of_a_crash(seed: int) -> None:
    world = mesh_of(8, seed=seed)
    world.deafen(world.hosts[1], True)
    world.run_for(10.0)
    world.deafen(world.hosts[1], False)
    world.run_for(30.0)
    assert {seen.event.cause for seen in verdicts(world)} <= {"silent"}


def test_host_that_is_lost_with_all_who_would_miss_it_is_found_by_the_comparison_with_somebody() -> (
    None
):
    world = mesh_of(16)
    ids = [host.node_id for host in world.hosts]
    for subject in ids:
        who_miss = set(observers_of(subject, ids, 4))
        who_ask = {other for other in ids if subject in observers_of(other, ids, 4)}
        lost = {subject} | who_miss | who_ask
        left = [other for other in ids if other not in lost]
        if not any(subject in observers_of(other, [*left, subject], 4) for other in left):
            break
    else:
        pytest.fail("every member is observed, or an observer, of whoever is left")
    for host in world.hosts:
        if host.node_id in lost:
            world.crash(host, power=False)
    world.run_for(4 * profile("lan").sync_interval_s)
    known = [seen for seen in verdicts(world) if seen.event.member_id == subject]
    assert len(known) == len(left)
