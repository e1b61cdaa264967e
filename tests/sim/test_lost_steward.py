"""The voter that holds a contest is lost in the middle of it: the grant is delayed by less than its stand-by time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from mesh.core.effects import Answer
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.queues.commands import SetQueue, ShowQueue
from mesh.queues.settings import Strategy
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.runs import Act, Behaviour, Run
from mesh.sim.world import World
from mesh.tasks.body import task_key
from mesh.tasks.commands import New, Submit
from mesh.tasks.config import TasksConfig
from mesh.wire.work_messages import Spec

DELAY_S = 0.01
SEATED_S = 10.0
"""By then three of them vote, and all know each other."""

STEP_S = 0.001
STAND_BY_S = TasksConfig().stagger_s
QUEUE = "contest"

with_and_without_power = pytest.mark.parametrize(
    "power", [True, False], ids=["the process is killed", "the host is lost"]
)


@dataclass(slots=True)
class Story:
    """What was seen of one task, in seconds after its submission."""

    called_s: float = 0.0
    lost_s: float = 0.0
    acknowledged_s: float = 0.0
    begun_s: float = 0.0


class Five:
    """Five nodes, and a task that is submitted at one that does not vote."""

    def __init__(self) -> None:
        network = Network(1, Conditions(delay_s=DELAY_S, jitter_s=0.0))
        self.world = World(1, Node, network, workload=lambda _host, _start: Behaviour(0.5))
        fleet = Fleet(self.world, profile("local"), FleetOptions(profile="local"))
        for _ in range(5):
            fleet.boot(fleet.add())
        self.story = Story()
        self.began_s = 0.0
        self.world.runs.watchers.append(self._see)
        self.world.clients.append(self._hear)
        self.world.run_for(SEATED_S)
        self.world.command(self.world.hosts[0], SetQueue(1, QUEUE, Strategy.CONTEST))
        self.world.run_for(1.0)
        for number, host in enumerate(self.world.hosts, 2):
            self.world.command(host, ShowQueue(number, QUEUE))
        self.world.run_for(1.0)
        voters = self.view(self.world.hosts[0]).node["registers"]["voters"]
        named = {host.spec.name: host for host in self.world.hosts}
        self.steward = named[voters[0]]
        self.door = next(host for name, host in named.items() if name not in voters)

    def view(self, host: Host) -> Any:  # noqa: ANN401 - only of nodes that run
        assert host.node is not None
        return host.node.view(host.clock.read(self.world.loop.now_s))

    def play(self, *, lose_at_s: float | None, power: bool = True) -> Story:
        """Submit a task of the steward's, and lose that after so long; None: never."""
        assert isinstance(self.steward.node, Node)
        desk = self.steward.node._work._desk
        task_id = next(f"t{n}" for n in range(100) if desk.place(task_key(f"t{n}")) == 0)
        self.began_s = self.world.loop.now_s
        spec = Spec(task_id=task_id, argv=("work",), queue=QUEUE)
        self.world.command(self.door, Submit(100, New(spec)))
        while self.story.begun_s == 0.0:
            if lose_at_s is not None and self.now_s >= lose_at_s:
                self.story.lost_s, lose_at_s = self.now_s, None
                self.world.crash(self.steward, power=power)
            self.world.run_for(STEP_S)
            if not (self.story.lost_s or self.story.called_s) and self._contests():
                self.story.called_s = self.now_s
            assert self.now_s < 10.0, "it never began"
        return self.story

    @property
    def now_s(self) -> float:
        return self.world.loop.now_s - self.began_s

    def _contests(self) -> bool:
        return bool(self.view(self.steward).contests["latest"])

    def _see(self, _run: Run, act: Act) -> None:
        if act is Act.START:
            self.story.begun_s = self.now_s

    def _hear(self, answer: Answer) -> None:
        if answer.command_id == 100:
            assert answer.error is None
            self.story.acknowledged_s = self.now_s


@pytest.fixture(scope="module")
def undisturbed() -> Story:
    """The same task, whose steward lives."""
    return Five().play(lose_at_s=None)


@with_and_without_power
def test_a_contest_goes_on_though_its_steward_is_lost_before_the_first_bid(
    undisturbed: Story, power: bool
) -> None:
    story = Five().play(lose_at_s=undisturbed.called_s + DELAY_S / 2, power=power)
    assert story.lost_s < undisturbed.called_s + DELAY_S, "nobody has heard the call yet"
    assert story.begun_s - undisturbed.begun_s < 2 * DELAY_S


@with_and_without_power
def test_who_is_next_calls_what_the_steward_was_lost_too_soon_to_call(
    undisturbed: Story, power: bool
) -> None:
    story = Five().play(lose_at_s=undisturbed.called_s - DELAY_S / 2, power=power)
    assert story.called_s == 0.0
    assert story.acknowledged_s == pytest.approx(undisturbed.acknowledged_s, abs=DELAY_S)
    delay_s = story.begun_s - undisturbed.begun_s
    # Where its process alone is gone, the others hear so at once, and wait for it no longer.
    assert delay_s < (4 * DELAY_S if power else STAND_BY_S)
