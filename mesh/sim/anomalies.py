"""The Lifeguard paper's experiment: some members handle no message for a while, again and again.

    blocked members   |#### D ####|-- pause --|#### D ####|-- pause --| ...
    everybody else    healthy all the time; some of them crash, one after the other

A blocked member's timers run, so it accuses whoever seems not to answer, and what it has to say leaves
all at once when the block ends, its verdicts together with its suspicions. An accusation of a healthy
member is false. How soon the healthy notice the crashes is measured in the same run: a detector may
not buy quiet with blindness. Every other crash is of a process alone, whose host lives to tell; the
rest are hosts that are lost and say nothing.

Source: after the evaluation in [Lifeguard §V]. Deviation: crashes happen during the anomalies.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from mesh.core.events import EventKind
from mesh.core.rng import stream
from mesh.errors import ConfigError
from mesh.node.config import LifeguardConfig, profile
from mesh.node.node import Node
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.world import Observed, World

_SETTLE_S: Final = 5.0
_FIRST_CRASH: Final = 0.15  # of the time of the anomalies
_LAST_CRASH: Final = 0.9
_OBSERVED_AFTER_S: Final = 45.0  # what began before the end is seen through


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomalies:
    """How many of how many members are blocked, for how long at a time, and how many of the others crash."""

    members: int = 128
    blocked: int = 8
    block_s: float = 8.0
    pause_s: float = 4.0
    total_s: float = 40.0
    crashes: int = 6
    profile: str = "lan"
    holds_sends: bool = True
    """Whether a blocked member's own messages wait as well, and all leave when the block ends."""

    @property
    def shortest_suspicion_s(self) -> float:
        """The least that a suspicion lasts in this run, however many are held dead."""
        healthy = self.members - self.blocked - self.crashes
        return profile(self.profile).suspicion_s(healthy)

    def crash_times_s(self) -> list[float]:
        """Return when members crash, evenly spread over the time of the anomalies."""
        step = (_LAST_CRASH - _FIRST_CRASH) / (self.crashes - 1)
        return [self.total_s * (_FIRST_CRASH + step * place) for place in range(self.crashes)]

    def check(self) -> None:
        """Raise ConfigError unless somebody is blocked, some crash, and enough are healthy."""
        if self.crashes < 2:
            raise ConfigError(f"at least 2 crashes are expected, found {self.crashes}")
        most = self.members - 2 - self.crashes
        if not 1 <= self.blocked <= most:
            text = f"1 to {most} blocked of {self.members} members are expected"
            raise ConfigError(f"{text}, found {self.blocked}")
        if min(self.block_s, self.pause_s, self.total_s) <= 0:
            raise ConfigError(f"times above 0 are expected, found {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """Since when the healthy have held a victim dead for good, from its crash on; 0.0: from before.

    None: not one of them ever did. `missing`: how many never did. `is_lost`: the host is gone as well.
    """

    is_lost: bool
    first_s: float | None
    median_s: float | None
    last_s: float | None
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """What one run showed. Accusations are dead verdicts, each counted once for each observer."""

    false_at_healthy: int
    false_in_total: int
    blocked_accused: int
    """Dead verdicts of healthy observers about blocked members: not false, not wanted either."""

    crashes: tuple[Crash, ...]
    """In the order in which they happened."""

    packets: int

    def to_json(self) -> dict[str, Any]:
        """Return it for programs; `from_json` reads it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Harm:
        """Read what `to_json` returned."""
        counts = ("false_at_healthy", "false_in_total", "blocked_accused", "packets")
        crashes = tuple(Crash(**crash) for crash in data["crashes"])
        return cls(crashes=crashes, **{name: data[name] for name in counts})


def _crash_of(seconds: Sequence[float], healthy: int, *, is_lost: bool) -> Crash:
    return Crash(
        is_lost=is_lost,
        first_s=round(min(seconds), 3) if seconds else None,
        median_s=round(statistics.median(seconds), 3) if seconds else None,
        last_s=round(max(seconds), 3) if seconds else None,
        missing=healthy - len(seconds),
    )


def run_anomalies(seed: int, anomalies: Anomalies, lifeguard: LifeguardConfig) -> Harm:
    """Run it once. The same seed blocks and kills the same members at the same times, whatever the detector.

    Raises:
        ConfigError: a setting is out of range.
    """
    anomalies.check()
    run = _Run(seed, anomalies, lifeguard)
    run.run()
    return run.harm()


class _Run:
    def __init__(self, seed: int, anomalies: Anomalies, lifeguard: LifeguardConfig) -> None:
        self._anomalies = anomalies
        network = Network(seed, Conditions())
        self._world = World(seed, Node, network)
        swim = replace(profile(anomalies.profile), lifeguard=lifeguard)
        self._fleet = Fleet(
            self._world, swim, FleetOptions(clock_rate_error=1e-4, profile=anomalies.profile)
        )
        self._rng = stream(seed, "anomalies")
        self._blocked: list[Host] = []
        self._crashed_s: dict[int, float] = {}
        self._lost: dict[int, bool] = {}
        self._false: Counter[bool] = Counter()  # by whether the observer was healthy
        self._blocked_accused = 0
        self._dead_since: dict[int, dict[int, float]] = {}  # by victim and healthy observer
        self._world.watchers.append(self._observe)

    def run(self) -> None:
        """Settle, block again and again, kill some, and see it through."""
        anomalies, world = self._anomalies, self._world
        self._fleet.boot_acquainted(anomalies.members)
        world.run_for(_SETTLE_S)
        count = anomalies.blocked
        chosen = self._rng.sample(world.hosts, count + anomalies.crashes)
        self._blocked = blocked = chosen[:count]
        times_s = anomalies.crash_times_s()
        for place, (victim, after_s) in enumerate(zip(chosen[count:], times_s, strict=True)):
            self._dead_since[victim.index] = {}
            self._lost[victim.index] = place % 2 == 1
            world.loop.schedule(world.loop.now_s + after_s, self._crash, victim)
        end_s = world.loop.now_s + anomalies.total_s
        while world.loop.now_s < end_s:
            for host in blocked:
                world.deafen(host, True)
                if anomalies.holds_sends:
                    world.network.clog(host.index, world.loop.now_s + anomalies.block_s)
            world.run_for(anomalies.block_s)
            for host in blocked:
                world.deafen(host, False)
            world.run_for(anomalies.pause_s)
        world.run_for(_OBSERVED_AFTER_S)

    def harm(self) -> Harm:
        """Return what was counted."""
        healthy = len(self._world.hosts) - len(self._blocked) - len(self._dead_since)
        crashes = [
            _crash_of(
                [max(0.0, at_s - self._crashed_s[victim]) for at_s in since.values()],
                healthy,
                is_lost=self._lost[victim],
            )
            for victim, since in self._dead_since.items()
        ]
        return Harm(
            false_at_healthy=self._false[True],
            false_in_total=self._false[True] + self._false[False],
            blocked_accused=self._blocked_accused,
            crashes=tuple(crashes),
            packets=sum(host.traffic.packets_sent for host in self._world.hosts),
        )

    def _crash(self, victim: Host) -> None:
        self._crashed_s[victim.index] = self._world.loop.now_s
        self._world.crash(victim, power=not self._lost[victim.index])

    def _observe(self, observed: Observed) -> None:
        event, observer = observed.event, observed.observer
        if event.kind not in {EventKind.DEAD, EventKind.RETURN} or event.member_id is None:
            return
        identity = self._world.census.identity(event.member_id)
        if identity is None:
            return
        subject, is_dead = identity.host, event.kind is EventKind.DEAD
        is_healthy = observer not in self._blocked
        if is_healthy and observer.index not in self._dead_since:  # who dies later is no witness
            self._follow(subject, observer, observed.at_s if is_dead else None)
        if not is_dead or subject.node is None:
            return
        if subject in self._blocked:
            self._blocked_accused += is_healthy
        else:
            self._false[is_healthy] += 1

    def _follow(self, subject: Host, observer: Host, dead_at_s: float | None) -> None:
        """Keep since when an observer holds one dead who crashes, or is to crash; None: it does not."""
        since = self._dead_since.get(subject.index)
        if since is None:
            return
        if dead_at_s is None:
            since.pop(observer.index, None)
        else:
            since[observer.index] = dead_at_s
