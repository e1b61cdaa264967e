"""What `mesh bench tasks` has measured: a JSON shape that programs may rely on, and a table for people.

Rates are tasks a second; times are milliseconds unless their name says seconds. What was never reached is null.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mesh.bench.ledger import percentile
from mesh.bench.records import Blame


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """How many tasks a second, whatever the names end in, and over how many `seconds`."""

    enqueued_s: float
    """Acknowledged a second, by one client in batches at one node, while the nodes run them."""

    end_to_end_s: float
    """Ended a second, from the first submission to the last end."""

    deferred_s: float | None = None
    """Acknowledged a second, in the same way, of tasks that are due later: nothing runs meanwhile."""

    drained_s: float | None = None
    """Ended a second of those, from the moment at which they all are due."""

    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Some times in milliseconds."""

    median_ms: float | None = None
    p99_ms: float | None = None
    worst_ms: float | None = None


def times_of(times_ms: Sequence[float]) -> Times:
    """Return the middle and the end of some times."""
    if not times_ms:
        return Times()
    p99 = percentile(times_ms, 0.99)
    return Times(
        median_ms=round(statistics.median(times_ms), 2),
        p99_ms=None if p99 is None else round(p99, 2),
        worst_ms=round(max(times_ms), 2),
    )


@dataclass(slots=True, kw_only=True)
class TaskFigures:
    """All of it; a part that was not come to is None."""

    about: str = ""
    throughput: Throughput | None = None
    acknowledged: Times = Times()
    """Submitted singly: until the answer."""

    pickup: Times = Times()
    """Submitted singly: until the command's process has begun, its own start included."""

    command: Times = Times()
    """How long the command's own start takes, started without a mesh."""

    status: Times = Times()
    """A status asked of a busy node: how late its event loop is, and what the answer costs."""

    loop_late_ms: float | None = None
    """How late a busy node met its latest 1,000 deadlines: the 99th percentile, of the node where it is worst."""

    status_deferring: Times = Times()
    """The same, while tasks are handed in that are due later."""

    cpu_ms: float | None = None
    """Processor time for each task in batches: of all nodes and guardians together, without the commands' own."""

    recovery_s: float | None = None
    recoveries_s: Sequence[float] = ()
    blame: Blame = field(default_factory=Blame)
    failure: str = ""

    def to_json(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON shape."""
        return {
            "settings": dict(settings),
            "about": self.about,
            "throughput": None if self.throughput is None else asdict(self.throughput),
            "pickup": asdict(self.pickup),
            "acknowledged": asdict(self.acknowledged),
            "command": asdict(self.command),
            "status": asdict(self.status),
            "loop_late_ms": self.loop_late_ms,
            "status_deferring": asdict(self.status_deferring),
            "cpu_ms": self.cpu_ms,
            "recovery_s": self.recovery_s,
            "recoveries_s": list(self.recoveries_s),
            "suspicions": self.blame.suspicions,
            "false_accusations": self.blame.false_accusations,
            "failure": self.failure,
            "peers": {},
        }

    def text(self) -> str:
        """Return it for people."""
        rows = [("", self.about)]
        if self.throughput is not None:
            found = self.throughput
            rows += [
                (name, f"{rate:.0f} tasks/s{how}")
                for name, rate, how in (
                    ("acknowledged", found.enqueued_s, ", in batches, while they run"),
                    ("of those due later", found.deferred_s, ", while nothing runs"),
                    ("end to end", found.end_to_end_s, ""),
                    ("drained", found.drained_s, ""),
                )
                if rate is not None
            ]
        rows += [
            (name, _times_text(times))
            for name, times in (
                ("submitted singly", self.acknowledged),
                ("picked up", self.pickup),
                ("of that the command", self.command),
                ("status, they run", self.status),
                ("status, none runs", self.status_deferring),
            )
            if times.median_ms is not None
        ]
        if self.loop_late_ms is not None:
            rows.append(("deadlines met late", f"99 of 100 within {self.loop_late_ms:.1f} ms"))
        if self.cpu_ms is not None:
            rows.append(("processor", f"{self.cpu_ms:.1f} ms a task, of all nodes together"))
        if self.recovery_s is not None:
            worst = max(self.recoveries_s)
            count = len(self.recoveries_s)
            rows.append(
                ("recovered", f"median {self.recovery_s:.3f} s, worst {worst:.3f} s of {count}")
            )
        blame = f"{self.blame.suspicions} suspicions, {self.blame.false_accusations} dead verdicts"
        rows.append(("of the living", blame))
        if self.failure:
            rows.append(("FAILED", self.failure))
        return "\n".join(f"{name:<20}  {text}" for name, text in rows)


def _times_text(times: Times) -> str:
    return f"median {times.median_ms} ms, p99 {times.p99_ms} ms, worst {times.worst_ms} ms"
