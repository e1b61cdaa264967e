"""The Lifeguard paper's experiment: some members handle no message for a while, again and again.

    blocked members   |#### D ####|-- pause --|#### D ####|-- pause --| ...
    everybody else    healthy all the time; six of them crash, one after the other

A blocked member's timers run, so it accuses whoever seems not to answer, and what it has to say leaves
all at once when the block ends, its verdicts together with its suspicions. An accusation of a healthy
member is false. How soon the healthy notice the crashes is measured in the same run: a detector may
not buy quiet with blindness.

Source: after the evaluation in [Lifeguard §V]. Deviation: crashes happen during the anomalies.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
_CRASH_SHARES: Final = (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)  # of the time of the anomalies
_OBSERVED_AFTER_S: Final = 45.0  # what began before the end is seen through


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomalies:
    """How many of how many members are blocked, for how long at a time, with what pause, for how long in all."""

    members: int = 128
    blocked: int = 8
    block_s: float = 8.0
    pause_s: float = 4.0
    total_s: float = 40.0
    profile: str = "lan"
    holds_sends: bool = True
    """Whether a blocked member's own messages wait as well, and all leave when the block ends."""

    def check(self) -> None:
        """Raise ConfigError unless somebody is blocked and enough are healthy."""
        most = self.members - 2 - len(_CRASH_SHARES)
        if not 1 <= self.blocked <= most:
            text = f"1 to {most} blocked of {self.members} members are expected"
            raise ConfigError(f"{text}, found {self.blocked}")
        if min(self.block_s, self.pause_s, self.total_s) <= 0:
            raise ConfigError(f"times above 0 are expected, found {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """What one run showed. Accusations are dead verdicts, each counted once for each observer."""

    false_at_healthy: int
    false_in_total: int
    blocked_accused: int
    """Dead verdicts of healthy observers about blocked members: not false, not wanted either."""

    detection_s: tuple[tuple[float, ...], ...]
    """For each crash, when each healthy observer noticed it, from the crash on, sorted."""

    missing: int
    """How many healthy observers never noticed a crash, over all crashes."""

    packets: int
    wall_s: float

    @property
    def first_s(self) -> float | None:
        """When the first noticed a crash, the mean over the crashes; None: one was noticed by nobody."""
        return _mean([min(seconds, default=None) for seconds in self.detection_s])

    @property
    def median_s(self) -> float | None:
        """The median over the healthy, the mean over the crashes."""
        medians = [statistics.median(seconds) if seconds else None for seconds in self.detection_s]
        return _mean(medians)

    @property
    def last_s(self) -> float | None:
        """When the last noticed a crash, the mean over the crashes; None if somebody never did."""
        return None if self.missing else _mean([max(seconds) for seconds in self.detection_s])

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        seconds = {"first_s": self.first_s, "median_s": self.median_s, "last_s": self.last_s}
        return {
            "false_at_healthy": self.false_at_healthy,
            "false_in_total": self.false_in_total,
            "blocked_accused": self.blocked_accused,
            **{key: None if at_s is None else round(at_s, 3) for key, at_s in seconds.items()},
            "missing": self.missing,
            "packets": self.packets,
        }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known and len(known) == len(values) else None


def run_anomalies(seed: int, anomalies: Anomalies, lifeguard: LifeguardConfig) -> Harm:
    """Run it once. The same seed blocks and kills the same members at the same times, whatever the detector.

    Raises:
        ConfigError: a setting is out of range.
    """
    anomalies.check()
    began_s = time.perf_counter()
    run = _Run(seed, anomalies, lifeguard)
    run.run()
    return run.harm(time.perf_counter() - began_s)


class _Run:
    def __init__(self, seed: int, anomalies: Anomalies, lifeguard: LifeguardConfig) -> None:
        self._anomalies = anomalies
        network = Network(seed, Conditions())
        self._world = World(seed, Node, network)
        swim = replace(profile(anomalies.profile), lifeguard=lifeguard)
        self._fleet = Fleet(self._world, swim, FleetOptions(clock_rate_error=1e-4))
        self._rng = stream(seed, "anomalies")
        self._blocked: list[Host] = []
        self._crashed_s: dict[int, float] = {}
        self._false: Counter[bool] = Counter()  # by whether the observer was healthy
        self._blocked_accused = 0
        self._noticed: dict[int, dict[int, float]] = {}  # by victim and observer
        self._world.watchers.append(self._observe)

    def run(self) -> None:
        """Settle, block again and again, kill some, and see it through."""
        anomalies, world = self._anomalies, self._world
        self._fleet.boot_acquainted(anomalies.members)
        world.run_for(_SETTLE_S)
        count = anomalies.blocked
        chosen = self._rng.sample(world.hosts, count + len(_CRASH_SHARES))
        self._blocked = blocked = chosen[:count]
        for victim, share in zip(chosen[count:], _CRASH_SHARES, strict=True):
            self._noticed[victim.index] = {}
            crash_s = world.loop.now_s + anomalies.total_s * share
            world.loop.schedule(crash_s, self._crash, victim)
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

    def harm(self, wall_s: float) -> Harm:
        """Return what was counted."""
        crashes = [tuple(sorted(seen.values())) for seen in self._noticed.values()]
        healthy = len(self._world.hosts) - len(self._blocked) - len(crashes)
        return Harm(
            false_at_healthy=self._false[True],
            false_in_total=self._false[True] + self._false[False],
            blocked_accused=self._blocked_accused,
            detection_s=tuple(crashes),
            missing=sum(healthy - len(seconds) for seconds in crashes),
            packets=sum(host.traffic.packets_sent for host in self._world.hosts),
            wall_s=wall_s,
        )

    def _crash(self, victim: Host) -> None:
        self._crashed_s[victim.index] = self._world.loop.now_s
        self._world.crash(victim)

    def _observe(self, observed: Observed) -> None:
        event = observed.event
        identity = (
            self._world.census.identity(event.member_id) if event.member_id is not None else None
        )
        if event.kind is not EventKind.DEAD or identity is None:
            return
        subject, observer = identity.host, observed.observer
        is_healthy = observer not in self._blocked
        if subject.node is None:
            if is_healthy and observer.index not in self._noticed:  # who dies later is no witness
                after_s = observed.at_s - self._crashed_s[subject.index]
                self._noticed[subject.index].setdefault(observer.index, after_s)
        elif subject in self._blocked:
            self._blocked_accused += is_healthy
        else:
            self._false[is_healthy] += 1
