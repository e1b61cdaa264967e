"""One seed: some hosts, some tasks, some bad seconds, and a bound within which every task comes to its end.

Clocks run at rates within rho, often just at the bounds. What the hosts believe of each other lags behind the
truth, and is sometimes wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from mesh.core.effects import Answer
from mesh.core.ids import NodeId
from mesh.queues.commands import SetQueue
from mesh.queues.settings import Strategy
from mesh.registers.leases import LeaseTimes, local
from mesh.tasks.body import Terms
from mesh.tasks.commands import CancelTask, GetTask, New, RetryTask, Submit, TaskCommand
from mesh.tasks.config import TasksConfig
from mesh.wire.roster_messages import Roster
from mesh.wire.task_messages import AttemptCause
from mesh.wire.work_messages import Spec
from tests.sim.registers.clockwork import Clockwork, Network, Weather
from tests.sim.tasks import noise
from tests.sim.tasks.host import Host
from tests.sim.tasks.judge import Judge
from tests.sim.tasks.session import UNIX_S
from tests.sim.tasks.variants import Habits, spoiled

BAD_S: Final = 15.0
LATE_S: Final = 8.0
"""Messages of before may come so much later."""

QUEUE: Final = "contested"
"""Of every second task; contested from the start, and set to something else once."""

LONGEST_RUN_S: Final = 3.0
RETRIES: Final = 3
_RHO: Final = 0.05
TIGHT: Final = LeaseTimes(
    renew_s=0.5, owner_s=2, voter_s=2 * (1 + _RHO) / (1 - _RHO), grace_s=0, rho=_RHO
)
"""As close as the inequality allows."""

CONFIG: Final = TasksConfig(
    offer_timeout_s=1.0,
    offer_retry_s=0.5,
    stagger_s=0.4,
    taken_pause_s=0.5,
    taken_pause_s_max=4.0,
    claim_timeout_s=2.0,
    stop_grace_s=0.5,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a seed went."""

    fault: str
    tasks: int
    runs: int
    causes: tuple[tuple[AttemptCause, int], ...]
    poisoned: int
    ended_s: float


