"""What members cost while nothing happens, read from the kernel (Linux) and from their own counters.

What a member costs is what its process costs and, of Mesh, that of its guardian.
PSS is the memory that would be freed if the process ended: shared pages divided by who shares them.
All contestants are read over the same time, so that a busy host is equally busy for all.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mesh.bench.contestant import Contestant, Traffic
from mesh.bench.faults import blame_of
from mesh.bench.records import Idle

SLICE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Usage:
    """A process's processor time so far, and its memory now."""

    cpu_ns: int
    rss_mib: float
    pss_mib: float


def usage(pid: int) -> Usage:
    """Read what a process uses, all its threads together."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    cpu_ns = sum(int(path.read_text().split()[0]) for path in threads)
    rollup = memory_of(Path(f"/proc/{pid}/smaps_rollup").read_text())
    return Usage(cpu_ns, rollup["Rss"], rollup["Pss"])


def sum_usage(pids: Iterable[int]) -> Usage:
    """Read what these processes use together: a node and its guardian."""
    parts = [usage(pid) for pid in set(pids)]
    return Usage(
        sum(part.cpu_ns for part in parts),
        sum(part.rss_mib for part in parts),
        sum(part.pss_mib for part in parts),
    )


def _usages(contestant: Contestant) -> list[Usage]:
    return [
        sum_usage((contestant.pid(member), contestant.pids[member]))
        for member in contestant.members
    ]


def memory_of(rollup: str) -> dict[str, float]:
    """Return the sizes in a /proc/PID/smaps_rollup, in MiB."""
    pairs = (line.split(":", 1) for line in rollup.splitlines()[1:])
    return {key: int(value.split()[0]) / 1024 for key, value in pairs}


def cpu_pct(before: Usage, after: Usage, took_s: float) -> float:
    """Return the share of one core between two readings, in per cent."""
    return 100 * (after.cpu_ns - before.cpu_ns) / (took_s * 1e9)


def measure_idle(
    contestants: Sequence[Contestant], seconds: float, tick: Callable[[float], None]
) -> dict[str, Idle]:
    """Measure all contestants over `seconds`; `tick` is told how many have passed."""
    begin_ns = time.time_ns()
    for one in contestants:
        one.begin_traffic()
    start_s = time.monotonic()
    before = {one.name: _usages(one) for one in contestants}
    while (passed_s := time.monotonic() - start_s) < seconds:
        tick(passed_s)
        time.sleep(min(SLICE_S, seconds - passed_s))
    took_s = time.monotonic() - start_s
    after = {one.name: _usages(one) for one in contestants}
    found = {}
    for one in contestants:
        pairs = zip(before[one.name], after[one.name], strict=True)
        shares = [cpu_pct(first, last, took_s) for first, last in pairs]
        traffic = one.end_traffic()
        found[one.name] = Idle(
            seconds=round(took_s, 1),
            cpu_pct=round(statistics.median(shares), 3),
            rss_mib=round(statistics.median(each.rss_mib for each in after[one.name]), 1),
            pss_mib=round(statistics.median(each.pss_mib for each in after[one.name]), 1),
            packets_s=mean_of(traffic, lambda each: each.packets_s),
            udp_bytes_s=mean_of(traffic, lambda each: each.udp_bytes_s),
            tcp_frames_s=mean_of(traffic, lambda each: each.tcp_frames_s),
            tcp_bytes_s=mean_of(traffic, lambda each: each.tcp_bytes_s),
            blame=blame_of(one.log.since(begin_ns), ""),
        )
    return found


def mean_of(traffic: Sequence[Traffic], part: Callable[[Traffic], float | None]) -> float | None:
    """Return the mean of one rate over the members that tell it; None if none does."""
    known = [value for each in traffic if (value := part(each)) is not None]
    return round(statistics.fmean(known), 3) if known else None
