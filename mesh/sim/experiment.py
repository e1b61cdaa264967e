"""One fault in a calm mesh, measured: how soon it is noticed, by whom, at what cost.

The steps: start all nodes on one seed, wait until all see all, measure an idle while, do the one
thing, measure how soon each survivor knows, heal, wait until all views are right, and hold.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TextIO

from mesh.core.events import EventKind
from mesh.core.rng import stream
from mesh.errors import ConfigError
from mesh.node.commands import Leave
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.checkers import settle_bound_s, verdict_window_s
from mesh.sim.faults import Fault, FaultKind
from mesh.sim.fleet import SEED_HOSTS, Fleet, FleetOptions
from mesh.sim.host import Host, NodeFactory
from mesh.sim.inspection import Inspection, Progress
from mesh.sim.nemesis import Nemesis
from mesh.sim.network import Conditions, Network
from mesh.sim.report import Detection, Result
from mesh.sim.world import World

_IDLE_PERIODS: Final = 20.0
_LOSS_BURST: Final = 0.3
_LOSS_PERIODS: Final = 60.0
_RESTART_AFTER_S: Final = 1.0
_START_PERIODS: Final = 1.0  # all nodes start within so many protocol periods


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What to measure. `idle_s` None: twenty protocol periods."""

    nodes: int = 100
    fault: str = "crash"
    profile: str = "lan"
    idle_s: float | None = None
    loss_ratio: float = 0.0
    delay_ms: float = 1.0
    is_converged: bool = False
    """Whether the members have known each other for long, or join through one seed."""

    def check(self) -> None:
        """Raise ConfigError if a setting is out of range."""
        if self.fault not in FAULTS:
            raise ConfigError(f"a fault is one of {', '.join(FAULTS)}, found {self.fault!r}")
        if self.nodes < 2:
            raise ConfigError(f"at least 2 nodes are expected, found {self.nodes}")
        if not 0.0 <= self.loss_ratio < 1.0:
            raise ConfigError(f"a loss from 0 to below 1 is expected, found {self.loss_ratio}")
        if not 0.0 <= self.delay_ms <= 60_000:
            raise ConfigError(f"a delay from 0 to 60000 ms is expected, found {self.delay_ms}")

    def to_json(self) -> dict[str, Any]:
        """Return the settings for people and programs."""
        start = {"start": "converged"} if self.is_converged else {}
        return {
            "scenario": self.fault,
            "nodes": self.nodes,
            "fault": self.fault,
            "profile": self.profile,
            "loss": self.loss_ratio,
            "delay_ms": self.delay_ms,
            **start,
        }

    def replay(self, seed: int) -> str:
        """Return the command that runs the same again."""
        idle = f" --duration {self.idle_s:g}" if self.idle_s is not None else ""
        idle += " --converged" if self.is_converged else ""
        return (
            f"mesh sim --nodes {self.nodes} --fault {self.fault} --seed {seed} "
            f"--profile {self.profile} --loss {self.loss_ratio:g} --delay {self.delay_ms:g}{idle}"
        )


def run_experiment(
    seed: int,
    settings: Settings,
    *,
    check: bool = False,
    make_node: NodeFactory = Node,
    sink: TextIO | None = None,
    progress: Progress | None = None,
) -> Result:
    """Run one experiment to its end or its first violation.

    Raises:
        ConfigError: a setting is out of range, or there is no such profile.
    """
    settings.check()
    experiment = Experiment(seed, settings, make_node, check=check, sink=sink, progress=progress)
    began_s = time.perf_counter()
    experiment.run()
    return experiment.result(time.perf_counter() - began_s)