class TasksWorld:
    """One run."""

    def __init__(self, seed: int, habits: Habits) -> None:
        self.rng = rng = random.Random(seed)
        self.habits = habits
        self.is_calm = seed % 10 == 9
        self.times = rng.choice((TIGHT, local()))
        self.config = CONFIG
        self.clockwork = Clockwork()
        self.judge = Judge(is_calm=self.is_calm)
        self.network = Network(self.clockwork, rng, self._deliver)
        self.nodes = tuple(NodeId(n + 1) for n in range(rng.randint(3, 8)))
        voters = rng.choice((1, 2, 3, 3, 3, 5, len(self.nodes)))
        self.roster = Roster(1, self.nodes[:voters])
        self.work: dict[str, float] = {}
        self.hosts = {node: Host(node, self) for node in self.nodes}
        self._specs: dict[str, New] = {}
        self._drawn = 0
        self._commands: dict[int, tuple[TaskCommand, bool]] = {}
        self._is_healed = False
        for host in self.hosts.values():
            self.clockwork.after(rng.uniform(0, 0.5), host.start)

    def run(self) -> Outcome:
        """Run it."""
        rng = self.rng
        if not self.is_calm:
            self.network.weather = Weather(
                loss=rng.choice((0, 0.02, 0.1, 0.3)),
                copies=rng.choice((0, 0.05, 0.2)),
                late=rng.choice((0, 0.02, 0.1)),
                late_s_max=rng.choice((1, LATE_S)),
                delays_s=rng.choice(((0.002,), (0.02, 0.1), (0.002, 0.01, 0.4))),
            )
            self._plan_faults()
        self._plan_clients()
        self._look_around()
        self.clockwork.run(BAD_S, self._is_faulty)
        self._heal()
        bound_s = BAD_S + self.healed_s_max
        self.clockwork.run(bound_s, self._is_over)
        judge, left = self.judge, self.judge.unfinished()
        if not judge.fault and left:
            judge.fault = f"not ended within {bound_s:.0f} s: {left}"
        ended_s = self.clockwork.now
        self._ask_all()
        self.clockwork.run(ended_s + 6, self._is_faulty)
        judge.close()
        runs = sum(len(those) for those in judge.starts.values())
        return Outcome(
            judge.fault,
            len(judge.acknowledged),
            runs,
            tuple(judge.causes.items()),
            judge.poisoned,
            ended_s,
        )

    @property
    def healed_s_max(self) -> float:
        """After faults stop, every task ends within this.

        Late messages may cost one more lapse; then each task may wait for all others at the slots there are, at
        the slowest clock, with a pause for offers between any two of its runs, and for its retries.
        """
        tasks = len(self._specs) + self._drawn
        slots = sum(host.slots for host in self.hosts.values())
        run_s = LONGEST_RUN_S + self.config.taken_pause_s_max + self.config.offer_timeout_s
        work_s = tasks * (RETRIES + 4) * run_s / slots
        lapse_s = 3 * (self.times.doubt_s + self.config.claim_timeout_s)
        return (LATE_S + lapse_s + work_s + 10) / (1 - self.times.rho)

    def proved(self, node: NodeId, boot: int) -> None:
        """Spread the proof that a session runs nothing any more: sooner or later, or not at all."""
        if boot:
            self.judge.over.add((node, boot))
        for host in self.hosts.values():
            for _ in range(2):
                if boot and host.own != node and self.rng.random() < 0.7:
                    self._hear(host, node, boot)

    def answered(self, _node: NodeId, answer: Answer) -> None:
        """Take what a client was told."""
        command, was_acknowledged = self._commands.pop(answer.command_id)
        is_set = isinstance(command, SetQueue) and answer.error is None
        if isinstance(command, SetQueue) and command.strategy is not None and not is_set:
            self.clockwork.after(0.5, partial(self._set_queue, command.strategy))
        self.judge.told(command, answer, was_acknowledged=was_acknowledged)
        is_drawn = isinstance(command, Submit) and not command.new.spec.task_id
        if isinstance(command, Submit) and is_drawn and answer.error is None:
            assert isinstance(answer.result, dict)
            self._come_back(command.new, answer.result["id"])

    # Inside.

    def _deliver(self, sender: NodeId, to: NodeId, message: object) -> None:
        if to in self.hosts:  # else whoever a strange call named is told
            self.hosts[to].deliver(sender, message)

    def _is_faulty(self) -> bool:
        return bool(self.judge.fault)

    def _is_over(self) -> bool:
        return self._is_faulty() or not self.judge.unfinished()

    def _hear(self, host: Host, node: NodeId, boot: int) -> None:
        def hear() -> None:
            host.do(lambda session, now: session.tasks.end(now, node, boot))

        self.clockwork.after(self.rng.expovariate(2), hear)

    # Clients.

    def _plan_clients(self) -> None:
        rng = self.rng
        self.clockwork.after(0.55, partial(self._set_queue, Strategy.CONTEST))
        self._at(partial(self._set_queue, rng.choice(list(Strategy))))
        for number in range(rng.choice((4, 8, 14))):
            task_id = f"task{number}"
            self.work[task_id] = rng.choice((0, 0, 0.3, 1))
            terms = Terms(retries=rng.choice((0, 1, RETRIES)), retry_delay_s=rng.choice((0.1, 1.0)))
            at = rng.uniform(0.6, BAD_S - 1)
            not_before = rng.choice((0.0, 0.0, UNIX_S + at + rng.uniform(0, 4)))
            self._specs[task_id] = New(self._spec(task_id), terms, not_before)
            for _ in range(rng.choice((1, 1, 2))):
                self.clockwork.after(at, partial(self._submit, task_id))
            if rng.random() < 0.1:
                late = at + rng.uniform(0, 4)
                self.clockwork.after(late, partial(self._cancel, task_id))
        self._drawn = rng.choice((4, 8, 16))
        for _ in range(self._drawn):
            self.clockwork.after(rng.uniform(0.6, BAD_S - 1), self._submit_drawn)
        for _ in range(6):
            self._at(self._ask_some)
        for _ in range(rng.choice((0, 20, 60))):
            self._at(self._make_noise)

    def _command(self, make: Callable[[int], TaskCommand]) -> None:
        """Give a command to a node that takes one."""
        well = [host for host in self.hosts.values() if host.is_well]
        if not well:
            return
        number = len(self._commands) + self.rng.randrange(1, 1 << 60)
        command = make(number)
        task_id = command.task_id if isinstance(command, GetTask) else ""
        self._commands[number] = command, task_id in self.judge.acknowledged
        host = self.rng.choice(well)
        host.do(lambda session, now: session.tasks.handle_command(now, command))

    def _set_queue(self, strategy: Strategy) -> None:
        self._command(lambda number: SetQueue(number, QUEUE, strategy))

    def _spec(self, task_id: str) -> Spec:
        queue = QUEUE if self.rng.random() < 0.5 else "default"
        return Spec(task_id=task_id, argv=("work",), queue=queue)

    def _submit(self, task_id: str) -> None:
        self._command(lambda number: Submit(number, self._specs[task_id]))

    def _submit_drawn(self) -> None:
        """Submit a task whose id the node draws: its creation may name an owner."""
        new = New(self._spec(""), Terms(retries=1, retry_delay_s=0.1))
        self._command(lambda number: Submit(number, new))

    def _come_back(self, new: New, task_id: str) -> None:
        """Submit a task again under the id that was drawn, as one who did not hear; or cancel it."""
        again = replace(new, spec=replace(new.spec, task_id=task_id))
        if self.rng.random() < 0.2:
            self.clockwork.after(
                self.rng.uniform(0, 1), lambda: self._command(lambda n: Submit(n, again))
            )
        if self.rng.random() < 0.1:
            self.clockwork.after(self.rng.uniform(0, 1), lambda: self._cancel(task_id))

    def _cancel(self, task_id: str) -> None:
        self.judge.cancelled.add(task_id)
        self._command(lambda number: CancelTask(number, task_id, timeout_s=8))

    def _ask_some(self) -> None:
        task_id = self.rng.choice(sorted(self._specs))
        self._command(lambda number: GetTask(number, task_id))

    def _make_noise(self) -> None:
        sender, to = self.rng.choice(self.nodes), self.rng.choice(self.nodes)
        self.network.send(sender, to, noise.message(self.rng, sorted(self._specs)))

    def _ask_all(self) -> None:
        """See that everybody is told the same end; and retry dead letters, twice each."""
        for task_id in list(self.judge.acknowledged):
            self._command(partial(_getting, task_id))
            for _ in range(2):
                self._command(partial(_retrying, task_id))

    # What the hosts believe.

    def _look_around(self) -> None:
        """Let each host hear of each other, late, and now and then what is not so."""
        rng = self.rng
        for host in self.hosts.values():
            for other in self.hosts.values():
                if host is not other and host.session is not None:
                    self._see(host, other)
        self.clockwork.after(rng.uniform(0.3, 0.8), self._look_around)

    def _see(self, host: Host, other: Host) -> None:
        rng, session = self.rng, other.session
        is_cut = (other.own, host.own) in self.network.cuts
        seems_well = other.is_well and not is_cut and session is not None
        if not self._is_healed and rng.random() < 0.03 and not self.is_calm:
            seems_well = not seems_well
        member = session.member() if seems_well and session is not None else None
        lag_s = rng.uniform(0, 0.3) if self._is_healed or self.is_calm else rng.uniform(0, 2)

        def see() -> None:
            if host.session is not None and host.is_well:
                host.session.see(other.own, member)

        self.clockwork.after(lag_s, see)

    # Faults.

    def _plan_faults(self) -> None:
        rng, longest_s = self.rng, 2 * self.times.voter_s

        def any_s() -> float:
            return rng.uniform(0.3, longest_s)

        for _ in range(rng.choice((0, 3, 8))):
            self._at(lambda: self._cut(self._any_host(), any_s()))
        for _ in range(rng.choice((0, 3, 8))):
            self._at(lambda: self._any_host().pause_node(any_s()))
        for _ in range(rng.choice((0, 2, 5))):
            self._at(lambda: self._any_host().pause_host(any_s()))
        for _ in range(rng.choice((0, 3, 8))):
            self._at(lambda: self._restart(self._any_host()))
        for _ in range(rng.choice((0, 0, 1))):
            self._at(self._restart_all)
        for _ in range(rng.choice((0, 1, 3))):
            self._at(lambda: self._any_host().drain(rng.uniform(0, 2)))
        for _ in range(rng.choice((0, 6, 12))):
            self._at(self._strike)

    def _at(self, act: Callable[[], None]) -> None:
        self.clockwork.after(self.rng.uniform(1, BAD_S), act)

    def _any_host(self) -> Host:
        return self.hosts[self.rng.choice(self.nodes)]

    def _cut(self, host: Host, seconds: float) -> None:
        """Cut a host off from some others, in one direction or both, for a while."""
        rng = self.rng
        kind, share = rng.randrange(3), rng.choice((0.5, 1))
        cut: set[tuple[NodeId, NodeId]] = set()
        for other in self.nodes:
            if other != host.own and rng.random() < share:
                cut |= {(host.own, other)} if kind else set()
                cut |= {(other, host.own)} if kind != 1 else set()
        self.network.cuts |= cut
        self.clockwork.after(seconds, lambda: self.network.cuts.difference_update(cut))

    def _strike(self) -> None:
        """Hit a host that runs something, for about as long as the voters wait."""
        busy = [h for h in self.hosts.values() if h.session is not None and h.session.tasks.used]
        if not busy:
            return
        host, seconds = self.rng.choice(busy), self.times.voter_s * self.rng.uniform(0.7, 1.5)
        kind = self.rng.randrange(4)
        if kind == 0:
            host.pause_node(seconds)
        elif kind == 1:
            host.pause_host(seconds)
        elif kind == 2:
            self._cut(host, seconds)
        else:
            self._restart(host)

    def _restart(self, host: Host) -> None:
        if self.rng.random() < 0.6:
            host.kill_node()
        else:
            host.crash()
        self.clockwork.after(self.rng.uniform(0.05, 3), host.start)

    def _restart_all(self) -> None:
        for host in self.hosts.values():
            self._restart(host)

    def _heal(self) -> None:
        self._is_healed = True
        self.network.weather = Weather()
        self.network.cuts.clear()
        for host in self.hosts.values():
            host.heal()


def _getting(task_id: str, number: int) -> TaskCommand:
    return GetTask(number, task_id)


def _retrying(task_id: str, number: int) -> TaskCommand:
    return RetryTask(number, task_id)


def run(seed: int, habits: Habits) -> Outcome:
    """Run one seed."""
    with spoiled(habits):
        return TasksWorld(seed, habits).run()
