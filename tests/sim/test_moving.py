"""Hosts that get other addresses while their nodes run: the same sessions, found where they are now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from mesh.core.address import Address
from mesh.core.effects import Effect
from mesh.core.events import EventKind
from mesh.node.commands import Command, TakeAddress
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World, host_address
from tests.sim.sealed_node import SealedNode

NOTICED_S = 1.0
HEALED_S = 3.0
ALL_FOLLOWED_S = 12.0
"""How soon where all but one have moved: who missed the news then hears it when views are compared."""

AGED_S = 24.0
"""How soon the mesh is one where seals do not know of the move, and learn it from what stays unanswered."""


class Unaware(SealedNode):
    """Its node moves, and its seal does not hear of it: as behind a translation of addresses."""

    def handle_command(self, now: float, command: Command) -> list[Effect]:
        return self._sealed(now, Node.handle_command(self, now, command))


SEEDS = (1, 2, pytest.param(3, marks=pytest.mark.sweep))
NODES = [(Node, HEALED_S), (SealedNode, HEALED_S), (Unaware, AGED_S)]


def mesh_of(count: int, seed: int, make_node: type[Node]) -> World:
    """Return a mesh of members that have spoken with each other."""
    world = World(seed, make_node, Network(seed, Conditions(delay_s=0.001)), check=True)
    Fleet(world, profile("lan"), FleetOptions()).boot_acquainted(count)
    world.run_for(3.0 * count)
    assert not kinds(world, EventKind.SUSPECT)
    return world


def move(world: World, moves: dict[Host, Address]) -> None:
    """Give hosts other addresses; their nodes notice a moment later."""
    for host in moves:
        del world._by_address[host.spec.address]
    for host, address in moves.items():
        host.spec = replace(host.spec, address=address)
        world._by_address[address] = host
    world.run_for(NOTICED_S)
    for host, address in moves.items():
        world.command(host, TakeAddress(address))


def kinds(world: World, kind: EventKind, since_s: float = 0.0) -> list[str]:
    return [s.event.member for s in world.events if s.event.kind is kind and s.at_s >= since_s]


def unopened(world: World) -> int:
    """Return how many datagrams living nodes could not open."""
    nodes = [host.node for host in world.hosts]
    return sum(n.seal.counters["dropped_unopened"] for n in nodes if isinstance(n, SealedNode))


def check_one(world: World, hosts: Sequence[Host]) -> None:
    """Raise unless each of these hosts sees all of them, and nobody else, alive where they are."""
    expected = sorted((host.spec.name, "alive", str(host.spec.address)) for host in hosts)
    for host in hosts:
        assert host.node is not None
        rows = host.node.view(host.clock.read(world.loop.now_s)).members
        seen = [(row["name"], row["state"], row["address"]) for row in rows]
        assert sorted(row for row in seen if row[1] != "dead") == expected, host.spec.name


@pytest.mark.parametrize("make_node", [Node, SealedNode])
@pytest.mark.parametrize("seed", SEEDS)
def test_members_whose_addresses_change_are_followed_and_nobody_dies_of_it(
    make_node: type[Node], seed: int
) -> None:
    world = mesh_of(8, seed, make_node)
    sessions = [host.session for host in world.hosts]
    move(world, {host: host_address(1_000 + host.index) for host in world.hosts[:7]})
    world.run_for(ALL_FOLLOWED_S)
    check_one(world, world.hosts)
    world.run_for(30.0)
    assert not kinds(world, EventKind.SUSPECT, world.loop.now_s - 30.0)
    assert not kinds(world, EventKind.DEAD)
    assert not kinds(world, EventKind.CONFLICT)
    assert [host.session for host in world.hosts] == sessions


@pytest.mark.parametrize(("make_node", "healed_s"), NODES)
@pytest.mark.parametrize("seed", SEEDS)
def test_two_that_moved_at_once_each_to_where_it_knew_a_third_understand_each_other(
    make_node: type[Node], healed_s: float, seed: int
) -> None:
    world = mesh_of(5, seed, make_node)
    a, b, c, d, _ = world.hosts
    for host in (c, d):
        world.crash(host)
    world.run_for(15.0)
    move(world, {a: d.spec.address, b: c.spec.address})
    living = [host for host in world.hosts if host.node is not None]
    world.run_for(healed_s)
    check_one(world, living)
    before = unopened(world)
    world.run_for(30.0)
    check_one(world, living)
    assert unopened(world) == before
    assert not kinds(world, EventKind.SUSPECT, world.loop.now_s - 30.0)
    assert {c.spec.name, d.spec.name} == set(kinds(world, EventKind.DEAD))


@pytest.mark.parametrize(("make_node", "healed_s"), NODES)
@pytest.mark.parametrize("seed", SEEDS)
def test_members_that_all_take_the_address_of_the_next_find_each_other(
    make_node: type[Node], healed_s: float, seed: int
) -> None:
    world = mesh_of(5, seed, make_node)
    addresses = [host.spec.address for host in world.hosts]
    turned = addresses[1:] + addresses[:1]
    move(world, dict(zip(world.hosts, turned, strict=True)))
    world.run_for(healed_s)
    check_one(world, world.hosts)
    if healed_s == HEALED_S:
        assert not kinds(world, EventKind.DEAD)
    before = unopened(world)
    world.run_for(30.0)
    assert not kinds(world, EventKind.SUSPECT, world.loop.now_s - 30.0)
    assert unopened(world) == before
