"""A voter whose data directory and clock are set back votes no more, in this session or any later one."""

from __future__ import annotations

from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World


def votes(host: Host) -> bool:
    assert isinstance(host.node, Node)
    return bool(host.node._work.describe()["votes"])


def test_voter_whose_disk_and_clock_were_set_back_votes_no_more_though_it_be_restarted() -> None:
    world = World(5, Node, Network(5, Conditions()), check=True)
    fleet = Fleet(world, profile("local"), FleetOptions(profile="local"))
    for _ in range(4):
        fleet.boot(fleet.add())
    world.run_for(8.0)
    voter = next(host for host in world.hosts[1:] if votes(host))

    def restart() -> None:
        world.run_for(1.0)
        fleet.boot(voter)
        world.run_for(4.0)

    for _ in range(2):
        world.crash(voter)
        restart()
        assert votes(voter), "it still has its disk"
    world.crash(voter)
    voter.roll_back(3600.0)
    restart()
    assert not votes(voter)
    world.crash(voter)
    restart()
    assert not votes(voter), "its boot is new, and its disk as old as before"
    voter.lose_disk()
    world.crash(voter)
    restart()
    identities = [one for one in world.census.identities() if one.host is voter]
    assert [one.is_running for one in identities] == [False, True], "a new member"
