"""One seed: hosts with a desk each, some registers, thirty bad seconds, and a bound for all of them to end.

The hosts' clocks, their trouble and the network are those of `world.py`; the registers are several at once, in
which the same sessions vote, ask and own, over one disk each.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from mesh.core.ids import NodeId
from mesh.registers.leases import local
from mesh.registers.proposal import majority
from mesh.registers.roster import FIRST, FULL
from mesh.wire.roster_messages import Roster
from tests.sim.registers.clockwork import Clockwork, Network
from tests.sim.registers.desk_disk import DeskDisk
from tests.sim.registers.desk_judge import DeskJudge
from tests.sim.registers.desk_process import DeskHabits, DeskProcess, DeskSurroundings
from tests.sim.registers.hosts import Host
from tests.sim.registers.trouble import Trouble
from tests.sim.registers.world import RHO_BEYOND, TIGHT

BAD_S: Final = 30.0
HEALED_S_MAX: Final = 120.0
"""As in `world.py`: what was late comes, a lease lapses, somebody claims, and works; and some release what they
have, so that it begins anew."""

KEYS: Final = (b"task/a", b"task/b", b"task/c", b"task/d")


@dataclass(frozen=True, slots=True)
class DeskOutcome:
    """How a seed went."""

    fault: str
    grants: int
    ended_s: float
    """When every register was final."""


class DeskWorld:
    """One run."""

    def __init__(self, seed: int, habits: DeskHabits, *, is_calm: bool) -> None:
        self._rng = rng = random.Random(seed)
        self._habits = habits
        minds_clocks = seed % 8 != 7
        self._times = rng.choice((TIGHT, local()))
        self._clockwork = Clockwork()
        nodes = tuple(NodeId(n + 1) for n in range(rng.choice((3, 4, 5))))
        voters = nodes[: rng.choice((1, 2, 3, 3, 3, 4, 5))]
        self._roster = Roster(FIRST, voters)
        keys = KEYS[: rng.choice((2, 3, 4))]
        enough = majority(min(FULL, len(voters)))
        self._judge = DeskJudge(
            dict.fromkeys(keys, enough), minds_clocks=minds_clocks, minds_losses=is_calm
        )
        self._is_calm = is_calm
        self._network = Network(self._clockwork, rng, self._deliver)
        self._disks = {node: DeskDisk(node, (FIRST * (node in voters), 0)) for node in nodes}
        rho = self._times.rho if minds_clocks else RHO_BEYOND
        self._hosts = {node: Host(node, self._clockwork, rng, rho, self._begin) for node in nodes}
        for host in self._hosts.values():
            self._clockwork.after(rng.uniform(0, 0.5), host.start)

    def run(self) -> DeskOutcome:
        judge, clockwork = self._judge, self._clockwork
        trouble = Trouble(clockwork, self._network, self._hosts, self._rng, self._times.voter_s)
        if not self._is_calm:
            trouble.begin(BAD_S)
            clockwork.run(BAD_S, lambda: bool(judge.fault))
            trouble.end()
        clockwork.run(BAD_S + HEALED_S_MAX, lambda: judge.is_over)
        fault = judge.fault
        if not fault and not judge.is_over:
            fault = "a register did not come to its end"
        return DeskOutcome(fault, sum(one.grants for one in judge.of.values()), clockwork.now)

    # Inside.

    def _begin(self, host: Host) -> DeskProcess:
        around = DeskSurroundings(
            host=host,
            disk=self._disks[host.own],
            judge=self._judge,
            rng=self._rng,
            roster=self._roster,
            times=self._times,
            habits=self._habits,
            send=lambda to, message: self._network.send(host.own, to, message),
            tell_all=lambda message: self._tell_all(host.own, message),
        )
        return DeskProcess(around)

    def _deliver(self, sender: NodeId, to: NodeId, message: object) -> None:
        self._hosts[to].deliver(sender, message)

    def _tell_all(self, sender: NodeId, message: object) -> None:
        for node in self._hosts:
            if node != sender:
                delay_s = self._rng.uniform(0, 1)
                self._clockwork.after(
                    delay_s,
                    lambda to=node: self._deliver(sender, to, message),  # type: ignore[misc]  # the loop's node, now
                )


def run(seed: int, habits: DeskHabits, *, is_calm: bool = False) -> DeskOutcome:
    """Run one seed; `is_calm`: nothing goes wrong but that a disk is slow now and then."""
    return DeskWorld(seed, habits, is_calm=is_calm).run()