class Experiment:
    """The steps over the parts that they share."""

    def __init__(
        self,
        seed: int,
        settings: Settings,
        make_node: NodeFactory,
        *,
        check: bool,
        sink: TextIO | None,
        progress: Progress | None,
    ) -> None:
        self._seed = seed
        self._is_checked = check
        self._settings = settings
        self._swim = profile(settings.profile)
        delay_s = settings.delay_ms / 1000
        conditions = Conditions(
            delay_s=delay_s, jitter_s=delay_s / 10, loss_ratio=settings.loss_ratio
        )
        self.world = World(seed, make_node, Network(seed, conditions), check=check, sink=sink)
        options = FleetOptions(clock_rate_error=1e-4, profile=settings.profile)
        self._fleet = Fleet(self.world, self._swim, options)
        self._rng = stream(seed, "experiment")
        self._nemesis = Nemesis(self.world, self._fleet, stream(seed, "nemesis"))
        self._inspection = Inspection(self.world, self._swim, check=check, progress=progress)
        # To compare all views costs nodes squared: the larger the mesh, the more seldom it is done.
        self._step_s = self._swim.probe_interval_s * max(0.5, settings.nodes / 400)
        self._converged_s: float | None = None
        self._healed_s: float | None = None
        self._detection = Detection(seconds=())
        self._packets_s: float | None = None
        self._bytes_s: float | None = None

    def run(self) -> None:
        """Start, converge, idle, the fault, heal, hold."""
        self.start()
        self.finish()

    def finish(self) -> None:
        """Converge, idle, the fault, heal, hold."""
        self.converge()
        if not self._inspection.violations:
            self._idle()
        if not self._inspection.violations:
            _ACTS[self._settings.fault](self)
        if not self._inspection.violations and self._settings.fault != "none":
            self._heal()

    def start(self) -> None:
        """Start all nodes within a protocol period, the first founds and is the others' seed; or converged."""
        if self._settings.is_converged:
            self._fleet.boot_acquainted(self._settings.nodes)
            return
        for _ in range(self._settings.nodes):
            self._fleet.add()
        spread_s = _START_PERIODS * self._swim.probe_interval_s
        for host in self.world.hosts:
            at_s = 0.0 if host.index == 0 else self._rng.uniform(0.0, spread_s)
            self.world.loop.schedule(at_s, self._fleet.boot, host)

    def converge(self) -> float | None:
        """Wait until all see all; return when that was."""
        # An overloaded seed or heavy loss may cost rounds of anti-entropy, hence the bound twice.
        if not self._settings.is_converged:
            self._inspection.run_for(_START_PERIODS * self._swim.probe_interval_s, self._step_s)
        # Under constant loss somebody may be suspected at every look; then it just never is.
        self._converged_s = self._inspection.wait_converged(
            2 * self._bound_s(), self._step_s, is_demanded=not self._settings.loss_ratio
        )
        if self._converged_s is not None:
            self._inspection.say(f"all see all after {self._converged_s:.3f} s")
        return self._converged_s

    def result(self, wall_s: float) -> Result:
        """Return what was measured."""
        return Result(
            settings=self._settings.to_json(),
            seed=self._seed,
            trace_hash=self.world.trace.hash_hex,
            converged_s=self._converged_s,
            healed_s=self._healed_s,
            detection=self._detection,
            false_accusations=self._inspection.accusations.count,
            packets_s=self._packets_s,
            bytes_s=self._bytes_s,
            simulated_s=self.world.loop.now_s,
            steps=self.world.loop.steps,
            wall_s=wall_s,
            is_checked=self._is_checked,
            violations=tuple(self._inspection.violations),
            replay=self._settings.replay(self._seed),
            story=self._inspection.story(self._nemesis.log),
        )

    def _bound_s(self) -> float:
        return settle_bound_s(self._swim, len(self.world.hosts), SEED_HOSTS)

    def _pass(self, duration_s: float) -> None:
        self._inspection.run_for(duration_s, self._step_s)

    def _idle(self) -> None:
        """Let the news of the joins die out, then count what idle members send."""
        self._pass(3 * self._swim.probe_interval_s)
        idle_s = self._settings.idle_s
        duration_s = _IDLE_PERIODS * self._swim.probe_interval_s if idle_s is None else idle_s
        if duration_s <= 0:
            return
        before = self._sent()
        self._pass(duration_s)
        packets, size = (after - first for after, first in zip(self._sent(), before, strict=True))
        member_seconds = duration_s * len(self.world.hosts)
        self._packets_s = packets / member_seconds
        self._bytes_s = size / member_seconds
        self._inspection.say(f"idle: {self._packets_s:.2f} packets a second and member")

    def _sent(self) -> tuple[int, int]:
        traffic = [host.traffic for host in self.world.hosts]
        return sum(t.packets_sent for t in traffic), sum(t.bytes_sent for t in traffic)

    def _victim(self) -> Host:
        return self.world.hosts[self._rng.randrange(1, len(self.world.hosts))]

    # The one thing that happens.

    def _nothing(self) -> None:
        self._pass(verdict_window_s(self._swim, self._settings.nodes))

    def _crash(self) -> None:
        victim = self._victim()
        self._begin(FaultKind.CRASH, victim, self._verdict_bound_s() + 1.0)
        self._detect(victim, EventKind.DEAD)

    def _lose_host(self) -> None:
        victim = self._victim()
        self._begin(FaultKind.POWER, victim, self._verdict_bound_s() + 1.0)
        self._detect(victim, EventKind.DEAD)

    def _pause(self) -> None:
        victim = self._victim()
        self._begin(FaultKind.PAUSE, victim, self._verdict_bound_s() + 1.0)
        self._detect(victim, EventKind.DEAD)

    def _restart(self) -> None:
        victim = self._victim()
        self._begin(FaultKind.CRASH, victim, _RESTART_AFTER_S)
        self._pass(_RESTART_AFTER_S + 1e-6)

    def _leave(self) -> None:
        victim = self._victim()
        self._inspection.say(f"{victim.spec.name} leaves")
        began_s = self.world.loop.now_s
        victim.begin_trouble()
        self.world.command(victim, Leave("the experiment says so"))
        self._detect(victim, EventKind.LEAVE, began_s)

    def _partition(self) -> None:
        nodes = len(self.world.hosts)
        side = tuple(sorted(self._rng.sample(range(nodes), nodes // 2)))
        duration_s = self._verdict_bound_s()
        self._nemesis.begin(Fault(self.world.loop.now_s, FaultKind.HALVES, side, duration_s))
        self._inspection.say(f"{len(side)} hosts are cut off for {duration_s:.1f} s")
        for host in self.world.hosts:  # those outside are cut off as well
            host.begin_trouble()
        self._pass(duration_s * 0.999)  # the cut still stands: healing is counted from its end
        for host in self.world.hosts:
            host.end_trouble(self.world.loop.now_s)

    def _loss(self) -> None:
        duration_s = _LOSS_PERIODS * self._swim.probe_interval_s
        self._inspection.say(f"{_LOSS_BURST:.0%} of all datagrams are lost for {duration_s:.0f} s")
        calm = self.world.network.conditions
        self.world.network.conditions = Conditions(
            delay_s=calm.delay_s, jitter_s=calm.jitter_s, loss_ratio=_LOSS_BURST
        )
        self._pass(duration_s)

    def _begin(self, kind: FaultKind, victim: Host, duration_s: float) -> None:
        self._inspection.say(f"{kind} of {victim.spec.name}")
        now_s = self.world.loop.now_s
        self._nemesis.begin(Fault(now_s, kind, (victim.index,), duration_s))

    def _verdict_bound_s(self) -> float:
        """Return how long a death may stay unnoticed by anybody: ten periods for the first probe, then the verdict."""
        nodes = self._settings.nodes
        first_s = min(2 * nodes, 10) * self._swim.probe_interval_s
        return first_s + verdict_window_s(self._swim, nodes)

    def _detect(self, victim: Host, kind: EventKind, began_s: float | None = None) -> None:
        """Wait until every survivor has emitted this event about the victim, or the bound has passed."""
        start_s = self.world.loop.now_s if began_s is None else began_s
        first = len(self.world.events)
        victim_id = victim.node_id
        survivors = [h for h in self.world.hosts if h is not victim and h.node is not None]
        seen: dict[int, float] = {}
        end_s = self.world.loop.now_s + self._verdict_bound_s()
        while self.world.loop.now_s < end_s and len(seen) < len(survivors):
            self._pass(min(self._step_s, end_s - self.world.loop.now_s))
            if self._inspection.violations:
                return
            for observed in self.world.events[first:]:
                event = observed.event
                if event.kind is kind and event.member_id == victim_id:
                    seen.setdefault(observed.observer.index, observed.at_s - start_s)
            first = len(self.world.events)
        seen.pop(victim.index, None)
        missing = tuple(h.spec.name for h in survivors if h.index not in seen)
        names = tuple(self.world.hosts[index].spec.name for index in seen)
        self._detection = Detection(seconds=tuple(seen.values()), missing=missing, names=names)
        self._inspection.say(f"noticed by {len(seen)} of {len(survivors)}")

    def _heal(self) -> None:
        began_s = self.world.loop.now_s
        self._nemesis.heal()
        self._inspection.begin_repair()
        at_s = self._inspection.wait_converged(self._bound_s(), self._step_s)
        if at_s is None:
            return
        self._healed_s = at_s - began_s
        self._inspection.say(f"all views are right after {self._healed_s:.3f} s")
        self._pass(verdict_window_s(self._swim, self._settings.nodes))
        self._inspection.demand_converged()


_ACTS: Final[dict[str, Callable[[Experiment], None]]] = {
    "crash": Experiment._crash,  # noqa: SLF001 - the class's own table
    "host": Experiment._lose_host,  # noqa: SLF001
    "pause": Experiment._pause,  # noqa: SLF001
    "partition": Experiment._partition,  # noqa: SLF001
    "loss": Experiment._loss,  # noqa: SLF001
    "restart": Experiment._restart,  # noqa: SLF001
    "leave": Experiment._leave,  # noqa: SLF001
    "none": Experiment._nothing,  # noqa: SLF001
}
FAULTS: Final = tuple(_ACTS)
