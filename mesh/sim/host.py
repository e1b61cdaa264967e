"""One simulated machine: a clock of its own, a disk, and the node that runs there, if one does.

The disk and the clock outlive the node, as they do on a real host. All that concerns one run of the
node (a *session*) is dropped when it ends; whatever comes for an ended session is ignored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from mesh.core.address import Address
from mesh.core.effects import Remember
from mesh.core.ids import NodeId
from mesh.core.letter import Letter
from mesh.core.stored import Kept, StoredRecord
from mesh.node.config import (
    LEASES,
    PACES,
    UPKEEPS,
    LeaseTimes,
    Metadata,
    NodeConfig,
    Pace,
    SwimConfig,
    UpkeepTimes,
)
from mesh.node.face import NodeFace
from mesh.node.view import View

INBOX_DATAGRAMS_MAX: Final = 166  # what Linux's default receive buffer holds of 200-byte packets


class SimNode(NodeFace, Protocol):
    """What the simulator uses beside a driver's calls: the settings, and what people would see."""

    config: NodeConfig

    def view(self, now: float, /) -> View:
        """Return what people see."""


NodeFactory: TypeAlias = Callable[[NodeConfig, int, Kept], SimNode]


class Clock:
    """A host's monotonic clock: it runs at `rate` of true time from an arbitrary start, and never back."""

    __slots__ = ("_last_s", "offset_s", "rate")

    def __init__(self, offset_s: float = 0.0, rate: float = 1.0) -> None:
        self.offset_s = offset_s
        self.rate = rate
        self._last_s = offset_s

    def read(self, true_s: float) -> float:
        """Return what the clock shows at `true_s`."""
        now = self.offset_s + self.rate * true_s
        if now < self._last_s:  # the last digit's rounding
            return self._last_s
        self._last_s = now
        return now

    def read_at_least(self, true_s: float, deadline_s: float) -> float:
        """Return the reading, lifted to `deadline_s` if only rounding keeps it below."""
        now = self.read(true_s)
        if now < deadline_s <= now + 1e-6:
            self._last_s = now = deadline_s
        return now

    def true_time(self, reading_s: float) -> float:
        """Return the true time at which the clock shows `reading_s`."""
        return (reading_s - self.offset_s) / self.rate

    def set_rate(self, true_s: float, rate: float) -> None:
        """Run at another rate from `true_s` on; the reading does not jump."""
        self.offset_s += (self.rate - rate) * true_s
        self.rate = rate


@dataclass(slots=True)
class Traffic:
    """What a host has sent and received since it exists."""

    datagrams_sent: int = 0
    datagram_bytes_sent: int = 0
    frames_sent: int = 0
    frame_bytes_sent: int = 0
    datagrams_received: int = 0
    datagrams_lost_in_inbox: int = 0

    @property
    def packets_sent(self) -> int:
        """Datagrams and frames together."""
        return self.datagrams_sent + self.frames_sent

    @property
    def bytes_sent(self) -> int:
        """Payload bytes of datagrams and frames together."""
        return self.datagram_bytes_sent + self.frame_bytes_sent


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpec:
    """What a host's user gives to `mesh join` there."""

    name: str
    address: Address
    swim: SwimConfig
    leases: LeaseTimes = field(default_factory=LEASES["lan"])
    pace: Pace = field(default_factory=PACES["lan"])
    upkeep: UpkeepTimes = field(default_factory=UPKEEPS["lan"])
    seeds: tuple[str, ...] = ()
    is_name_given: bool = True
    found: bool = False
    expect: int = 0
    meta: Metadata = field(default_factory=Metadata)


class _Copy(NamedTuple):
    """What a disk held once."""

    disk: dict[str, int]
    snapshot: Remember | None
    records: dict[bytes, StoredRecord]
    numbers: dict[str, int]


class Host:
    """A machine and the node on it. `session` counts the node's runs there."""

    __slots__ = (
        "_copies",
        "_troubles",
        "clean_since_s",
        "clock",
        "datagrams_waiting",
        "disk",
        "exchanges",
        "identities",
        "inbox",
        "index",
        "is_deaf",
        "is_paused",
        "is_powered",
        "is_suspended",
        "letters",
        "node",
        "node_id",
        "numbers",
        "records",
        "session",
        "snapshot",
        "spec",
        "started_s",
        "traffic",
        "unix_error_s",
        "wake_s",
    )

    def __init__(self, index: int, spec: HostSpec, clock: Clock) -> None:
        self.index = index
        self.spec = spec
        self.clock = clock
        self.disk: dict[str, int] = {}
        self.snapshot: Remember | None = None  # on the disk, too, as is what follows
        self.records: dict[bytes, StoredRecord] = {}
        self.numbers: dict[str, int] = {}
        self._copies: list[_Copy] = []
        self.unix_error_s = 0.0
        self.identities = 0
        self.node: SimNode | None = None
        self.node_id = NodeId(0)
        self.session = 0
        self.started_s = 0.0
        self.is_paused = False
        self.is_suspended = False
        self.is_deaf = False
        self.is_powered = True
        self.inbox: deque[tuple[Callable[[Any], None], Any]] = deque()
        self.datagrams_waiting = 0
        self.exchanges: set[int] = set()
        self.letters: tuple[
            Letter, ...
        ] = ()  # what the guardian of this session sends when it is over
        self.wake_s: float | None = None
        self.traffic = Traffic()
        self.clean_since_s = 0.0
        self._troubles = 0

    @property
    def takes_messages(self) -> bool:
        """Say whether what arrives is handled now; else it waits, as far as there is room."""
        return not (self.is_paused or self.is_deaf)

    @property
    def is_clean(self) -> bool:
        """Say whether no fault concerns this host just now."""
        return self._troubles == 0

    def copy_disk(self) -> None:
        """Keep a copy of the disk as it is now, and the one made before it."""
        copy = _Copy(dict(self.disk), self.snapshot, dict(self.records), dict(self.numbers))
        self._copies = [*self._copies[-1:], copy]

    def lose_disk(self) -> None:
        """Lose what the disk held, and every copy: the next boot is a new node."""
        self.disk, self.snapshot, self.records, self.numbers = {}, None, {}, {}
        self._copies = []

    def roll_back(self, clock_s: float) -> None:
        """Return to the older copy of the disk, and set the time of day back; without a copy nothing happens."""
        if self._copies:
            copy = self._copies[0]
            self.disk, self.snapshot = dict(copy.disk), copy.snapshot
            self.records, self.numbers = dict(copy.records), dict(copy.numbers)
            self.unix_error_s -= clock_s

    def begin_trouble(self) -> None:
        """A fault concerns this host from now on."""
        self._troubles += 1

    def end_trouble(self, now_s: float) -> None:
        """One fault concerns it no longer."""
        self._troubles = max(0, self._troubles - 1)
        self.clean_since_s = now_s
