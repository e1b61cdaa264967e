"""Classes of members, in whole nodes: a dedicated one is for its queues, an emergency one for when the load lasts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from mesh.core.events import EventKind
from mesh.node.commands import Leave, Look, SetFitness
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.queues.commands import SetQueue
from mesh.queues.settings import Strategy
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.runs import Act, Behaviour, Run
from mesh.sim.world import World
from mesh.tasks.commands import New, SubmitMany
from mesh.wire.records import DEDICATED, EMERGENCY, Availability, Metadata
from mesh.wire.work_messages import Spec

SEATED_S = 40.0
"""By then three of them vote, and have stood still for a while."""

JOIN_S = 15.0
"""An emergency member has joined by then."""

GENERAL = Metadata(slots=2)


class Classed:
    """Nodes of these classes that know each other, and what runs where."""

    def __init__(self, seed: int, metas: list[Metadata]) -> None:
        self.world = World(
            seed, Node, Network(seed, Conditions(delay_s=0.002)), workload=_takes, check=True
        )
        fleet = _ClassedFleet(self.world, profile("lan"), FleetOptions())
        fleet.metas = metas
        fleet.boot_acquainted(len(metas))
        self.hosts = self.world.hosts
        self.started: list[tuple[float, str, str]] = []  # when, on which host, of which queue
        self.world.runs.watchers.append(self._see)
        self.world.run_for(SEATED_S)
        self._last = 0

    def command(self, host: Host, kind: type, *parts: object) -> None:
        self._last += 1
        self.world.command(host, kind(self._last, *parts))

    def submit(self, queue: str, count: int, duration_s: float) -> None:
        """Submit so many tasks, each of its own node in turn."""
        spec = Spec(task_id="", argv=("work", repr(duration_s), queue), queue=queue)
        for number in range(count):
            self.command(self.hosts[number % len(self.hosts)], SubmitMany, (New(spec),))

    def tell(self, host: Host, command: SetFitness) -> None:
        self.world.command(host, command)

    def names(self, queue: str) -> Counter[str]:
        return Counter(name for _, name, of in self.started if of == queue)

    def seen(self, whose: Host) -> set[str]:
        """Return what all nodes hold of one's availability."""
        found = set()
        for host in self.hosts:
            if host.node is None:
                continue
            assert isinstance(host.node, Node)
            view = host.node.view(host.clock.read(self.world.loop.now_s))
            found |= {m["availability"] for m in view.members if m["name"] == whose.spec.name}
        return found

    def load(self, host: Host) -> float:
        """Let a node look at its mesh, and return the load that it sees then."""
        for _ in range(2):
            self.world.command(host, Look())
            self.world.run_for(1.0)
        assert isinstance(host.node, Node)
        demand = host.node.demand(host.clock.read(self.world.loop.now_s))
        assert demand is not None
        return demand.load

    def _see(self, run: Run, act: Act) -> None:
        if act is Act.START:
            queue = run.command.argv[2]
            self.started.append((self.world.loop.now_s, run.host.spec.name, queue))


class _ClassedFleet(Fleet):
    metas: list[Metadata]

    def add(self) -> Host:
        host = super().add()
        host.spec = replace(host.spec, meta=self.metas[host.index])
        return host


def _takes(_host: Host, command: object) -> Behaviour:
    return Behaviour(float(command.argv[1]))  # type: ignore[attr-defined]  # it is a command's start


@pytest.mark.parametrize("strategy", Strategy)
def test_a_dedicated_node_takes_its_kind_first_and_nothing_else(strategy: Strategy) -> None:
    video = Metadata(slots=3, node_class=DEDICATED, queues=("video",))
    world = Classed(3, [GENERAL, GENERAL, video, GENERAL, GENERAL])
    for queue in ("video", "mail"):
        world.command(world.hosts[0], SetQueue, queue, strategy)
    world.world.run_for(1.0)
    for _ in range(6):  # one at a time: it always has a slot
        world.submit("video", 1, 0.5)
        world.world.run_for(2.0)
    assert world.names("video") == {"node-2": 6}
    world.submit("mail", 24, 2.0)  # more than all others have slots for
    world.submit("video", 6, 2.0)
    world.world.run_for(30.0)
    assert "node-2" not in world.names("mail")
    assert sum(world.names("mail").values()) == 24
    assert sum(world.names("video").values()) == 12


