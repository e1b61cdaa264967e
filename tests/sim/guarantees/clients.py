"""Clients of a mesh: they submit, ask, cancel and wait, each at some node that takes a command, and tell a judge.

One task may be asked for at two nodes. Every second one is put into a queue that has a strategy of its own. Commands differ in how often they fail, and some hosts are too short of
something to start one.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from mesh.core.effects import Answer, StartProcess
from mesh.queues.commands import SetQueue
from mesh.queues.settings import DEFAULT, Strategy
from mesh.sim.census import UNIX_START_S
from mesh.sim.host import Host
from mesh.sim.runs import Behaviour
from mesh.sim.world import World
from mesh.tasks.body import Terms
from mesh.tasks.commands import (
    CancelTask,
    GetTask,
    ListTasks,
    New,
    RetryTask,
    Submit,
    SubmitMany,
    TaskCommand,
    WaitFor,
)
from mesh.wire.work_messages import Spec
from tests.sim.tasks.executor import SHORT_OF_PROCESSES, TERM_S_MAX
from tests.sim.tasks.judge import Judge

LONGEST_RUN_S: Final = 6.0
"""Most take far less; but what outlasts a lease is what a cut or a pause can make lapse."""

LONG_RUNS: Final = 0.3
RETRIES: Final = 3
WAITED_S: Final = 6.0
QUEUES: Final = ("contested", "other")
"""The first is always contested."""

OTHERS: Final = tuple(one for one in Strategy if one is not DEFAULT)


class Work:
    """What commands do: a little of anything."""

    def __init__(self, rng: random.Random) -> None:
        self.failing: dict[str, float] = {}  # by task: how often its command fails
        self._rng = rng

    def __call__(self, _host: Host, command: StartProcess) -> Behaviour:
        """Draw one run."""
        rng = self._rng
        if rng.random() < SHORT_OF_PROCESSES:
            return Behaviour(0.0, 126, error="no process could be had", is_host_fault=True)
        fails = rng.random() < self.failing.get(command.env["MESH_TASK_ID"], 0.0)
        is_long = rng.random() < LONG_RUNS
        return Behaviour(
            rng.uniform(2.0, LONGEST_RUN_S) if is_long else rng.uniform(0.02, 3.0) * rng.random(),
            3 if fails else 0,
            ((1, b"worked\n"),) if rng.random() < 0.5 else (),
            term_s=rng.uniform(0.01, TERM_S_MAX),
        )


class Clients:
    """Everybody who asks something of a mesh."""

    def __init__(
        self,
        world: World,
        judge: Judge,
        work: Work,
        rng: random.Random,
        queues: random.Random,
    ) -> None:
        """`queues` draws what is put into which, and what is set for them."""
        self.tasks: dict[str, New] = {}
        self._queues = queues
        self._world = world
        self._judge = judge
        self._work = work
        self._rng = rng
        self._open: dict[int, tuple[TaskCommand, bool]] = {}
        self._last = 0
        world.clients.append(self._hear)

    def plan(self, count: int, window: tuple[float, float]) -> None:
        """Let so many tasks be submitted in this time, and questions be asked of them."""
        rng = self._rng
        self._plan_queues(window)
        for number in range(count):
            at_s = rng.uniform(*window)
            new = self._draw(f"task{number}", at_s)
            for _ in range(rng.choice((1, 1, 2))):
                self._at(at_s + rng.choice((0.0, rng.uniform(0, 1))), partial(self._submit, new))
            if rng.random() < 0.1:
                late_s = at_s + rng.uniform(0, 4)
                self._at(late_s, partial(self._cancel, new.spec.task_id))
        for number in range(count // 2):
            self._plan_drawn(f"drawn{number}", rng.uniform(*window))
        for number in range(2):
            names = [f"many{number}-{place}" for place in range(4)]
            at_s = rng.uniform(*window)
            news = tuple(self._draw(name, at_s) for name in names)
            self._at(at_s, partial(self._submit_many, news))
        for _ in range(count // 4):
            self._at(rng.uniform(*window), self._ask)

    def ask_all(self) -> None:
        """Ask for every task that was acknowledged, at two nodes; and retry dead letters, twice each."""
        for task_id in list(self._judge.acknowledged):
            for make in (GetTask, GetTask, RetryTask, RetryTask):
                self._command(partial(_about, make, task_id))

    # Inside.

    def _plan_queues(self, window: tuple[float, float]) -> None:
        """Let the queues be set before the first task, and one of them anew while tasks wait in it."""
        contested, other = QUEUES
        self._at(0.6, partial(self._set_queue, contested, Strategy.CONTEST))
        for at_s in (0.6, self._queues.uniform(*window)):
            self._at(at_s, partial(self._set_queue, other, self._queues.choice(OTHERS)))

    def _set_queue(self, queue: str, strategy: Strategy) -> None:
        self._command(lambda number: SetQueue(number, queue, strategy))

    def _spec(self, task_id: str) -> Spec:
        """Return a task, in some queue."""
        queue = self._queues.choice(QUEUES) if self._queues.random() < 0.5 else "default"
        return Spec(task_id=task_id, argv=("work",), queue=queue)

    def _plan_drawn(self, name: str, at_s: float) -> None:
        """Let a task be submitted whose id its node draws: the write that creates it may name an owner."""
        new = self.tasks[name] = New(self._spec(""), Terms(retries=1))
        self._at(at_s, partial(self._submit, new))

    def _come_back(self, new: New, task_id: str) -> None:
        """Submit again under the id that was drawn, as one who did not hear; or cancel."""
        rng, again = self._rng, replace(new, spec=replace(new.spec, task_id=task_id))
        now_s = self._world.loop.now_s
        if rng.random() < 0.2:
            self._at(now_s + rng.uniform(0, 1), partial(self._submit, again))
        if rng.random() < 0.1:
            self._at(now_s + rng.uniform(0, 1), partial(self._cancel, task_id))

    def _draw(self, task_id: str, at_s: float) -> New:
        rng = self._rng
        self._work.failing[task_id] = rng.choice((0, 0, 0, 0.3, 1))
        terms = Terms(retries=rng.choice((0, 1, RETRIES)), retry_delay_s=rng.choice((0.1, 1.0)))
        later = UNIX_START_S + at_s + rng.uniform(0, 4)
        not_before = later if rng.random() < 0.1 else 0.0
        new = self.tasks[task_id] = New(self._spec(task_id), terms, not_before)
        return new

    def _at(self, at_s: float, act: Callable[[], None]) -> None:
        self._world.loop.schedule(at_s, lambda _: act(), None)

    def _command(self, make: Callable[[int], TaskCommand]) -> None:
        well = [host for host in self._world.hosts if host.node is not None and not host.is_paused]
        if well:
            self._last += 1
            command = make(self._last)
            task_id = command.task_id if isinstance(command, GetTask) else ""
            self._open[self._last] = command, task_id in self._judge.acknowledged
            self._world.command(self._rng.choice(well), command)

    def _hear(self, answer: Answer) -> None:
        if answer.command_id in self._open:
            command, was_acknowledged = self._open.pop(answer.command_id)
            if not isinstance(command, ListTasks):
                self._judge.told(command, answer, was_acknowledged=was_acknowledged)
            is_set = isinstance(command, SetQueue) and answer.error is None
            if isinstance(command, SetQueue) and command.strategy is not None and not is_set:
                again_s = (
                    self._world.loop.now_s + 0.1
                )  # the mesh is not there yet, or a majority is not
                self._at(again_s, partial(self._set_queue, command.queue, command.strategy))
            is_drawn = isinstance(command, Submit) and not command.new.spec.task_id
            if isinstance(command, Submit) and is_drawn and isinstance(answer.result, dict):
                self._come_back(command.new, answer.result["id"])

    def _submit(self, new: New) -> None:
        self._command(lambda number: Submit(number, new))

    def _submit_many(self, news: tuple[New, ...]) -> None:
        self._command(lambda number: SubmitMany(number, news))

    def _cancel(self, task_id: str) -> None:
        self._judge.cancelled.add(task_id)
        self._command(lambda number: CancelTask(number, task_id, timeout_s=8.0))

    def _ask(self) -> None:
        task_id, kind = self._rng.choice(list(self.tasks)), self._rng.randrange(3)
        if kind == 0:
            self._command(ListTasks)
        elif kind == 1:
            self._command(lambda number: WaitFor(number, task_id, WAITED_S))
        else:
            self._command(lambda number: GetTask(number, task_id))


def _about(make: Callable[[int, str], TaskCommand], task_id: str, number: int) -> TaskCommand:
    return make(number, task_id)
