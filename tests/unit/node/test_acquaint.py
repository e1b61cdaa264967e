"""Members that are made to know each other know what the joining would have taught them."""

from __future__ import annotations

from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World

_OWN = ("since", "rtt_ms", "used", "load")  # what each measures for itself


def known_by_each(world: World) -> list[list[dict[str, object]]]:
    """Return what each node shows of every member, but for what it measured."""
    shown = []
    for host in world.hosts:
        assert host.node is not None
        members = host.node.view(host.clock.read(world.loop.now_s)).members
        shown.append([{k: v for k, v in member.items() if k not in _OWN} for member in members])
    return shown


def mesh_of(count: int, *, is_acquainted: bool) -> World:
    world = World(5, Node, Network(5, Conditions()), check=True)
    fleet = Fleet(world, profile("lan"), FleetOptions())
    if is_acquainted:
        fleet.boot_acquainted(count)
        return world
    for _ in range(count):
        fleet.boot(fleet.add())
    world.run_for(10.0)
    return world


def test_acquainted_members_show_what_joined_members_show() -> None:
    acquainted, joined = (known_by_each(mesh_of(9, is_acquainted=how)) for how in (True, False))
    assert [[m["name"] for m in view] for view in acquainted] == [
        [m["name"] for m in view] for view in joined
    ]
    for view in (*acquainted, *joined):
        assert len(view) == 9
        assert {m["state"] for m in view} == {"alive"}
        assert sum(bool(m["self"]) for m in view) == 1


def test_acquainted_members_can_do_all_that_membership_does() -> None:
    world = mesh_of(9, is_acquainted=True)  # which checks each node after each input
    world.run_for(3.0)
    world.crash(world.hosts[4])
    world.run_for(2.0)
    world.boot(world.hosts[4])
    world.run_for(5.0)
    for view in known_by_each(world):
        assert [m["state"] for m in view] == ["alive"] * 9, "it died, came back, and all know"


def test_acquainted_members_probe_each_other_as_often_as_joined_ones() -> None:
    world = mesh_of(9, is_acquainted=True)
    world.run_for(5.0)
    before = sum(host.traffic.datagrams_sent for host in world.hosts)
    world.run_for(10.0)
    sent = sum(host.traffic.datagrams_sent for host in world.hosts) - before
    assert 1.8 <= sent / 9 / 10.0 <= 2.5, "a ping and an ack a second"
