"""A curve's points as values, with their JSON shape and their table."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self

from mesh.bench.pauses import Pause
from mesh.bench.records import Round, Spread
from mesh.bench.report import table
from mesh.bench.sightings import Sight, Sighting

_MEANINGS: Final = {
    "setting": "Mesh's pause tolerance, or the multiplier of memberlist's suspicion",
    "first": "a lost host: the first other's report, in seconds, the median of the rounds",
    "last": "the last other's",
    "pauses": "times that a member stood still for a while",
    "accused": "pauses for which somebody held the member dead",
    "per hour": "such pauses in an hour of one slow member",
    "verdicts": "all dead verdicts of all members in that time",
    "healthy": "members held dead that never stood still",
    "missing": "reports of the lost host that never came",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One contestant with one setting. `failure` says why it did not come to the end.

    Attributes:
        setting: as people read it; "" for a peer as it comes.
        pauses: how often a slow member stood still.
        accused: for how many of those it was held dead by anybody.
        healthy_accused: members that never stood still and were held dead.
        verdicts: dead verdicts in all, each observer's own.
    """

    name: str
    setting: str
    about: str = ""
    member_hours: float = 0.0
    pauses: int = 0
    accused: int = 0
    healthy_accused: int = 0
    verdicts: int = 0
    rounds: tuple[Round, ...] = ()
    failure: str = ""

    def slowed(
        self,
        *,
        slow: Collection[str],
        seconds: float,
        pauses: Sequence[Pause],
        accused: Collection[tuple[str, float]],
        seen: Sequence[Sighting],
    ) -> Self:
        """Return the point with what became of its slow members."""
        hit = sum(member in slow and start > 0 for member, start in accused)
        return replace(
            self,
            member_hours=len(slow) * seconds / 3600,
            pauses=len(pauses),
            accused=hit,
            healthy_accused=len(accused) - hit,
            verdicts=sum(one.sight is Sight.DEAD for one in seen),
        )

    @property
    def accused_per_hour(self) -> float | None:
        """False accusations in an hour of one slow member; None if none was slow."""
        return self.accused / self.member_hours if self.member_hours else None

    @property
    def missing(self) -> int:
        """How many reports of the lost never came."""
        return sum(len(one.missing) for one in self.rounds)

    @property
    def noticed(self) -> Spread:
        """The medians over the rounds of the first, the median and the last report."""
        return Spread(
            first_ms=_middle([min(one.times_ms) for one in self.rounds if one.times_ms]),
            median_ms=_middle(
                [statistics.median(one.times_ms) for one in self.rounds if one.times_ms]
            ),
            last_ms=_middle([max(one.times_ms) for one in self.rounds if one.times_ms]),
        )

    @property
    def slow_line(self) -> str:
        """What became of the slow members, as one line."""
        text = f"held dead for {self.accused} of {self.pauses} pauses"
        if self.healthy_accused:
            text += f"  HEALTHY MEMBERS HELD DEAD {self.healthy_accused}"
        return f"{text}  verdicts {self.verdicts}"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape."""
        hourly = self.accused_per_hour
        return {
            "contestant": self.name,
            "setting": self.setting,
            "about": self.about,
            "detection": asdict(self.noticed),
            "missing": self.missing,
            "member_hours": round(self.member_hours, 5),
            "pauses": self.pauses,
            "accused": self.accused,
            "accused_per_member_hour": None if hourly is None else round(hourly, 2),
            "healthy_accused": self.healthy_accused,
            "verdicts": self.verdicts,
            "rounds": [one.to_json() for one in self.rounds],
            "failure": self.failure,
        }


def curve_json(settings: Mapping[str, Any], points: Sequence[Point]) -> dict[str, Any]:
    """Return the whole result."""
    return {"settings": dict(settings), "curve": [point.to_json() for point in points]}


def curve_text(points: Sequence[Point]) -> str:
    """Return the table, and why a point is missing, as people read them."""
    rows = [
        (
            point.name,
            point.setting or "its own",
            _seconds(point.noticed.first_ms),
            _seconds(point.noticed.last_ms),
            str(point.pauses),
            str(point.accused),
            "-" if point.accused_per_hour is None else f"{point.accused_per_hour:.0f}",
            str(point.verdicts),
            str(point.healthy_accused),
            str(point.missing) if point.rounds else "-",
        )
        for point in points
    ]
    text = table(("curve", *_MEANINGS), rows, _MEANINGS)
    failed = [
        f"{point.name} {point.setting}  FAILED: {point.failure}"
        for point in points
        if point.failure
    ]
    return "\n\n".join(part for part in (text, "\n".join(failed)) if part)


def _middle(values: Sequence[float]) -> float | None:
    return round(statistics.median(values), 1) if values else None


def _seconds(time_ms: float | None) -> str:
    return "-" if time_ms is None else f"{time_ms / 1000:.2f}"
