"""The mixed scenario: a seed draws a mesh, a network and its faults; then everything heals, and must agree.

First unfair, then fair: during the safety phase hosts crash, pause, part, move, lose disks, and bytes
are lost, copied and mangled, while what must always hold is checked. Then every fault ends, and all
views must equal the truth within a computed bound, and stay so.

Source: the two phases follow TigerBeetle's VOPR.
"""

from __future__ import annotations

import functools
import random
import time
from dataclasses import dataclass, replace
from typing import Any, Final, TextIO

from mesh.core.rng import stream
from mesh.node.config import SwimConfig, profile
from mesh.node.node import Node
from mesh.sim.checkers import Violation, settle_bound_s, verdict_window_s
from mesh.sim.faults import Fault, plan
from mesh.sim.fleet import SEED_HOSTS, Fleet, FleetOptions
from mesh.sim.garbage import Garbage, captured
from mesh.sim.host import Host, NodeFactory
from mesh.sim.inspection import Inspection, Progress
from mesh.sim.nemesis import Nemesis
from mesh.sim.network import Conditions, Network
from mesh.sim.report import Result
from mesh.sim.world import World

_PERIODS_OF_FAULTS: Final = 30
_FORGETFUL_RATIO: Final = 0.3
_MEMORY_PERIODS: Final = 12
_GARBAGE_ROUNDS: Final = 3
_GARBAGE_PIECES: Final = 6
_FOREIGN_SEED: Final = -1  # no run's own, or the other mesh would have the same id


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a seed has drawn. All but the plan may be set by hand."""

    nodes: int
    profile: str
    conditions: Conditions
    clock_rate_error: float
    garbage_rounds: int
    faults: tuple[Fault, ...]
    safety_s: float
    is_forgetful: bool = False
    """Whoever left or was forgotten is remembered for so short a time that a cut can outlast it."""

    @property
    def swim(self) -> SwimConfig:
        """Return the timings of membership."""
        return _timings(self.profile, is_forgetful=self.is_forgetful)

    def to_json(self) -> dict[str, Any]:
        """Return the settings for people and programs."""
        conditions = self.conditions
        return {
            "scenario": "mixed",
            "nodes": self.nodes,
            "profile": self.profile,
            "loss": conditions.loss_ratio,
            "delay_ms": round(conditions.delay_s * 1000, 3),
            "jitter_ms": round(conditions.jitter_s * 1000, 3),
            "copies": conditions.copy_ratio,
            "forgetful": self.is_forgetful,
            "clocks": round(self.clock_rate_error, 6),
            "faults": len(self.faults),
        }


def draw_options(
    seed: int, *, nodes: int | None = None, profile_name: str | None = None
) -> Options:
    """Draw a run from its seed; `nodes` and `profile_name` override what was drawn for them."""
    rng = stream(seed, "options")
    drawn_nodes = rng.choices((5, 6, 7, 8, 10, 13, 20, 30), (6, 6, 6, 5, 4, 3, 1, 1))[0]
    drawn_profile = rng.choices(("local", "lan", "wan"), (6, 3, 1))[0]
    count = nodes if nodes is not None else drawn_nodes
    name = profile_name or drawn_profile
    is_forgetful = rng.random() < _FORGETFUL_RATIO
    swim = _timings(name, is_forgetful=is_forgetful)
    fastest_s = swim.probe_timeout_s / 20
    delay_s = rng.choice((0.0001, 0.0005, 0.002, fastest_s))
    conditions = Conditions(
        delay_s=min(delay_s, fastest_s),
        jitter_s=min(delay_s, fastest_s) * rng.choice((0.1, 0.5, 1.0)),
        loss_ratio=rng.choice((0.0, 0.0, 0.01, 0.05, 0.2)),
        copy_ratio=rng.choice((0.0, 0.0, 0.05, 0.3)),
        copy_delay_s=swim.probe_interval_s * rng.choice((0.05, 1.0, 20.0)),
    )
    safety_s = (1 + is_forgetful) * _PERIODS_OF_FAULTS * swim.probe_interval_s
    # Declared dead after a while, and then remembered for as long as anybody is.
    long_s = 5 * swim.pause_tolerance_s + swim.dead_retention_s if is_forgetful else 0.0
    window = (2 * swim.probe_interval_s, safety_s * 0.8)
    return Options(
        nodes=count,
        profile=name,
        conditions=conditions,
        clock_rate_error=rng.choice((0.0, 1e-4, 1e-3, 1e-2)),
        garbage_rounds=rng.choice((0, 1, _GARBAGE_ROUNDS)),
        faults=plan(stream(seed, "faults"), count, window, swim.pause_tolerance_s, long_s=long_s),
        safety_s=safety_s,
        is_forgetful=is_forgetful,
    )


def _timings(name: str, *, is_forgetful: bool) -> SwimConfig:
    swim = profile(name)
    if not is_forgetful:
        return swim
    lasts_s = _MEMORY_PERIODS * swim.probe_interval_s
    return replace(
        swim,
        sync_interval_s=lasts_s / 2,
        dead_retention_s=lasts_s,
        left_retention_s=lasts_s,
        forgotten_retention_s=lasts_s,
    )


@functools.lru_cache(maxsize=4)
def foreign_packets(profile_name: str) -> tuple[bytes, ...]:
    """Return packets of another mesh: what two members of one send each other, once they know each other."""
    world = World(_FOREIGN_SEED, Node, Network(_FOREIGN_SEED, Conditions()))
    fleet = Fleet(world, profile(profile_name), FleetOptions(profile=profile_name))
    for _ in range(2):
        fleet.boot(fleet.add())
    world.run_for(20 * profile(profile_name).probe_interval_s)
    return tuple(captured(world)[-64:])


def run_mixed(
    seed: int,
    options: Options | None = None,
    *,
    replay: str = "",
    check: bool = True,
    make_node: NodeFactory = Node,
    sink: TextIO | None = None,
    progress: Progress | None = None,
) -> Result:
    """Run one seed to its end or its first violation."""
    drawn = options or draw_options(seed)
    run = _MixedRun(seed, drawn, make_node, check=check, sink=sink, progress=progress)
    began_s = time.perf_counter()
    run.run()
    return run.result(time.perf_counter() - began_s, replay)


class _MixedRun:
    """The steps of the scenario, over the parts that they share."""

    def __init__(
        self,
        seed: int,
        options: Options,
        make_node: NodeFactory,
        *,
        check: bool,
        sink: TextIO | None,
        progress: Progress | None,
    ) -> None:
        self._seed = seed
        self._is_checked = check
        self._options = options
        self._swim: SwimConfig = options.swim
        network = Network(seed, options.conditions)
        self._world = World(seed, make_node, network, check=check, sink=sink)
        fleet_options = FleetOptions(
            clock_rate_error=options.clock_rate_error, profile=options.profile
        )
        self._fleet = Fleet(self._world, self._swim, fleet_options)
        self._inspection = Inspection(self._world, self._swim, check=check, progress=progress)
        self._nemesis = Nemesis(
            self._world, self._fleet, stream(seed, "nemesis"), forgot=self._inspection.absence.note
        )
        foreign = foreign_packets(options.profile) if options.garbage_rounds else ()
        self._garbage = Garbage(self._world, stream(seed, "garbage"), foreign)
        self._rng: random.Random = stream(seed, "scenario")
        self._converged_s: float | None = None

    def run(self) -> None:
        """Boot, be unfair, heal, be fair, hold."""
        self._boot()
        self._be_unfair()
        self._heal()
        self._hold()

    def result(self, wall_s: float, replay: str) -> Result:
        """Return what it showed."""
        inspection = self._inspection
        replay = replay or f"mesh sim --seed {self._seed} --scenario mixed"
        return Result(
            settings=self._options.to_json(),
            seed=self._seed,
            trace_hash=self._world.trace.hash_hex,
            converged_s=self._converged_s,
            false_accusations=inspection.accusations.count,
            simulated_s=self._world.loop.now_s,
            steps=self._world.loop.steps,
            wall_s=wall_s,
            is_checked=self._is_checked,
            violations=tuple(inspection.violations),
            replay=replay,
            story=inspection.story(self._nemesis.log),
        )

    def _boot(self) -> None:
        hosts = [self._fleet.add() for _ in range(self._options.nodes)]
        loop = self._world.loop
        for host in hosts:
            at_s = 0.0 if host.index == 0 else self._rng.uniform(0.0, self._swim.probe_interval_s)
            loop.schedule(at_s, self._boot_if_off, host)
        self._nemesis.schedule(self._options.faults)

    def _boot_if_off(self, host: Host) -> None:
        if host.session == 0:
            self._fleet.boot(host)

    def _be_unfair(self) -> None:
        self._inspection.say(f"{self._options.nodes} nodes, {len(self._options.faults)} faults")
        rounds = self._options.garbage_rounds
        for _ in range(rounds + 1):
            self._pass(self._options.safety_s / (rounds + 1))
            self._throw_garbage()

    def _heal(self) -> None:
        if self._inspection.violations:
            return
        healed_s = self._world.loop.now_s
        self._nemesis.heal()
        self._inspection.begin_repair()
        bound_s = settle_bound_s(self._swim, len(self._world.hosts), SEED_HOSTS)
        self._inspection.say(f"healed; all views must be right within {bound_s:.1f} s")
        at_s = self._inspection.wait_converged(bound_s, self._swim.probe_interval_s)
        if at_s is not None:
            self._converged_s = at_s - healed_s
            self._inspection.say(f"converged after {self._converged_s:.3f} s")

    def _hold(self) -> None:
        if self._inspection.violations:
            return
        window_s = verdict_window_s(self._swim, len(self._world.hosts))
        self._pass(window_s)
        self._throw_garbage()
        self._pass(2 * self._swim.probe_interval_s)
        self._inspection.demand_converged()
        self._inspection.violations += [
            Violation("safety", at_s, host.spec.name, "", f"stopped: {stop.reason}")
            for at_s, host, stop in self._world.stops
            if stop.exit_code != 0
        ]

    def _pass(self, duration_s: float) -> None:
        self._inspection.run_for(duration_s, 2 * self._swim.probe_interval_s)

    def _throw_garbage(self) -> None:
        running = [h for h in self._world.hosts if h.node is not None and not h.is_paused]
        if self._inspection.violations or not running or not self._options.garbage_rounds:
            return
        host = self._rng.choice(running)
        self._world.acting = host
        try:
            self._garbage.inject(host, _GARBAGE_PIECES)
        except Exception as error:  # noqa: BLE001 - whatever a node raises is what we look for
            self._inspection.note_crash(error)
        self._inspection.violations += self._garbage.violations
        self._garbage.violations.clear()
