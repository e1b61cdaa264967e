"""One seed: some whole nodes, a network, clients and their tasks, some bad seconds, and a bound for every task's end.

    clients ─► nodes: membership, registers and tasks, as in production ─► processes, under guardians
       │         ▲                              │                              │
       │      nemesis: crashes, stops, cuts,    ▼                              ▼
       └───────── loss, leaves, joins ───── disks ─────────► judge ◄─────── witness

What no protocol can stand is left out: a voter whose disk is set back has forgotten what it promised, and
more than one lost disk of three may have been the majority's. Clocks run at rates within rho.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Final, TextIO

from mesh.core.rng import stream
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.registers.leases import LeaseTimes
from mesh.registers.leases import local as local_leases
from mesh.sim.checkers import settle_bound_s
from mesh.sim.faults import Fault, FaultKind, plan
from mesh.sim.fleet import SEED_HOSTS, Fleet, FleetOptions
from mesh.sim.host import Host, NodeFactory
from mesh.sim.nemesis import Nemesis
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World
from mesh.tasks.config import TasksConfig
from mesh.wire.records import DEDICATED, EMERGENCY, GENERAL, Availability
from mesh.wire.task_messages import AttemptCause
from tests.sim.guarantees.clients import LONGEST_RUN_S, QUEUES, RETRIES, Clients, Work
from tests.sim.guarantees.witness import Witness
from tests.sim.tasks.judge import Judge

BAD_S: Final = 20.0
LAST_WORDS_S: Final = 6.0
CHECK_S: Final = 0.25
STRIKES: Final = (
    FaultKind.PAUSE,
    FaultKind.STANDSTILL,
    FaultKind.ISOLATE,
    FaultKind.ONE_WAY,
    FaultKind.CRASH,
    FaultKind.POWER,
)
KINDS: Final = (
    *STRIKES,
    FaultKind.MOVE,
    FaultKind.OUTAGE,
    FaultKind.RESTART,
    FaultKind.UPROOT,
    FaultKind.DEAF,
    FaultKind.HALVES,
    FaultKind.LOSS,
    FaultKind.LINK,
    FaultKind.CLOG,
    FaultKind.CLOCK,
    FaultKind.EARLY,
    FaultKind.LEAVE,
    FaultKind.JOIN,
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
    trace_hash: str
    log: tuple[tuple[float, str, tuple[int, ...]], ...]


class GuaranteesWorld:
    """One run."""

    def __init__(
        self,
        seed: int,
        make_node: NodeFactory = Node,
        *,
        patience_s: float = inf,
        sink: TextIO | None = None,
    ) -> None:
        """Draw a run. `patience_s`: after healing no longer than so is waited for what should end."""
        self._rng = rng = stream(seed, "guarantees")
        self._seed = seed
        self._patience_s = patience_s
        self.judge = Judge(is_calm=seed % 10 == 9)
        self._is_calm = seed % 10 == 9
        conditions = Conditions(
            delay_s=rng.choice((0.0002, 0.002, 0.005)),
            jitter_s=rng.choice((0.0001, 0.002)),
            loss_ratio=0.0 if self._is_calm else rng.choice((0.0, 0.0, 0.02, 0.1)),
            copy_ratio=rng.choice((0.0, 0.0, 0.05, 0.3)),
            copy_delay_s=rng.choice((0.01, 0.2, 4.0)),
        )
        work = Work(stream(seed, "work"))
        self.world = World(seed, make_node, Network(seed, conditions), workload=work, sink=sink)
        self._swim = profile("local")
        options = FleetOptions(clock_rate_error=rng.choice((0.0, 1e-4, 1e-2)), profile="local")
        self._fleet = Fleet(self.world, self._swim, options)
        self._nemesis = Nemesis(self.world, self._fleet, stream(seed, "nemesis"))
        self._witness = Witness(self.world, self.judge)
        draws = (stream(seed, "clients"), stream(seed, "queues"))
        self._clients = Clients(self.world, self.judge, work, *draws)
        self._classes = stream(seed, "classes")
        self._times: LeaseTimes = local_leases()
        self._nodes = rng.randint(5, 8)

    @property
    def healed_s_max(self) -> float:
        """After faults stop, every task ends within this.

        First all views are equal; then a lapse or two that began before; then each task may wait for all others at
        the slots that there are, with the longest pause for offers between any two of its runs.
        """
        hosts, config, times = self.world.hosts, TasksConfig(), self._times
        settle_s = settle_bound_s(self._swim, len(hosts), SEED_HOSTS)
        lapse_s = 3 * (times.doubt_s + config.claim_timeout_s)
        metas = [host.spec.meta for host in hosts]
        runs, slots = RETRIES + 4, sum(one.slots for one in metas if one.node_class == GENERAL)
        work_s = len(self._clients.tasks) * runs * LONGEST_RUN_S / slots
        pauses_s = runs * (config.taken_pause_s_max + config.offer_timeout_s)
        return (settle_s + lapse_s + work_s + pauses_s) / (1 - times.rho)

    def run(self) -> Outcome:
        """Boot, be unfair, heal, and demand the end of everything."""
        judge, world, rng = self.judge, self.world, self._rng
        for host in [self._fleet.add() for _ in range(self._nodes)]:
            self._classify(host)
            at_s = 0.0 if host.index == 0 else rng.uniform(0.0, 0.5)
            world.loop.schedule(at_s, self._fleet.boot, host)
        self._clients.plan(rng.choice((12, 20, 30, 50)), (1.0, BAD_S))
        if not self._is_calm:
            self._plan_faults()
        self._pass(BAD_S, lambda: False)
        self._nemesis.heal()
        bound_s = min(self.healed_s_max, self._patience_s)
        self._pass(bound_s, self._is_over)
        ended_s, left = world.loop.now_s, judge.unfinished()
        if not judge.fault and left:
            judge.fault = f"not ended within {bound_s:.0f} s of healing: {left}"
        self._clients.ask_all()
        self._pass(LAST_WORDS_S, lambda: False)
        self._witness.close()
        judge.close()
        if not judge.fault:
            judge.fault = "; ".join(s.reason for _, _, s in world.stops if s.exit_code)
        return Outcome(
            judge.fault,
            len(judge.acknowledged),
            sum(map(len, judge.starts.values())),
            tuple(judge.causes.items()),
            judge.poisoned,
            ended_s,
            world.trace.hash_hex,
            tuple(self._nemesis.log),
        )

    def _pass(self, duration_s: float, is_over: Callable[[], bool]) -> None:
        """Let time pass, looking at every node now and then, until it is over or something is wrong."""
        world = self.world
        end_s = world.loop.now_s + duration_s
        try:
            while world.loop.now_s < end_s and not self.judge.fault and not is_over():
                world.run_for(CHECK_S)
                for host in world.hosts:
                    if host.node is not None and not host.is_paused:
                        world.acting = host
                        host.node.check_invariants()
        except Exception as error:
            name = world.acting.spec.name if world.acting is not None else "nobody"
            error.add_note(f"seed {self._seed}, at {world.loop.now_s:.4f} s, {name}")
            raise

    def _is_over(self) -> bool:
        """Say whether every task has ended; start again who left late."""
        for host in self.world.hosts:
            if host.node is None:
                self._fleet.boot(host)
        return not self.judge.unfinished()

    # Faults.

    def _plan_faults(self) -> None:
        rng, everybody = self._rng, tuple(range(self._nodes))
        window, longest_s = (1.0, BAD_S), 2 * self._times.voter_s
        for _ in range(rng.choice((0, 1, 2))):
            for fault in plan(rng, self._nodes, window, longest_s / 3, kinds=KINDS):
                lasts_s = fault.duration_s
                if lasts_s == inf:  # for good: without a majority nothing would end
                    lasts_s = rng.uniform(0.3, longest_s)
                within_s = (
                    rng.choice((0.0, 0.5, 2.0)) if fault.kind is FaultKind.LEAVE else fault.amount
                )
                self._nemesis.schedule((replace(fault, duration_s=lasts_s, amount=within_s),))
        extra: list[Fault] = []
        if rng.random() < 0.2:
            at_s, length_s = rng.uniform(*window), rng.uniform(0.3, longest_s)
            extra.append(Fault(at_s, FaultKind.POWER, everybody, length_s))
        if rng.random() < 0.2:
            at_s = rng.uniform(BAD_S / 2, BAD_S)
            extra.append(Fault(at_s, FaultKind.DISK, (rng.choice(everybody[1:]),), 1.0))
        self._nemesis.schedule(tuple(extra))
        self._nemesis.schedule(self._unfit(window))
        for _ in range(rng.choice((0, 4, 10))):
            self.world.loop.schedule(rng.uniform(*window), self._strike, None)

    def _classify(self, host: Host) -> None:
        """Let some beyond the first three be dedicated to a queue, or stand by until the load is high."""
        node_class = self._classes.choice((GENERAL, GENERAL, GENERAL, DEDICATED, EMERGENCY))
        if host.index < SEED_HOSTS or node_class == GENERAL:
            return
        is_dedicated = node_class == DEDICATED
        meta = replace(
            host.spec.meta,
            node_class=node_class,
            queues=(self._classes.choice(QUEUES),) if is_dedicated else (),
            availability=Availability.OPEN if is_dedicated else Availability.STANDBY,
        )
        host.spec = replace(host.spec, meta=meta)

    def _unfit(self, window: tuple[float, float]) -> tuple[Fault, ...]:
        """Draw health checks that fail for a while."""
        rng, longest_s = self._classes, 2 * self._times.voter_s
        return tuple(
            Fault(
                rng.uniform(*window),
                FaultKind.UNFIT,
                (rng.randrange(self._nodes),),
                rng.uniform(0.3, longest_s),
            )
            for _ in range(rng.choice((0, 1, 4)))
        )

    def _strike(self, _: object) -> None:
        """Hit a host that runs something, for about as long as the voters wait."""
        hosts = sorted({run.host.index for run in self._witness.busy})
        if hosts:
            rng, now_s = self._rng, self.world.loop.now_s
            length_s = self._times.voter_s * rng.uniform(0.5, 1.5)
            kind, whom = rng.choice(STRIKES), (rng.choice(hosts),)
            self._nemesis.begin(Fault(now_s, kind, whom, length_s))