def test_an_emergency_node_joins_under_lasting_load_and_withdraws_after_it() -> None:
    spare = Metadata(slots=4, node_class=EMERGENCY, availability=Availability.STANDBY)
    world = Classed(5, [GENERAL, GENERAL, spare, GENERAL, GENERAL])
    host = world.hosts[2]
    world.submit("default", 6, 3.0)  # three quarters of the slots, and all of them over soon
    world.world.run_for(15.0)
    assert world.seen(host) == {"standby"}
    began_s = world.world.loop.now_s
    world.submit("default", 40, 12.0)
    world.world.run_for(JOIN_S)
    assert world.seen(host) == {"open"}
    (first_s, *_) = [at for at, name, _ in world.started if name == host.spec.name]
    assert first_s - began_s < JOIN_S
    world.world.run_for(60.0)
    assert len(world.started) == 46
    assert world.seen(host) == {"standby"}
    said = [seen.event.detail for seen in world.world.events if seen.observer is host]
    assert sum(text.startswith("takes work") for text in said) == 1, "it came and went"
    assert sum(text.startswith("stands by") for text in said) == 1
    before = world.names("default")[host.spec.name]
    world.submit("default", 6, 1.0)
    world.world.run_for(10.0)
    assert world.names("default")[host.spec.name] == before


def test_who_drains_is_asked_for_nothing_and_all_know() -> None:
    world = Classed(9, [GENERAL] * 3)
    host = world.hosts[1]
    world.submit("default", 6, 6.0)
    world.world.run_for(2.0)
    world.world.command(host, Leave("as asked", within_s=30.0))
    world.world.run_for(2.0)
    assert world.seen(host) == {"draining"}
    world.submit("default", 4, 1.0)
    world.world.run_for(20.0)
    assert world.names("default")[host.spec.name] == 2
    assert sum(world.names("default").values()) == 10


def test_an_unfit_node_takes_nothing_until_it_is_fit_again_and_all_know() -> None:
    world = Classed(7, [GENERAL] * 3)
    host = world.hosts[1]
    world.tell(host, SetFitness(is_fit=False, why="its health check failed: exit code 1"))
    world.world.run_for(2.0)
    assert world.seen(host) == {"unfit"}
    world.submit("default", 12, 1.0)
    world.world.run_for(10.0)
    assert host.spec.name not in world.names("default")
    world.submit("default", 12, 4.0)
    world.tell(host, SetFitness(is_fit=True))
    world.world.run_for(20.0)
    assert world.names("default")[host.spec.name] >= 2
    assert sum(world.names("default").values()) == 24
    updates = [seen for seen in world.world.events if seen.event.kind is EventKind.UPDATE]
    assert {seen.event.member for seen in updates} == {host.spec.name}
    assert {seen.observer.index for seen in updates} == {0, 1, 2}


def test_an_emergency_node_stands_by_while_the_few_regular_ones_are_idle() -> None:
    """It hears of the only one now and then; the others are dedicated."""
    video = Metadata(slots=2, node_class=DEDICATED, queues=("video",))
    helper = Metadata(slots=2, node_class=EMERGENCY, availability=Availability.STANDBY)
    mesh = Classed(1, [GENERAL, *[video] * 24, helper])
    node, clock = mesh.hosts[-1].node, mesh.hosts[-1].clock
    assert isinstance(node, Node)
    for _ in range(40):
        mesh.world.run_for(1.0)
        demand = node.demand(clock.read(mesh.world.loop.now_s))
        assert demand is not None
        assert demand.load == 0.0
    assert mesh.seen(mesh.hosts[-1]) == {"standby"}


def test_slots_that_no_lease_could_ever_be_had_for_are_no_load() -> None:
    mesh = Classed(1, [GENERAL, GENERAL, GENERAL, Metadata(slots=65_535)])
    assert mesh.load(mesh.hosts[0]) == 0.0


def test_a_node_that_drains_makes_no_load_of_its_idle_slots() -> None:
    mesh = Classed(1, [GENERAL, GENERAL, GENERAL, Metadata(slots=64)])
    mesh.world.command(mesh.hosts[3], Leave("as asked", within_s=600.0))
    mesh.world.run_for(3.0)
    assert mesh.load(mesh.hosts[0]) == 0.0


def test_who_looks_sees_the_load_of_its_pool_and_not_that_of_its_observers() -> None:
    small, large = GENERAL, Metadata(slots=10, labels=(("big", "yes"),))
    mesh = Classed(1, [*[small] * 20, *[large] * 10])
    for number in range(100):  # all slots of the large ones: 100 of 140
        spec = Spec(task_id="", argv=("work", "600.0", "default"), labels=(("big", "yes"),))
        mesh.command(mesh.hosts[number % 30], SubmitMany, (New(spec),))
    mesh.world.run_for(20.0)
    assert len(mesh.started) == 100
    assert mesh.load(mesh.hosts[0]) == pytest.approx(100 / 140)
    assert mesh.load(mesh.hosts[-1]) == pytest.approx(100 / 140)
