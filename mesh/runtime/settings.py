"""What a user may say when a node is started, and the checks that need nothing but the settings."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from mesh.core.address import DEFAULT_PORT, Address, numeric_host, split_host_port
from mesh.core.ids import NAME_CHARS_MAX, NodeId
from mesh.core.limits import SLOTS_MAX
from mesh.errors import ConfigError
from mesh.membership.profile import SwimConfig, profile
from mesh.node.config import LEASES, PACES, UPKEEPS, LeaseTimes, Pace, UpkeepTimes
from mesh.queues.settings import check_name
from mesh.runtime.hook_settings import HookSettings
from mesh.runtime.keystore import KEYS_NAME
from mesh.runtime.reach import Reach
from mesh.version import __version__
from mesh.wire.records import (
    DEDICATED,
    DEDICATED_QUEUES_MAX,
    EMERGENCY,
    GENERAL,
    Availability,
    Card,
    Metadata,
    encode_card,
)

EVIDENCE: Final = ("all", "none")
DRAIN_S_MAX: Final = 30 * 86_400.0
"""What runs on a node that leaves may be waited for no longer than a month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """One node as its user wants it. Every field but `data_dir` has a default."""

    data_dir: Path
    """Where identity, lock and control socket are kept; created if absent."""

    name: str | None = None
    """For people; unique among the living; the data directory keeps it. None: the one that it keeps, else the host's
    name, changed if that is taken."""

    bind: tuple[str, int] = ("127.0.0.1", DEFAULT_PORT)
    """Host (a name is resolved) and port for UDP and TCP alike; port 0: any free one."""

    advertise: tuple[str, int] | None = None
    """What others are told to send to, for good; port 0: the bound one. None: what is bound, and where it moves to."""

    slots: int | None = None
    """How many tasks run here at once, 0 to 65,535. None: one for each processor."""

    pool: str = "default"
    node_class: str = GENERAL
    """Two words mean something to Mesh itself: dedicated (to `queues`), and emergency (only while the load is high)."""

    queues: tuple[str, ...] = ()
    """Of a dedicated node: those whose tasks it takes, before others do, and no others."""

    labels: Mapping[str, str] = field(default_factory=dict)
    offers: Mapping[str, int] = field(default_factory=dict)

    key_file: Path | None = None
    """The key that members share; kept in the data directory from then on. None: that one, or none at all."""

    profile: str = "lan"
    """How patient membership is: local, lan or wan."""

    evidence: str = "all"
    """What a death is told by: all that a host has to say, or none of it but silence."""

    drain_s: float = 0.0
    """How long running tasks may go on after SIGTERM before they are stopped and released; 0: not at all."""

    pause_tolerance_s: float | None = None
    """How long a suspect may be silent before it is held dead. None: as the profile has it."""

    seeds: tuple[str, ...] = ()
    """Members to ask, as HOST or HOST:PORT; none: found a mesh, or return to the directory's own."""

    found: bool = False
    expect: int = 0
    """With seeds: found a mesh once this many have met. 0: never."""

    hooks: HookSettings = field(default_factory=HookSettings)
    """What is run to tell whether this host is fit for work, and when the mesh is short of slots."""

    command: str = ""
    """The shell line that starts this node again, kept in the data directory for whoever finds it gone; "": none."""

    fault_hook: bool = False
    """For tests of faults: SIGUSR2 makes the node deaf and lets it hear again."""

    def swim(self) -> SwimConfig:
        """Return the timings of membership. Raises ConfigError."""
        timings = profile(self.profile)
        if self.evidence not in EVIDENCE:
            raise ConfigError(f"evidence is one of {', '.join(EVIDENCE)}, found {self.evidence!r}")
        if not self.has_evidence:
            timings = replace(timings, lifeguard=replace(timings.lifeguard, has_lifelines=False))
        if self.pause_tolerance_s is not None:
            timings = replace(timings, pause_tolerance_s=self.pause_tolerance_s)
        timings.check()
        return timings

    def leases(self) -> LeaseTimes:
        """Return the times of leases, by the profile. Raises ConfigError, as `swim`."""
        profile(self.profile)
        return LEASES[self.profile]()

    def pace(self) -> Pace:
        """Return how fast the roster follows, by the profile. Raises ConfigError, as `swim`."""
        profile(self.profile)
        return PACES[self.profile]()

    def upkeep(self) -> UpkeepTimes:
        """Return how the profile's voters look after what they keep."""
        return UPKEEPS[self.profile]()

    @property
    def has_evidence(self) -> bool:
        """Say whether more than silence counts."""
        return self.evidence != "none"

    def metadata(self) -> Metadata:
        """Return what is told to other members about this one."""
        return Metadata(
            pool=self.pool,
            node_class=self.node_class,
            labels=tuple(sorted(self.labels.items())),
            slots=(os.cpu_count() or 1) if self.slots is None else self.slots,
            offers=tuple(sorted(self.offers.items())),
            version=__version__,
            queues=tuple(dict.fromkeys(self.queues)),
            availability=self._availability(),
            why=self._why(),
        )

    def _availability(self) -> Availability:
        """Return what is declared at first: who has a health check is unfit until it has passed."""
        if self.hooks.health_check is not None:
            return Availability.UNFIT
        is_standing_by = self.node_class == EMERGENCY
        return Availability.STANDBY if is_standing_by else Availability.OPEN

    def _why(self) -> str:
        """Return why a node takes no work at first, where its health check decides."""
        if self.hooks.health_check is None:
            return ""
        from mesh.hooks.health import NOT_YET  # noqa: PLC0415 - most nodes have none

        return NOT_YET

    def node_name(self) -> str:
        """Return the name given, or the host's, cut to what a name may be."""
        if self.name is not None:
            return self.name
        return socket.gethostname().partition(".")[0][:NAME_CHARS_MAX] or "node"

    def called(self, kept: str) -> AgentSettings:
        """Return these settings with the name that the data directory keeps; "": it keeps none.

        Raises:
            ConfigError: with that name, all that the node declares does not fit into one datagram.
        """
        if not kept or kept == self.name:
            return self
        settings = replace(self, name=kept)
        settings.check()
        return settings

    def reach(self) -> Reach:
        """Return how far the node may reach: without a key, given or kept, loopback."""
        has_key = self.key_file is not None or os.path.lexists(self.data_dir / KEYS_NAME)
        return Reach(is_loopback_only=not has_key)

    def _check_reach(self, host: str, what: str, verb: str) -> None:
        """Check what is numeric; a name is looked up later."""
        numeric = numeric_host(host)
        if numeric is not None:
            self.reach().check(numeric, what, verb)

    def _check_queues(self) -> None:
        if self.node_class == DEDICATED and not self.queues:
            raise ConfigError(
                "--class dedicated needs the queues whose tasks this node is for, found none; name each by --queue"
            )
        if self.queues and self.node_class != DEDICATED:
            raise ConfigError(
                f"--queue is for a node that takes the tasks of some queues alone, found class {self.node_class}; "
                "add --class dedicated, or leave --queue away"
            )
        if len(set(self.queues)) > DEDICATED_QUEUES_MAX:
            raise ConfigError(
                f"a node is for {DEDICATED_QUEUES_MAX} queues at most, found {len(set(self.queues))}: give others to another node"
            )
        for queue in self.queues:
            check_name(queue)

    def check(self) -> None:
        """Raise ConfigError for whatever is wrong; opens neither files nor sockets."""
        self.swim()
        self.hooks.check()
        for seed in self.seeds:
            host, port = split_host_port(seed)
            if not host or not port:
                raise ConfigError(f"a seed is HOST or HOST:PORT with a port from 1, found {seed!r}")
            self._check_reach(host, f"seed {seed}", "joined at")
        if self.advertise is not None:
            self._check_reach(self.advertise[0], f"--advertise {self.advertise[0]}", "advertised")
        if self.found and self.expect:
            raise ConfigError(
                f"--found founds a mesh at once and --expect {self.expect} waits for others: one of the two is "
                "expected, found both"
            )
        if self.expect and not self.seeds:
            raise ConfigError(
                "--expect needs seeds to meet at, found none; name them, or leave --expect away to found at once"
            )
        self._check_queues()
        if not 0 <= self.drain_s <= DRAIN_S_MAX:
            raise ConfigError(
                f"--drain lies between 0 and {DRAIN_S_MAX:g} s, found {self.drain_s:g}; name a time within that"
            )
        if self.slots is not None and not 0 <= self.slots <= SLOTS_MAX:
            raise ConfigError(
                f"slots lie between 0 and {SLOTS_MAX}, found {self.slots}; name a number within that, or none for one "
                "for each processor"
            )
        card = Card(
            node_id=NodeId(1),
            boot=0,
            incarnation=0,
            name=self.node_name(),
            address=Address("::1", 65_535),
            meta=self.metadata(),
        )
        try:
            encode_card(card)  # checks every part, and that they fit into one datagram together
        except UnicodeEncodeError as error:
            raise ConfigError(
                f"name, pool, class, queues, labels and offers are expected as UTF-8 text, found {error.object[:40]!a}"
            ) from error
