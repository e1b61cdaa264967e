"""What refused datagrams are worth: crashes known sooner, and nobody accused because of forged ones."""

from __future__ import annotations

import random

import pytest

from mesh.core.effects import SendDatagram
from mesh.core.events import EventKind
from mesh.core.lines import DatagramRefused
from mesh.membership.observers import observers_of
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.world import Observed, World, host_address
from tests.sim.scripted_node import Stage

STORM_S = 20.0

SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in (2, 3))]


def mesh_of(count: int, *, seed: int = 1, delay_s: float = 0.001) -> World:
    """Return a mesh of members that have known each other for a while."""
    world = World(seed, Node, Network(seed, Conditions(delay_s=delay_s)), check=True)
    Fleet(world, profile("lan"), FleetOptions()).boot_acquainted(count)
    world.run_for(3.0)
    assert of_kind(world, EventKind.DEAD) == []
    return world


def fall(world: World, host: Host, *, power: bool = True) -> None:
    """Let a node end, and its guardian with it: nobody is left to vouch for its end."""
    host.letters = ()
    world.crash(host, power=power)


def of_kind(world: World, kind: EventKind) -> list[Observed]:
    return [seen for seen in world.events if seen.event.kind is kind]


def forge(world: World, rate_s: float, duration_s: float, seed: int) -> None:
    """Let every node hear at this rate that the port of somebody else is closed."""
    rng = random.Random(seed)
    step_s = 1.0 / rate_s
    for _ in range(round(duration_s * rate_s)):
        for host in world.hosts:
            victim = rng.choice(world.hosts)
            if victim is not host:
                world.refusals.arrive((host, host.session, victim.spec.address))
        world.run_for(step_s)


def looks(world: World) -> int:
    """Return how many frames were sent: questions, answers, and what else goes over streams."""
    return sum(host.traffic.frames_sent for host in world.hosts)


def test_storm_of_forged_refusals_accuses_nobody_and_costs_a_bounded_number_of_questions() -> None:
    world = mesh_of(16)
    before = looks(world)
    forge(world, 100.0, STORM_S, seed=3)
    world.run_for(30.0)
    assert of_kind(world, EventKind.SUSPECT) == []
    assert of_kind(world, EventKind.DEAD) == []
    # A question and its answer for each hint that a node's pace lets pass, and what an idle mesh exchanges.
    assert looks(world) - before <= 16 * 2 * (20 + 10 * STORM_S) * 1.1


def test_paused_member_is_accused_by_nobody_though_its_refusals_are_forged() -> None:
    world = mesh_of(8)
    world.pause(world.hosts[2])
    forge(world, 50.0, 2.5, seed=4)
    world.resume(world.hosts[2])
    world.run_for(30.0)
    assert of_kind(world, EventKind.DEAD) == []


def test_crash_amid_a_storm_of_forged_refusals_is_known_at_once() -> None:
    world = mesh_of(8)
    forge(world, 100.0, 2.0, seed=5)
    at_s = world.loop.now_s
    fall(world, world.hosts[3])
    world.run_for(1.0)
    deaths = of_kind(world, EventKind.DEAD)
    assert len(deaths) == 7
    assert {seen.event.cause for seen in deaths} == {"crashed"}
    assert max(seen.at_s for seen in deaths) - at_s <= 0.15


def test_refused_ping_makes_a_crash_known_a_round_trip_sooner() -> None:
    world = mesh_of(8, delay_s=0.05)
    at_s = world.loop.now_s
    fall(world, world.hosts[3])
    world.run_for(1.0)
    deaths = of_kind(world, EventKind.DEAD)
    assert len(deaths) == 7
    first = min(deaths, key=lambda seen: seen.at_s)
    # The end comes, the ping goes, the refusal comes, and the other witness's word.
    assert first.at_s - at_s <= 4 * 0.05 + 0.02
    assert "its lifeline ended, its port refuses datagrams" in first.event.evidence[0]


def test_host_that_lost_power_and_is_up_again_without_its_node_crashed() -> None:
    world = mesh_of(8)
    victim = world.hosts[3]
    fall(world, victim, power=False)
    at_s = world.loop.now_s
    victim.is_powered = True
    world.run_for(30.0)
    deaths = of_kind(world, EventKind.DEAD)
    assert len(deaths) == 7
    assert {seen.event.cause for seen in deaths} == {"crashed"}
    assert max(seen.at_s for seen in deaths) - at_s <= 2.0


