"""One seed: a register, its hosts, forty bad seconds, and a bound within which it must come to its end.

Clocks run at rates within rho, often just at the bounds, or (in one run of eight) far beyond; then who is sure
at once with whom is not looked at, for only the order of ballots protects.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mesh.core.ids import NodeId
from mesh.registers.leases import LeaseTimes, local
from tests.sim.registers.clockwork import Clockwork, Network, Weather
from tests.sim.registers.judge import Judge
from tests.sim.registers.process import TICK_S, Process
from tests.sim.registers.surroundings import Disk, Habits, Surroundings

BAD_S: Final = 40.0
HEALED_S_MAX: Final = 60.0
"""After faults stop, the register is final within this: messages of before may come for 10 s and cost one more
claim; then a lease lapses (5 s), somebody claims (5 s) and works 20 s by a clock that may run at 0.7."""

_RHO: Final = 0.05
TIGHT: Final = LeaseTimes(
    renew_s=0.5, owner_s=2, voter_s=2 * (1 + _RHO) / (1 - _RHO), grace_s=0, rho=_RHO
)
"""As close as the inequality allows."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a seed went."""

    fault: str
    grants: int
    ended_s: float
    """When the register was final."""


class Host:
    """A machine: its clock and disk, and the process that runs on it or does not."""

    def __init__(self, place: int, world: RegistersWorld) -> None:
        rng = world.rng
        self.own = NodeId(place + 1)
        self.disk = Disk()
        self.process: Process | None = None
        self.wakes_at = 0.0
        rho = world.times.rho if world.minds_clocks else 0.3
        self._rate = 1 + rng.choice((-rho, rho, rng.uniform(-rho, rho)))
        self._offset = rng.uniform(0, 1000)
        self._world = world
        self._epoch = 0

    def start(self) -> None:
        if self.process is not None:
            return
        world = self._world
        around = Surroundings(
            own=self.own,
            roster=world.roster,
            all=world.nodes,
            times=world.times,
            habits=world.habits,
            disk=self.disk,
            judge=world.judge,
            rng=world.rng,
            clock=lambda: self._offset + self._rate * world.clockwork.now,
            true_time=lambda moment: (moment - self._offset) / self._rate,
            send=lambda to, message: world.network.send(self.own, to, message),
            later=self.later,
        )
        self.process = Process(around)
        self._epoch += 1
        self._tick(self._epoch)

    def crash(self) -> None:
        if self.process is not None:
            self.process.end()
            self.process = None

    def pause(self, seconds: float) -> None:
        self.wakes_at = max(self.wakes_at, self._world.clockwork.now + seconds)

    def deliver(self, sender: NodeId, message: object) -> None:
        if self.process is None:
            return
        if self._sleeps_s() > 0:
            self._world.clockwork.after(self._sleeps_s(), lambda: self.deliver(sender, message))
            return
        self.process.handle(sender, message)

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Do it when so much time has passed, and the process is not stopped."""

        def do() -> None:
            if self._sleeps_s() > 0:
                self._world.clockwork.after(self._sleeps_s(), do)
            else:
                act()

        self._world.clockwork.after(delay_s, do)

    # Inside.

    def _sleeps_s(self) -> float:
        return self.wakes_at - self._world.clockwork.now

    def _tick(self, epoch: int) -> None:
        if self.process is None or epoch != self._epoch:
            return
        self.process.tick()
        self.later(TICK_S / self._rate, lambda: self._tick(epoch))


class RegistersWorld:
    """One run."""

    def __init__(self, seed: int, habits: Habits) -> None:
        self.rng = rng = random.Random(seed)
        self.habits = habits
        self.minds_clocks = seed % 8 != 7
        self.times = habits.times or rng.choice((TIGHT, local()))
        self.clockwork = Clockwork()
        self.nodes = tuple(NodeId(n + 1) for n in range(rng.choice((4, 5, 6))))
        self.roster = self.nodes[: rng.choice((3, 3, 3, 4, 5))]
        self.judge = Judge(len(self.roster) // 2 + 1, minds_clocks=self.minds_clocks)
        self.network = Network(self.clockwork, rng, self._deliver)
        self.hosts = {node: Host(place, self) for place, node in enumerate(self.nodes)}
        for host in self.hosts.values():
            self.clockwork.after(rng.uniform(0, 0.5), host.start)

    def run(self) -> Outcome:
        rng = self.rng
        self.network.weather = Weather(
            loss=rng.choice((0, 0.02, 0.1, 0.3)),
            copies=rng.choice((0, 0.05, 0.2)),
            late=rng.choice((0, 0.02, 0.1)),
            late_s_max=rng.choice((1, 3 * self.times.voter_s)),
            delays_s=rng.choice(((0.002,), (0.02, 0.1), (0.002, 0.01, 0.5), (0.002, 0.002, 0.8))),
        )
        self._plan_faults()
        self.clockwork.run(BAD_S, self._is_faulty)
        self._heal()
        self.clockwork.run(BAD_S + HEALED_S_MAX, self._is_over)
        judge = self.judge
        if not judge.fault and judge.final is None:
            return Outcome("the register did not come to its end", judge.grants, self.clockwork.now)
        return Outcome(judge.fault, judge.grants, self.clockwork.now)

    # Inside.

    def _deliver(self, sender: NodeId, to: NodeId, message: object) -> None:
        self.hosts[to].deliver(sender, message)

    def _is_faulty(self) -> bool:
        return bool(self.judge.fault)

    def _is_over(self) -> bool:
        return self._is_faulty() or self.judge.final is not None

    def _plan_faults(self) -> None:
        rng, longest_s = self.rng, 2 * self.times.voter_s
        for _ in range(rng.choice((0, 4, 12))):
            self._at(lambda: self._cut(rng.uniform(0.5, longest_s)))
        for _ in range(rng.choice((0, 3, 8))):
            self._at(lambda: self._any_host().pause(rng.uniform(0.5, longest_s)))
        for _ in range(rng.choice((0, 4, 15))):
            self._at(lambda: self._restart(self._any_host()))
        for _ in range(rng.choice((0, 0, 2))):
            self._at(self._restart_all)
        for _ in range(rng.choice((0, 8, 16))):
            self._at(self._strike)

    def _at(self, act: Callable[[], None]) -> None:
        self.clockwork.after(self.rng.uniform(1, BAD_S), act)

    def _any_host(self) -> Host:
        return self.hosts[self.rng.choice(self.nodes)]

    def _cut(self, seconds: float) -> None:
        """Cut one node off from some others, in one direction or both, for a while."""
        rng = self.rng
        node, one_way = rng.choice(self.nodes), rng.random() < 0.5
        cut = set()
        for other in self.nodes:
            if rng.random() < 0.7:
                cut |= {(node, other)} if one_way else {(node, other), (other, node)}
        self.network.cuts |= cut
        self.clockwork.after(seconds, lambda: self.network.cuts.difference_update(cut))

    def _strike(self) -> None:
        """Stop the owner, or cut it off one way or both, until the voters give it up."""
        rng = self.rng
        owners = [h for h in self.hosts.values() if h.process is not None and h.process.is_owner]
        if not owners:
            return
        host, seconds = rng.choice(owners), self.times.voter_s * rng.uniform(0.8, 1.4)
        others = [node for node in self.nodes if node != host.own]
        kind = rng.randrange(4)
        if kind == 0:
            host.pause(seconds)
        elif kind == 1:
            self._restart(host)
        else:
            cut = {(host.own, node) for node in others}
            cut |= {(node, host.own) for node in others} if kind == 2 else set()
            self.network.cuts |= cut
            self.clockwork.after(seconds, lambda: self.network.cuts.difference_update(cut))

    def _restart(self, host: Host) -> None:
        host.crash()
        self.clockwork.after(self.rng.uniform(0.05, 3), host.start)

    def _restart_all(self) -> None:
        for host in self.hosts.values():
            self._restart(host)

    def _heal(self) -> None:
        self.network.weather = Weather()
        self.network.cuts.clear()
        for host in self.hosts.values():
            host.wakes_at = 0.0
            host.start()


def run(seed: int, habits: Habits) -> Outcome:
    """Run one seed."""
    return RegistersWorld(seed, habits).run()
