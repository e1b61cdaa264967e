"""What an idle node costs: processor time, memory and datagrams, for each of N headless nodes.

    python bench/idle.py --nodes 16 --profile lan --seconds 60 [--key]

With --key the mesh has a key, made for this run, and seals all that it sends.

What a node costs is what its process and its guardian's cost together.
PSS is the memory that would be freed if the process ended, shared pages divided by who shares them.
Linux only: the figures come from /proc.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from mesh.bench.idle import Usage, cpu_pct, sum_usage
from mesh.fleet.fleet import Fleet, NodeProcess

SETTLE_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleFigures:
    """One node's cost over the time that was measured."""

    name: str
    cpu_pct: float  # of one core
    pss_mib: float
    rss_mib: float
    datagrams_s: float
    bytes_s: float
    frames_s: float


@dataclass(frozen=True, slots=True)
class _Reading:
    at_s: float
    usage: Usage
    sent: dict[str, int]


def measure(fleet: Fleet, seconds: float) -> list[IdleFigures]:
    """Return each running node's figures over `seconds`."""
    nodes = fleet.running()
    before = [_read(node) for node in nodes]
    time.sleep(seconds)
    after = [_read(node) for node in nodes]
    return [_figures(*readings) for readings in zip(nodes, before, after, strict=True)]


def start_fleet(fleet: Fleet, count: int, *, has_key: bool = False) -> None:
    """Start `count` nodes, wait until all see each other, and let the news of it die away."""
    options = ("--key", str(_new_key(fleet.home / "mesh.key"))) if has_key else ()
    fleet.start("n1", *options)
    for number in range(2, count + 1):
        fleet.launch(f"n{number}", *options, fleet.seed)
    for node in fleet.nodes.values():
        node.wait_ready(60.0)
    fleet.wait_whole(60.0)
    time.sleep(SETTLE_S)


def _new_key(path: Path) -> Path:
    command = [sys.executable, "-m", "mesh", "keygen", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path


def _read(node: NodeProcess) -> _Reading:
    sent = node.call("status")["sent"]
    return _Reading(time.monotonic(), sum_usage((node.pid, node.outer_pid)), sent)


def _figures(node: NodeProcess, before: _Reading, after: _Reading) -> IdleFigures:
    took_s = after.at_s - before.at_s
    rate = {key: (after.sent[key] - before.sent[key]) / took_s for key in after.sent}
    return IdleFigures(
        name=node.name,
        cpu_pct=round(cpu_pct(before.usage, after.usage, took_s), 3),
        pss_mib=round(after.usage.pss_mib, 1),
        rss_mib=round(after.usage.rss_mib, 1),
        datagrams_s=round(rate["datagrams"], 2),
        bytes_s=round(rate["datagram_bytes"] + rate["frame_bytes"], 1),
        frames_s=round(rate["frames"], 3),
    )


def to_text(rows: list[IdleFigures]) -> str:
    """Return median and maximum of each figure."""
    names = ("cpu_pct", "pss_mib", "rss_mib", "datagrams_s", "bytes_s", "frames_s")
    lines = [f"{'figure':<12}  {'median':>8}  {'most':>8}"]
    for name in names:
        values = [float(getattr(row, name)) for row in rows]
        lines.append(f"{name:<12}  {statistics.median(values):8.2f}  {max(values):8.2f}")
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--profile", default="lan")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--key", action="store_true", help="seal all that is sent")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with Fleet(options.profile) as fleet:
        start_fleet(fleet, options.nodes, has_key=options.key)
        rows = measure(fleet, options.seconds)
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        print(
            f"{options.nodes} {'sealed ' * options.key}nodes, profile {options.profile}, {options.seconds:g} s"
        )
        print(to_text(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
