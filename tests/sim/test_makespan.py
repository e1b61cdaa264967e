"""Uneven tasks on uneven nodes: no slot stands idle while a task waits, so there is nothing that a node could steal.

Three figures stand beside what twenty whole nodes take: what no schedule falls below, the schedule that knows all
durations, and the best of those that know none (`mesh.bench.schedules`). The same with real nodes: `bench/contests`.

Disks do not stall here: where those of two voters do at once, the whole mesh waits, and that is another question.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mesh.bench.schedules import Makespan, bound_s, compare, draw_durations
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.queues.commands import SetQueue, ShowQueue
from mesh.queues.settings import Strategy
from mesh.sim import disks
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.runs import Act, Behaviour, Run
from mesh.sim.world import World
from mesh.tasks.commands import New, SubmitMany
from mesh.wire.work_messages import Spec

SLOTS = (8, 2, *[1] * 18)
SHORTEST_S, LONGEST_S = 0.05, 5.0
STRATEGIES = (Strategy.PULL, Strategy.RENDEZVOUS, Strategy.CONTEST)
SEATED_S = 40.0
"""By then three of them vote, and have stood still for a while."""

RATIO_MAX = 1.15
GREEDY_MAX = 1.05
"""A slot waits for its next task for about 22 ms: verdict, word of the slot, offer, promise, grant. That is 1 to 3 % of a mean task."""


class Twenty:
    """Twenty nodes that know each other, and each task that they run."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        slots = self.rng.sample(SLOTS, len(SLOTS))
        self.world = World(seed, Node, Network(seed, Conditions(delay_s=0.002)), workload=_takes)
        fleet = _UnevenFleet(self.world, profile("lan"), FleetOptions())
        fleet.slots = slots
        fleet.boot_acquainted(len(slots))
        self.begun: list[float] = []
        self.ended = 0
        self.ended_s = 0.0
        self.world.runs.watchers.append(self._see)
        self.world.run_for(SEATED_S)
        self._last = 0

    def measure(self, strategy: Strategy, durations: list[float]) -> Makespan:
        """Submit tasks of these durations at random nodes, all at once, and run them all."""
        self._set(strategy)
        batches: dict[Host, list[New]] = {}
        for duration_s in durations:
            spec = Spec(task_id="", argv=("work", repr(duration_s)), queue=strategy.value)
            batches.setdefault(self.rng.choice(self.world.hosts), []).append(New(spec))
        self.begun.clear()
        self.ended, began_s = 0, self.world.loop.now_s
        for host, news in batches.items():
            self._command(host, SubmitMany, tuple(news))
        longest_s = 3 * bound_s(durations, sum(SLOTS))
        while self.ended < len(durations):
            self.world.run_for(1.0)
            assert self.world.loop.now_s - began_s < longest_s, "a task waits for ever"
        assert sorted(self.begun) == sorted(durations), "each ran once"
        return compare(self.ended_s - began_s, self.begun, sum(SLOTS))

    def _set(self, strategy: Strategy) -> None:
        """Set the strategy of the queue that bears its name, and see that every node knows."""
        self.world.answers.clear()
        self._command(self.world.hosts[0], SetQueue, strategy.value, strategy)
        self.world.run_for(1.0)
        for host in self.world.hosts:
            self._command(host, ShowQueue, strategy.value)
        self.world.run_for(1.0)
        found = [answer.result["strategy"] for _, _, answer in self.world.answers if answer.result]
        assert found == [strategy] * (1 + len(self.world.hosts))

    def _command(
        self, host: Host, kind: type[SetQueue | ShowQueue | SubmitMany], *parts: object
    ) -> None:
        self._last += 1
        self.world.command(host, kind(self._last, *parts))  # type: ignore[arg-type]  # as its kind has them

    def _see(self, run: Run, act: Act) -> None:
        if act is Act.START:
            self.begun.append(run.behaviour.duration_s)
        elif act is Act.END:
            self.ended, self.ended_s = self.ended + 1, self.world.loop.now_s


class _UnevenFleet(Fleet):
    """Hosts with the slots that they are given, in their order."""

    slots: list[int]

    def add(self) -> Host:
        host = super().add()
        host.spec = replace(host.spec, meta=replace(host.spec.meta, slots=self.slots[host.index]))
        return host


def _takes(_host: Host, command: object) -> Behaviour:
    return Behaviour(float(command.argv[1]))  # type: ignore[attr-defined]  # it is a command's start


@pytest.fixture(autouse=True)
def even_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no disk stall."""
    monkeypatch.setattr(disks, "STALL_SHARE", 0.0)


def _check(seed: int, durations: list[float]) -> None:
    twenty = Twenty(seed)
    for strategy in STRATEGIES:
        found = twenty.measure(strategy, durations)
        print(f"\nseed {seed}, {len(durations)} tasks, {strategy}: {found}")
        assert found.longest_first_s <= RATIO_MAX * found.bound_s
        assert found.mesh_s <= RATIO_MAX * found.longest_first_s, (strategy, found)
        assert found.mesh_s <= GREEDY_MAX * found.greedy_s, (strategy, found)


def test_uneven_tasks_on_uneven_nodes_end_soon_after_the_best_schedule_would() -> None:
    """The durations are spread evenly here: so few tasks leave little to the last of them."""
    rng = Random(1)
    _check(1, [rng.uniform(SHORTEST_S, LONGEST_S) for _ in range(260)])


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(10))
def test_tasks_of_every_order_of_magnitude_end_soon_after_the_best_schedule_would(
    seed: int,
) -> None:
    """As many last 0.05 to 0.5 s as 0.5 to 5 s."""
    rng = Random(seed)
    _check(seed, draw_durations(rng, 1_000, SHORTEST_S, LONGEST_S))
