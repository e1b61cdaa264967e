"""One seed: a founder that votes alone, hosts that join it, and the step to three voters in thirty bad seconds.

All begins as it does for a user: nobody but the founder knows a roster, all others ask. Clients work on their
registers all the while. Trouble, clocks and network are those of the other worlds.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from mesh.core.ids import NodeId
from mesh.registers.admission import Member
from mesh.registers.leases import local
from mesh.registers.roster import FULL, founding
from tests.sim.registers.clockwork import Clockwork, Network
from tests.sim.registers.desk_disk import DeskDisk
from tests.sim.registers.desk_process import DeskHabits
from tests.sim.registers.hosts import Host
from tests.sim.registers.succession_judge import SuccessionJudge
from tests.sim.registers.succession_process import (
    SuccessionHabits,
    SuccessionProcess,
    SuccessionSurroundings,
)
from tests.sim.registers.trouble import Trouble
from tests.sim.registers.world import RHO_BEYOND, TIGHT

BAD_S: Final = 30.0
HEALED_S_MAX: Final = 200.0
"""The roster has changed within a few seconds of this; owners that release what they have, one after the other, are
what takes so long in one seed of some hundred."""

KEYS: Final = (b"task/a", b"task/b", b"task/c")
SECOND: Final = 2


@dataclass(frozen=True, slots=True)
class SuccessionOutcome:
    """How a seed went."""

    fault: str
    grants: int
    changed_s: float
    """When the first of three voted."""

    ended_s: float
    """When every register was final and three voted."""


class SuccessionWorld:
    """One run."""

    def __init__(self, seed: int, habits: SuccessionHabits) -> None:
        self._rng = rng = random.Random(seed)
        self._machines = habits
        minds_clocks = seed % 8 != 7
        self._times = rng.choice((TIGHT, local()))
        self._clockwork = Clockwork()
        nodes = tuple(NodeId(n + 1) for n in range(rng.choice((3, 4, 5))))
        self._founder = rng.choice(nodes)
        self._diskless = {nodes[-1]} if len(nodes) > FULL and nodes[-1] != self._founder else set()
        self._flaky = rng.choice((0, 0, 0.02))
        keys = KEYS[: rng.choice((1, 2, 3))]
        self._judge = SuccessionJudge(
            keys, minds_clocks=minds_clocks, minds_words=habits.minds_words
        )
        self._network = Network(self._clockwork, rng, self._deliver)
        self._disks = {node: DeskDisk(node, (0, 0)) for node in nodes}
        self._changed_s = 0.0
        rho = self._times.rho if minds_clocks else RHO_BEYOND
        self._hosts = {node: Host(node, self._clockwork, rng, rho, self._begin) for node in nodes}
        for host in self._hosts.values():
            self._clockwork.after(rng.uniform(0, 3), host.start)

    def run(self) -> SuccessionOutcome:
        judge, clockwork = self._judge, self._clockwork
        trouble = Trouble(clockwork, self._network, self._hosts, self._rng, self._times.voter_s)
        trouble.begin(BAD_S)
        clockwork.run(BAD_S, self._is_faulty)
        trouble.end()
        clockwork.run(BAD_S + HEALED_S_MAX, lambda: self._is_faulty() or self._is_over())
        fault = judge.fault or ("" if self._is_over() else self._unfinished())
        grants = sum(one.grants for one in judge.of.values())
        return SuccessionOutcome(fault, grants, self._changed_s, clockwork.now)

    # Inside.

    def _voting(self) -> int:
        """Return how many vote in the second epoch."""
        return sum(disk.epoch[0] == SECOND for disk in self._disks.values())

    def _is_faulty(self) -> bool:
        if not self._changed_s and self._voting():
            self._changed_s = self._clockwork.now
        return bool(self._judge.fault)

    def _is_over(self) -> bool:
        return self._judge.is_over and self._voting() == FULL

    def _unfinished(self) -> str:
        epochs = {disk.own: disk.epoch for disk in self._disks.values()}
        final = [judge.final is not None for judge in self._judge.of.values()]
        return f"it did not come to its end: epochs {epochs}, final {final}"

    def _begin(self, host: Host) -> SuccessionProcess:
        around = SuccessionSurroundings(
            host=host,
            disk=self._disks[host.own],
            judge=self._judge,
            judge_of_epochs=self._judge,
            rng=self._rng,
            roster=founding(self._founder),
            times=self._times,
            habits=DeskHabits(),
            send=lambda to, message: self._network.send(host.own, to, message),
            tell_all=lambda message: None,
            is_founder=host.own == self._founder,
            view=lambda: self._view(host.own),
            machines=self._machines,
        )
        return SuccessionProcess(around)

    def _view(self, own: NodeId) -> Iterable[Member]:
        for node, host in self._hosts.items():
            is_cut = {(own, node), (node, own)} & self._network.cuts
            if host.process is None or is_cut or self._rng.random() < self._flaky:
                continue
            yield Member(node, self._disks[node].boot, node not in self._diskless)

    def _deliver(self, sender: NodeId, to: NodeId, message: object) -> None:
        self._hosts[to].deliver(sender, message)


def run(seed: int, habits: SuccessionHabits) -> SuccessionOutcome:
    """Run one seed."""
    return SuccessionWorld(seed, habits).run()
