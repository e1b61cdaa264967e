"""What was measured, as values with a JSON shape that programs may rely on.

Times are milliseconds; a time that was never reached is null. Rates are per member and second.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The first, the median and the last of some times. All None when there are none."""

    first_ms: float | None = None
    median_ms: float | None = None
    last_ms: float | None = None


def spread(times_ms: Sequence[float]) -> Spread:
    """Return the spread of some times, in any order."""
    if not times_ms:
        return Spread()
    return Spread(
        first_ms=round(min(times_ms), 1),
        median_ms=round(statistics.median(times_ms), 1),
        last_ms=round(max(times_ms), 1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Who was held dead or suspect without being so, as counts of verdicts."""

    false_accusations: int = 0
    """Dead verdicts on members that nothing was done to, by anybody."""

    suspicions: int = 0
    """The same, suspected only."""

    victim_accusations: int = 0
    """Dead verdicts on a victim that lived: stopped, deaf, or back again."""

    victim_suspicions: int = 0
    """The same, suspected only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One fault and what became of it.

    Attributes:
        noticed_ms: by survivor, how long after the fault it reported the victim dead or left.
        returned_ms: by survivor, how long after the victim's socket was bound again it saw it alive.
        whole_ms: how long after the fault ended (heard again, ran again) all held each other alive;
            0 if they never ceased to.
        is_restarted: the victim did not come back by itself, and was started again.
        began_ns: from when on verdicts count, Unix time.
        victim_from_ns: from when on those on the victim do: before it is back they are right.
    """

    fault: str
    victim: str = ""
    noticed_ms: Mapping[str, float] = field(default_factory=dict)
    returned_ms: Mapping[str, float] = field(default_factory=dict)
    whole_ms: float | None = None
    missing: tuple[str, ...] = ()
    is_restarted: bool = False
    blame: Blame = Blame()
    began_ns: int = 0
    victim_from_ns: int = 0

    @property
    def is_good(self) -> bool:
        """Say whether everybody reported what was due and nobody was accused falsely."""
        return not self.missing and not self.blame.false_accusations

    @property
    def times_ms(self) -> list[float]:
        """The times that the fault is about: of the return for `restart`, else of the notice."""
        source = self.returned_ms if self.fault == "restart" else self.noticed_ms
        return sorted(source.values())

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape."""
        return {
            "fault": self.fault,
            "victim": self.victim,
            **asdict(spread(self.times_ms)),
            **asdict(self.blame),
            "missing": list(self.missing),
            "whole_ms": self.whole_ms,
            "is_restarted": self.is_restarted,
            "noticed": asdict(spread(list(self.noticed_ms.values()))),
            "returned": asdict(spread(list(self.returned_ms.values()))),
            "survivors_ms": self.times_ms,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """What a member costs while nothing happens: medians over members, traffic as their mean.

    None: this contestant does not say.
    """

    seconds: float
    cpu_pct: float
    rss_mib: float
    pss_mib: float
    packets_s: float | None = None
    udp_bytes_s: float | None = None
    tcp_frames_s: float | None = None
    tcp_bytes_s: float | None = None
    blame: Blame = Blame()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape."""
        parts = asdict(self)
        blame = parts.pop("blame")
        known = [value for value in (self.udp_bytes_s, self.tcp_bytes_s) if value is not None]
        return {
            "packets_s": parts.pop("packets_s"),
            "bytes_s": round(sum(known), 1) if known else None,
            **parts,
            "false_accusations": blame["false_accusations"],
            "suspicions": blame["suspicions"],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """How the members found each other at the start."""

    nodes: int
    converged_ms: float
    """From the last socket bound until every member held every other alive; 0 if that bind was seen later."""

    took_ms: float
    """The same from the first start of a process: mostly the processes' own start."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape."""
        return asdict(self)


@dataclass(slots=True, kw_only=True)
class Record:
    """Everything about one contestant. `failure` says why it did not come to the end."""

    name: str
    about: str
    join: Join | None = None
    idle: Idle | None = None
    rounds: list[Round] = field(default_factory=list)
    failure: str = ""

    def of_fault(self, fault: str) -> list[Round]:
        """Return the rounds of one fault."""
        return [one for one in self.rounds if one.fault == fault]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape."""
        return {
            "about": self.about,
            "rounds": [one.to_json() for one in self.rounds],
            "idle": self.idle.to_json() if self.idle else None,
            "join": self.join.to_json() if self.join else None,
            "failure": self.failure,
        }


def to_json(settings: Mapping[str, Any], records: Sequence[Record]) -> dict[str, Any]:
    """Return the whole result; the first record is Mesh's own, the others are its peers'."""
    ours, *peers = records
    return {
        "settings": dict(settings),
        **ours.to_json(),
        "peers": {record.name: record.to_json() for record in peers},
    }
