"""How fast membership works: every timing knob of it, and the presets local, lan and wan.

The presets follow one rule: an idle member sends about two small packets a second (`lan`), whatever
the mesh's size, and a silent member is declared dead no sooner than `pause_tolerance_s`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from mesh.errors import ConfigError
from mesh.membership.lifeguard import LifeguardConfig

REFUTATION_ROUNDS: Final = 8
"""So many rounds of gossip, for each tenfold of the mesh, a refutation has to get round before it is too late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwimConfig:
    """All timings in seconds. Sane ranges are given; relations are checked by `check`."""

    probe_interval_s: float
    """The protocol period: one probe each. Shorter finds deaths sooner and costs packets. 0.1 to 10."""

    probe_timeout_s: float
    """How long a direct ping may take at most before others are asked, and they after that.

    Less where the round trips measured are short. Above the 99th percentile of the RTT."""

    indirect_probes: int = 3
    """How many members are asked to ping a silent one (k of SWIM). 0 to 8."""

    pause_tolerance_s: float
    """A silent member is never declared dead sooner than this after it was suspected. 0.2 to 60."""

    suspicion_multiplier: float = 3.0
    """Without observers, a suspicion lasts at least this many periods times log10 of the mesh's size (at least 1)."""

    gossip_interval_s: float
    """The pause between rounds of gossip while there is news. 0.02 to 1."""

    gossip_fanout: int = 3
    """How many members each round of gossip goes to. 1 to 8."""

    news_delay_s: float = 0.005
    """Fresh news waits up to this long, up to twice just after a round; what comes in meanwhile shares the packet."""

    retransmit_multiplier: float = 4.0
    """News is passed on this many times log10(size + 1), rounded up. Below 3, news may die out under loss."""

    sync_interval_s: float
    """The pause between anti-entropy exchanges with a random member. 5 to 300."""

    reconnect_interval_s: float
    """How often a dead member may be tried again; the mesh together tries each about this often."""

    exchange_timeout_s: float
    """How long a join or sync exchange may take."""

    join_retry_s: float = 1.0
    """The pause between rounds through the seeds while none answers."""

    leave_linger_s: float
    """How long a leaving node stays to spread the news of it."""

    dead_retention_s: float = 86_400.0
    """How long a dead member is remembered that is not among the latest `reconnect_members_max`; those stay."""

    left_retention_s: float = 3_600.0
    """How long a member that left is remembered."""

    forgotten_retention_s: float = 86_400.0
    """How long it is known that a member was forgotten. Shorter than somebody's sleep, and who slept brings it back."""

    told_dead_max: int = 3
    """How many of those that died lately a round of gossip tells too: they may only be cut off."""

    lifeguard: LifeguardConfig = field(default_factory=LifeguardConfig)
    """Which parts of Lifeguard, and of ours beyond it, are at work."""

    reconnect_members_max: int = 1_000
    """Of the dead, how many (the latest) are tried again, for ever."""

    def suspicion_s(self, size: int) -> float:
        """Return the least seconds from suspicion to death in a mesh of `size` members.

        It grows with the logarithm of the size, as does the time a refutation takes to spread: where a
        suspect is looked at by its observers at once, by rounds of gossip; else by periods.
        Deviation: [SWIM §4.2] leaves the timeout open; the form follows [memberlist].
        """
        scale = max(1.0, math.log10(max(1, size)))
        if self.lifeguard.has_turns:
            spread_s = REFUTATION_ROUNDS * self.gossip_interval_s
        else:
            spread_s = self.suspicion_multiplier * self.probe_interval_s
        return max(self.pause_tolerance_s, scale * spread_s)

    def longest_suspicion_s(self, size: int) -> float:
        """Return the seconds from suspicion to death where no other observer shares the suspicion."""
        return self.suspicion_s(size) * self.lifeguard.suspicion_factor

    def moment_s(self, size: int) -> float:
        """Return the seconds in which a member that is accused hears of it and its refutation gets round."""
        return self.probe_interval_s * max(1.0, math.log10(max(1, size)))

    def check(self) -> None:
        """Raise ConfigError if one setting contradicts another."""
        relations = (
            (
                0 < self.probe_timeout_s < self.probe_interval_s,
                "probe_timeout_s must lie between 0 and probe_interval_s (indirect probes need the rest)",
            ),
            (self.pause_tolerance_s > 0, "pause_tolerance_s must be above 0"),
            (
                0 < self.news_delay_s <= self.gossip_interval_s,
                "news_delay_s must not exceed gossip_interval_s",
            ),
            (1 <= self.lifeguard.observers <= 16, "observers must lie between 1 and 16"),
            (0 <= self.indirect_probes <= 8, "indirect_probes must lie between 0 and 8"),
            (self.lifeguard.suspicion_factor >= 1, "suspicion_factor must be at least 1"),
            (1 <= self.gossip_fanout <= 8, "gossip_fanout must lie between 1 and 8"),
            (
                self.left_retention_s > self.sync_interval_s,
                "left_retention_s must exceed sync_interval_s",
            ),
            (
                self.dead_retention_s > self.sync_interval_s,
                "dead_retention_s must exceed sync_interval_s",
            ),
            (
                self.forgotten_retention_s > self.sync_interval_s,
                "forgotten_retention_s must exceed sync_interval_s",
            ),
        )
        for holds, rule in relations:
            if not holds:
                raise ConfigError(f"{rule}, found {self}")


def local() -> SwimConfig:
    """Return the preset for one host: quick, at up to ten packets a second."""
    return SwimConfig(
        probe_interval_s=0.2,
        probe_timeout_s=0.1,
        pause_tolerance_s=1.0,
        gossip_interval_s=0.05,
        sync_interval_s=10.0,
        reconnect_interval_s=0.5,
        exchange_timeout_s=2.0,
        join_retry_s=0.5,
        leave_linger_s=0.3,
    )


def lan() -> SwimConfig:
    """Return the preset for one site: about two packets a second."""
    return SwimConfig(
        probe_interval_s=1.0,
        probe_timeout_s=0.5,
        pause_tolerance_s=3.0,
        gossip_interval_s=0.1,
        sync_interval_s=30.0,
        reconnect_interval_s=1.0,
        exchange_timeout_s=5.0,
        leave_linger_s=0.5,
    )


def wan() -> SwimConfig:
    """Return the preset for hosts far apart: patient."""
    return SwimConfig(
        probe_interval_s=3.0,
        probe_timeout_s=1.5,
        pause_tolerance_s=10.0,
        gossip_interval_s=0.3,
        sync_interval_s=60.0,
        reconnect_interval_s=3.0,
        exchange_timeout_s=15.0,
        join_retry_s=3.0,
        leave_linger_s=1.5,
    )


PROFILES: Final[dict[str, Callable[[], SwimConfig]]] = {"local": local, "lan": lan, "wan": wan}


def profile(name: str) -> SwimConfig:
    """Return the preset called `name`.

    Raises:
        ConfigError: there is no such preset.
    """
    preset = PROFILES.get(name)
    if preset is None:
        raise ConfigError(f"a profile is one of {', '.join(PROFILES)}, found {name!r}")
    return preset()
