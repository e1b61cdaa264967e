"""Strategies that change at random under load, over real voters and members: no task is lost, or waits for ever."""

from __future__ import annotations

from random import Random

import pytest

from mesh.core.effects import StartProcess, StopProcess
from mesh.core.ids import NodeId
from mesh.queues.commands import SetQueue
from mesh.queues.settings import Strategy
from mesh.tasks.body import Body, Terms
from mesh.tasks.commands import New, Submit
from mesh.wire.work_messages import Spec
from tests.unit.tasks.crew import VOTERS, Crew, Node

D, E, F, G = MEMBERS = (NodeId(4), NodeId(5), NodeId(6), NodeId(7))
SLOTS = {D: 1, E: 1, F: 2, G: 3}
QUEUES = ("thumbs", "mail")
STEPS = 120
TERMS = Terms(retries=100, retry_delay_s=0.2, retry_delay_s_max=0.4)
END_S = 120.0
"""Leases last three seconds here, and whoever is silent is asked again after two."""


class Load:
    """A crew that is given work, and its processes."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.crew = Crew(SLOTS)
        self.given = 0
        self.tasks: list[str] = []
        self.running: dict[tuple[NodeId, int], str] = {}
        self.ran: dict[str, int] = {}
        self.used: set[Strategy] = set()

    def step(self) -> None:
        """Let one thing happen, of those that do while a mesh works."""
        rng = self.rng
        chance = rng.random()
        if chance < 0.45:
            self.submit()
        elif chance < 0.65:
            self.set(rng.choice(QUEUES), rng.choice(list(Strategy)))
        elif chance < 0.85:
            self.end_some()
        elif chance < 0.9:
            away = self.crew.away
            away.symmetric_difference_update({rng.choice(MEMBERS)})
        else:
            self.crew.wait(rng.choice([0.01, 0.3, 4.0]))
        self.look()

    def submit(self) -> None:
        """Submit a task; every third has an id that its first voter draws, so that its creation may name its owner."""
        rng = self.rng
        self.given += 1
        given = f"t{self.given}" if rng.random() < 0.7 else ""
        needs = (
            (("gpu", 1),) if rng.random() < 0.1 else ()
        )  # that nobody has: it is in nobody's way
        spec = Spec(
            task_id=given,
            argv=("work",),
            key=rng.choice(["", "one key"]),
            queue=rng.choice(QUEUES),
            needs=needs,
        )
        answer = self.crew.give(rng.choice(VOTERS), lambda n: Submit(n, New(spec, TERMS)))
        assert answer is not None
        assert answer.error is None, answer
        if not needs:
            self.tasks.append(answer.result["id"])

    def set(self, queue: str, strategy: Strategy) -> None:
        """Set a strategy; the voters of the queue, which are the stewards too, know it as soon as they store it."""
        self.used.add(strategy)
        own = self.rng.choice(VOTERS)
        answer = self.crew.give(own, lambda n: SetQueue(n, queue, strategy))
        while answer is None:  # somebody else's ballot was in the way
            self.crew.wait(0.05)
            answer = self.crew.answer(own)
        assert answer.error is None, answer
        assert answer.result["outcome"] in {"set", "kept"}
        known = [one.tasks._book.strategy_of(self.crew.now, queue) for one in self._stewards()]
        assert known == [strategy] * 3

    def _stewards(self) -> list[Node]:
        return [self.crew.nodes[own] for own in VOTERS]

    def end_some(self, share: float = 0.5) -> None:
        """Let some processes end, every fifth badly."""
        for own, run_id in sorted(self.running):
            if self.rng.random() < share:
                self.end(own, run_id, 1 if self.rng.random() < 0.2 else 0)

    def end(self, own: NodeId, run_id: int, code: int) -> None:
        del self.running[own, run_id]
        self.crew.exit(own, run_id, code)

    def look(self) -> None:
        """Take what was started, and end what was stopped, until nothing more is."""
        is_still = False
        while not is_still:
            is_still = True
            for own in MEMBERS:
                node = self.crew.nodes[own]
                for start in node.said(StartProcess):
                    assert isinstance(start, StartProcess)
                    task_id = start.env["MESH_TASK_ID"]
                    self.running[own, start.run_id] = task_id
                    self.ran[task_id] = self.ran.get(task_id, 0) + 1
                for stop in node.said(StopProcess):
                    assert isinstance(stop, StopProcess)
                    if (own, stop.run_id) in self.running:
                        self.end(own, stop.run_id, 137)
                        is_still = False

    def open(self) -> list[Body]:
        """Return the tasks that are not over."""
        bodies = [self.crew.body(task_id) for task_id in self.tasks]
        return [body for body in bodies if not body.state.is_terminal]

    def settle(self) -> None:
        """Bring everybody back, and let all processes end as they come."""
        self.crew.away.clear()
        until = self.crew.now + END_S
        while self.open():
            assert self.crew.now < until, f"these wait for ever: {self.open()[:3]}"
            self.end_some(1.0)
            self.look()
            self.crew.wait(0.1)
            self.look()


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(n, marks=pytest.mark.sweep) for n in range(3, 60))]
)
def test_no_task_is_lost_or_stuck_however_strategies_change(seed: int) -> None:
    load = Load(seed)
    for queue in QUEUES:
        load.set(queue, load.rng.choice(list(Strategy)))
    for _ in range(STEPS):
        load.step()
    assert load.used == set(Strategy)
    load.settle()
    assert len(load.tasks) > STEPS / 4
    assert all(load.ran[task_id] >= 1 for task_id in load.tasks)
    assert {load.crew.body(task_id).state.word for task_id in load.tasks} == {"done"}


@pytest.mark.parametrize("key", ["", "one key"])
def test_what_is_submitted_at_one_voter_goes_round_all_members(key: str) -> None:
    """Its voter is the first of the ids that it draws, so that one round spreads them all."""
    crew = Crew(dict.fromkeys(MEMBERS, 8))
    command = crew.give(VOTERS[0], lambda n: SetQueue(n, "mail", Strategy.ROUND_ROBIN))
    assert command is not None
    for count in range(1, 31):
        spec = Spec(task_id="", argv=("work",), key=key, queue="mail")
        crew.give(VOTERS[0], lambda n, spec=spec: Submit(n, New(spec)))  # type: ignore[misc]  # of a default that binds
        runs = [crew.nodes[own].tasks.used for own in MEMBERS]
        assert sum(runs) == count
        assert max(runs) - min(runs) <= 1
