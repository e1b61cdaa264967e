"""An obituary in a simulated mesh: proof at every member, soon, of the session that it names and of no other."""

from __future__ import annotations

import pytest

from mesh.core.events import EventKind
from mesh.core.letter import Letter
from mesh.node.commands import Leave
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World
from tests.sim.sealed_node import SealedNode

KNOWN_S = 0.5
"""How soon everybody is to know, with 1 ms of delay: those who are told at once, the rest by gossip."""


def mesh_of(count: int, node: type[Node] = Node, *, settle_s: float = 30.0) -> World:
    world = World(1, node, Network(1, Conditions(delay_s=0.001)), check=True)
    Fleet(world, profile("lan"), FleetOptions()).boot_acquainted(count)
    world.run_for(settle_s)
    return world


def states(world: World, of: Host) -> set[tuple[str, str]]:
    """Return how a member stands at all the others that run."""
    found = set()
    for host in world.hosts:
        if host.node is not None and host is not of:
            members = host.node.view(host.clock.read(world.loop.now_s)).members
            found |= {(m["state"], m["cause"]) for m in members if m["name"] == of.spec.name}
    return found


@pytest.mark.parametrize("count", [2, 3, 8, 40])
@pytest.mark.parametrize("node", [Node, SealedNode])
def test_everybody_soon_knows_that_a_killed_node_has_ended(count: int, node: type[Node]) -> None:
    world = mesh_of(count, node)
    victim = world.hosts[count // 2]
    world.crash(victim)
    world.run_for(KNOWN_S)
    assert states(world, victim) == {("dead", "ended")}


def test_of_a_host_without_power_nobody_says_that_its_node_has_ended() -> None:
    world = mesh_of(8)
    world.crash(world.hosts[3], power=False)
    world.run_for(60.0)
    assert states(world, world.hosts[3]) == {("dead", "silent")}


def test_of_a_paused_node_nobody_says_that_it_has_ended() -> None:
    world = mesh_of(8)
    world.pause(world.hosts[3])
    world.run_for(60.0)
    assert states(world, world.hosts[3]) == {("dead", "silent")}
    world.resume(world.hosts[3])
    world.run_for(10.0)
    assert states(world, world.hosts[3]) == {("alive", "")}


def test_who_leaves_has_left_and_nothing_else() -> None:
    world = mesh_of(8)
    world.command(world.hosts[3], Leave("asked to"))
    world.run_for(30.0)
    assert world.hosts[3].node is None
    assert states(world, world.hosts[3]) == {("left", "")}
    assert EventKind.DEAD not in {seen.event.kind for seen in world.events}


@pytest.mark.parametrize("node", [Node, SealedNode])
def test_an_obituary_that_comes_late_says_nothing_of_the_next_session(node: type[Node]) -> None:
    world = mesh_of(8, node)
    victim = world.hosts[3]
    late: tuple[Letter, ...] = victim.letters
    assert len(late) == 7
    world.crash(victim)
    world.run_for(5.0)
    world.boot(victim)
    world.run_for(10.0)
    assert states(world, victim) == {("alive", "")}
    for letter in late:
        reader = world.host_at(letter.to)
        assert reader is not None
        world.inject(reader, victim.spec.address, letter.data)
    world.run_for(5.0)
    assert states(world, victim) == {("alive", "")}
    assert victim.node is not None
