"""One seed: a register, its hosts, forty bad seconds, and a bound within which it must come to its end.

Clocks run at rates within rho, often just at the bounds, or (in one run of eight) far beyond; then who is sure
at once with whom is not looked at, for only the order of ballots protects.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from mesh.core.ids import NodeId
from mesh.registers.leases import LeaseTimes, local
from tests.sim.registers.clockwork import Clockwork, Network
from tests.sim.registers.hosts import Host
from tests.sim.registers.judge import Judge
from tests.sim.registers.process import Process
from tests.sim.registers.surroundings import Disk, Habits, Surroundings
from tests.sim.registers.trouble import Trouble

BAD_S: Final = 40.0
HEALED_S_MAX: Final = 60.0
"""After faults stop, the register is final within this: messages of before may come for 10 s and cost one more
claim; then a lease lapses (5 s), somebody claims (5 s) and works 20 s by a clock that may run at 0.7."""

RHO_BEYOND: Final = 0.3
"""How far clocks are off in a run that goes beyond what leases allow."""

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


class RegistersWorld:
    """One run."""

    def __init__(self, seed: int, habits: Habits) -> None:
        self._rng = rng = random.Random(seed)
        self._habits = habits
        minds_clocks = seed % 8 != 7
        self._times = habits.times or rng.choice((TIGHT, local()))
        self._clockwork = Clockwork()
        self._nodes = tuple(NodeId(n + 1) for n in range(rng.choice((4, 5, 6))))
        self._roster = self._nodes[: rng.choice((3, 3, 3, 4, 5))]
        self._judge = Judge(len(self._roster) // 2 + 1, minds_clocks=minds_clocks)
        self._network = Network(self._clockwork, rng, self._deliver)
        self._disks = {node: Disk() for node in self._nodes}
        rho = self._times.rho if minds_clocks else RHO_BEYOND
        self._hosts = {
            node: Host(node, self._clockwork, rng, rho, self._process) for node in self._nodes
        }
        for host in self._hosts.values():
            self._clockwork.after(rng.uniform(0, 0.5), host.start)

    def run(self) -> Outcome:
        judge = self._judge
        trouble = Trouble(
            self._clockwork, self._network, self._hosts, self._rng, self._times.voter_s
        )
        trouble.begin(BAD_S)
        self._clockwork.run(BAD_S, lambda: bool(judge.fault))
        trouble.end()
        self._clockwork.run(
            BAD_S + HEALED_S_MAX, lambda: bool(judge.fault) or judge.final is not None
        )
        fault = judge.fault
        if not fault and judge.final is None:
            fault = "the register did not come to its end"
        return Outcome(fault, judge.grants, self._clockwork.now)

    # Inside.

    def _process(self, host: Host) -> Process:
        around = Surroundings(
            own=host.own,
            roster=self._roster,
            all=self._nodes,
            times=self._times,
            habits=self._habits,
            disk=self._disks[host.own],
            judge=self._judge,
            rng=self._rng,
            clock=host.clock,
            true_time=host.true_time,
            send=lambda to, message: self._network.send(host.own, to, message),
            later=host.later,
        )
        return Process(around)

    def _deliver(self, sender: NodeId, to: NodeId, message: object) -> None:
        self._hosts[to].deliver(sender, message)


def run(seed: int, habits: Habits) -> Outcome:
    """Run one seed."""
    return RegistersWorld(seed, habits).run()
