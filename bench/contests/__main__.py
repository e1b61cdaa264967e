"""Measure with real nodes what contests and queues promise.

    python -m bench.contests --json FILE                 # from the repository's root; profile local; six minutes
    python -m bench.contests --only makespan,declined --scale 0.2

Each experiment has the machine to itself, says what was asked and what was found, and leaves nothing behind. Exit code
0: all holds; 1: something does not, or failed; 2: wrong usage. Linux.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bench.contests import busy, declined, dedicated, emergency, makespan, steward
from bench.contests.finding import Finding, table
from mesh.bench.progress import Progress, open_progress
from mesh.errors import MeshError
from mesh.fleet.clearing import signals_as_exits

EXPERIMENTS: Final[dict[str, Callable[[float, Progress], list[Finding]]]] = {
    "makespan": makespan.play,
    "busy": busy.play,
    "dedicated": dedicated.play,
    "emergency": emergency.play,
    "steward": steward.play,
    "declined": declined.play,
}


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.contests", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", metavar="NAME,…", help=f"of {', '.join(EXPERIMENTS)}")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="how many tasks and rounds, beside the usual"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    wanted = parser.parse_args(arguments)
    wanted.names = list(EXPERIMENTS) if wanted.only is None else wanted.only.split(",")
    if unknown := [name for name in wanted.names if name not in EXPERIMENTS]:
        parser.error(
            f"no experiment is called {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}"
        )
    if not 0 < wanted.scale <= 100:
        parser.error(f"a scale above 0 and up to 100 is expected, found {wanted.scale:g}")
    return wanted


def main(arguments: list[str]) -> int:
    """Measure, print, write."""
    wanted = parse(arguments)
    findings: list[Finding] = []
    failures: dict[str, str] = {}
    seconds: dict[str, float] = {}
    with signals_as_exits(), open_progress(len(wanted.names)) as progress:
        for name in wanted.names:
            began = time.monotonic()
            try:
                findings += EXPERIMENTS[name](wanted.scale, progress)
            except Exception as error:  # noqa: BLE001 - the findings of the others are worth having
                if not isinstance(error, MeshError):
                    traceback.print_exc()
                failures[name] = f"{type(error).__name__}: {error}"
                progress.say(f"{name} FAILED: {failures[name]}")
            seconds[name] = round(time.monotonic() - began, 1)
            progress.advance()
    print(table(findings))
    print(f"seconds: {', '.join(f'{name} {took:.0f}' for name, took in seconds.items())}")
    for name, text in failures.items():
        print(f"{name} FAILED: {text}")
    if wanted.json is not None:
        result: dict[str, Any] = {
            "settings": {"scale": wanted.scale},
            "seconds": seconds,
            "findings": [one.to_json() for one in findings],
            "failures": failures,
        }
        wanted.json.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if failures or not all(one.holds for one in findings) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
