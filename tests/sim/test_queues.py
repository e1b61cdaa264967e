"""What is set for a queue, in whole nodes: it outlives a voter, and is known again after a restart."""

from __future__ import annotations

from typing import Any

from mesh.node.config import profile
from mesh.node.node import Node
from mesh.queues.commands import SetQueue, ShowQueue
from mesh.queues.settings import Strategy, queue_key
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World

QUEUE = "thumbs"
SEATED_S = 10.0
"""By then all five vote."""


class Five:
    """Five nodes, of which three vote on the queue's register."""

    def __init__(self) -> None:
        self.world = World(7, Node, Network(7, Conditions(delay_s=0.005)), check=True)
        self.fleet = Fleet(self.world, profile("local"), FleetOptions(profile="local"))
        for _ in range(5):
            self.fleet.boot(self.fleet.add())
        self.world.run_for(SEATED_S)
        self._last = 0

    def ask(self, host: Host, kind: type[SetQueue | ShowQueue], *parts: Any) -> dict[str, Any]:  # noqa: ANN401 - of a command
        """Give a node a command, and return what it answers within a while."""
        self._last += 1
        self.world.command(host, kind(self._last, QUEUE, *parts))
        self.world.run_for(2.0)
        ((_, at, answer),) = [one for one in self.world.answers if one[2].command_id == self._last]
        assert at is host
        assert answer.error is None, answer
        found: dict[str, Any] = answer.result
        return found

    def strategy(self, host: Host) -> str:
        return str(self.ask(host, ShowQueue)["strategy"])

    def keepers(self) -> list[Host]:
        """Return the hosts that vote on the queue, which hold what is set."""
        key = queue_key(QUEUE)
        return [host for host in self.world.hosts if node(host)._work._desk.voter.record(key).value]

    def use(self, host: Host) -> Strategy:
        """Ask a node as its steward does for a task of the queue."""
        tasks, now = node(host)._work._tasks, host.clock.read(self.world.loop.now_s)
        found = tasks._book.strategy_of(now, QUEUE)
        node(host)._work._is_due_known = False  # as any input of the node would
        self.world.poke(host)
        return found


def node(host: Host) -> Node:
    assert isinstance(host.node, Node)
    return host.node


def test_a_setting_outlives_a_voter_and_is_known_again_after_a_restart() -> None:
    five = Five()
    world = five.world
    asker = world.hosts[0]
    assert five.strategy(asker) == "rendezvous"
    assert five.ask(asker, SetQueue, Strategy.PULL)["outcome"] == "set"
    first, second, third = five.keepers()
    others = [host for host in world.hosts if host not in (first, second, third)]
    assert [five.strategy(host) for host in world.hosts] == ["pull"] * 5

    world.crash(first)
    world.run_for(3.0)
    assert [five.strategy(host) for host in (second, *others)] == ["pull"] * 3
    assert five.ask(others[0], SetQueue, Strategy.CONTEST)["outcome"] == "set"

    five.fleet.boot(first)
    world.run_for(4.0)
    assert five.use(first) in {Strategy.PULL, Strategy.CONTEST}, "what its disk holds is known"
    assert five.use(others[1]) is Strategy.PULL, "as it has found it before"
    world.run_for(11.0)
    assert [five.use(host) for host in (first, others[1])] == [Strategy.CONTEST] * 2

    world.crash(others[1])
    five.fleet.boot(others[1])
    world.run_for(4.0)
    assert five.use(others[1]) is Strategy.RENDEZVOUS, "its new session knows of nothing yet"
    world.run_for(1.0)
    assert five.use(others[1]) is Strategy.CONTEST, "and has asked"
