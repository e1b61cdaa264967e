"""A node on which all tasks of one queue fail at once: it is always idle, and all the same it is soon given few of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from mesh.core.effects import StartProcess
from mesh.node.commands import Command
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.queues.commands import SetQueue, ShowQueue
from mesh.queues.settings import Strategy
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.runs import Act, Behaviour, Run
from mesh.sim.world import World
from mesh.tasks.body import Terms
from mesh.tasks.commands import New, Submit
from mesh.wire.work_messages import Spec

NODES, SLOTS, BAD = 5, 4, 3
SEATED_S = 30.0
TASKS, EARLY, GAP_S = 80, 20, 0.25
"""Tasks of each queue; so many of them pass before shares are counted; from one task to the next."""

VIDEO, AUDIO = "video", "audio"


class _EvenFleet(Fleet):
    """Hosts with as many slots each."""

    def add(self) -> Host:
        host = super().add()
        host.spec = replace(host.spec, meta=replace(host.spec.meta, slots=SLOTS))
        return host


class Five:
    """Five nodes, two queues with contests, and where each attempt began."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        network = Network(seed, Conditions(delay_s=0.002))
        self.world = World(seed, Node, network, workload=self._behave)
        self.begun: list[tuple[str, int, int]] = []
        """Queue, number of the task, and host of each attempt, in order."""

        self.world.runs.watchers.append(self._see)
        _EvenFleet(self.world, profile("lan"), FleetOptions(profile="lan")).boot_acquainted(NODES)
        self.world.run_for(SEATED_S)
        self._last = 0

    def work(self) -> None:
        """Let tasks of both queues come, one after the other, at each node in turn."""
        hosts = self.world.hosts
        for queue in (VIDEO, AUDIO):
            self._give(hosts[0], partial(SetQueue, queue=queue, strategy=Strategy.CONTEST))
        self.world.run_for(1.0)
        for host in hosts:
            for queue in (VIDEO, AUDIO):
                self._give(host, partial(ShowQueue, queue=queue))
        self.world.run_for(1.0)
        terms = Terms(retries=20, retry_delay_s=0.1, retry_delay_s_max=0.1)
        for number in range(TASKS):
            for queue in (VIDEO, AUDIO):
                spec = Spec(task_id=f"{queue}-{number}", argv=("work",), queue=queue)
                self._give(self._rng.choice(hosts), partial(Submit, new=New(spec, terms)))
                self.world.run_for(GAP_S)
        self.world.run_for(5.0)

    def share(self, queue: str) -> float:
        """Return which share of the later attempts at tasks of a queue the bad node had."""
        late = Counter(host for one, number, host in self.begun if one == queue and number >= EARLY)
        return late[BAD] / late.total()

    def _behave(self, host: Host, command: StartProcess) -> Behaviour:
        if host.index == BAD and command.env["MESH_TASK_ID"].startswith(VIDEO):
            return Behaviour(0.02, exit_code=1)
        return Behaviour(self._rng.uniform(0.5, 3.0))

    def _see(self, run: Run, act: Act) -> None:
        if act is Act.START:
            queue, number = run.command.env["MESH_TASK_ID"].split("-")
            self.begun.append((queue, int(number), run.host.index))

    def _give(self, host: Host, make: Callable[..., Command]) -> None:
        self._last += 1
        self.world.command(host, make(command_id=self._last))


def test_a_node_on_which_all_fails_at_once_is_given_few_of_these_and_as_many_others_as_before() -> (
    None
):
    five = Five(5)
    five.work()
    ended = {(queue, number) for queue, number, _ in five.begun}
    assert len(ended) == 2 * TASKS, "each was begun somewhere"
    first = [host for queue, number, host in five.begun if queue == VIDEO and number < EARLY]
    assert BAD in first, "nothing was known of it"
    assert five.share(VIDEO) <= 0.1, "half of them, were it not remembered"
    assert 0.5 / NODES <= five.share(AUDIO) <= 2 / NODES