@pytest.mark.parametrize(
    ("befalls", "tells"),
    [("crash", True), ("power", False), ("pause", False), ("cut back", False), ("restart", False)],
)
def test_only_a_host_that_runs_without_its_node_refuses(befalls: str, tells: bool) -> None:
    stage = Stage(2)
    world = stage.world
    target = world.hosts[1]
    if befalls == "pause":
        world.pause(target)
    else:
        fall(world, target, power=befalls != "power")
    if befalls == "cut back":
        stage.network.cut([1], [0])
    if befalls == "restart":
        world.boot(target)
    stage.act(0, SendDatagram(host_address(1), b"ping"), SendDatagram(host_address(9), b"nobody"))
    world.run_for(1.0)
    expected = [(0.02, DatagramRefused(host_address(1)))] if tells else []
    heard = stage.nodes[0].of_kind("line")
    assert [event for _, event in heard] == [event for _, event in expected]
    assert [at_s for at_s, _ in heard] == pytest.approx([at_s for at_s, _ in expected])


def test_refusal_waits_for_a_paused_node_and_is_lost_on_its_next_session() -> None:
    stage = Stage(2)
    world = stage.world
    fall(world, world.hosts[1])
    stage.act(0, SendDatagram(host_address(1), b"ping"))
    world.pause(world.hosts[0])
    world.run_for(1.0)
    assert stage.nodes[0].of_kind("line") == []
    world.resume(world.hosts[0])
    assert len(stage.nodes[0].of_kind("line")) == 1
    stage.act(0, SendDatagram(host_address(1), b"ping"))
    world.run_for(0.015)  # it has been refused by now
    fall(world, world.hosts[0])
    world.boot(world.hosts[0])
    world.run_for(1.0)
    assert stage.nodes[2].of_kind("line") == []


def test_what_a_dying_node_had_not_read_is_refused_to_nobody() -> None:
    stage = Stage(2)
    world = stage.world
    world.pause(world.hosts[1])
    stage.act(0, SendDatagram(host_address(1), b"ping"))
    world.run_for(1.0)
    fall(world, world.hosts[1])
    world.run_for(1.0)
    assert stage.nodes[0].of_kind("line") == []


def first_verdicts(world: World, since_s: float) -> dict[tuple[str, str], str]:
    """Return the cause of each observer's first verdict on each member."""
    found: dict[tuple[str, str], str] = {}
    for seen in of_kind(world, EventKind.DEAD):
        if seen.at_s >= since_s:
            found.setdefault((seen.observer.spec.name, seen.event.member), seen.event.cause)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_cut_that_rejects_is_a_crash_to_both_sides_and_heals(seed: int) -> None:
    world = mesh_of(10, seed=seed)
    halves = (world.hosts[:4], world.hosts[4:])
    began_s = world.loop.now_s
    cut = world.network.reject(range(4), range(4, 10))
    world.run_for(20.0)
    ids = [host.node_id for host in world.hosts]
    expected = {}
    for half, other in (halves, halves[::-1]):
        for member in other:
            observers = observers_of(member.node_id, ids, 4)
            # A member whose observers are all on its own side leaves no stream that could end on the other.
            is_seen = any(host.node_id in observers for host in half)
            for host in half:
                pair = (host.spec.name, member.spec.name)
                expected[pair] = "crashed" if is_seen else "silent"
    assert first_verdicts(world, began_s) == expected
    assert list(expected.values()).count("crashed") >= 40
    world.network.mend(cut)
    world.run_for(5.0)
    for host in world.hosts:
        assert isinstance(host.node, Node)
        members = host.node.view(host.clock.read(world.loop.now_s)).members
        assert {member["state"] for member in members} == {"alive"}


@pytest.mark.sweep
@pytest.mark.parametrize("seed", SEEDS)
def test_member_that_some_cannot_reach_and_others_can_does_not_come_and_go_for_ever(
    seed: int,
) -> None:
    world = mesh_of(8, seed=seed)
    world.network.reject([0, 1], [7])
    world.run_for(10.0)
    settled_s = world.loop.now_s
    world.run_for(45.0)
    deaths = [seen for seen in of_kind(world, EventKind.DEAD) if seen.at_s >= settled_s]
    assert deaths == []


def test_one_member_that_alone_cannot_reach_another_accuses_it_of_no_crash() -> None:
    world = mesh_of(8)
    world.network.reject([0], [7])
    world.run_for(60.0)
    assert of_kind(world, EventKind.DEAD) == []
