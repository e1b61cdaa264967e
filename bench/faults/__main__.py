"""Play faults on real nodes that run real tasks, and let an independent checker judge.

    python -m bench.faults kill_node stop_owner --tasks 2000 --json FILE      # from the repository's root
    python -m bench.faults --all

Each fault prints one line. Exit code 0: no violation; 1: some; 2: wrong usage. Linux; faults of the network, and
of the disk, need root.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench.faults.acts import FAULTS
from bench.faults.scene import Fault, Size, run
from bench.faults.verdict import Verdict
from mesh.bench.namespaces import why_not
from mesh.errors import MeshError
from mesh.fleet.clearing import signals_as_exits

APART_NODES = 5
DEFAULT = Size()


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.faults", description=__doc__.splitlines()[0]
    )
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=", ".join(FAULTS))
    parser.add_argument("--all", action="store_true", help="every fault that can be played here")
    parser.add_argument(
        "--nodes", type=int, default=8, help=f"but {APART_NODES} on hosts of their own"
    )
    parser.add_argument("--tasks", type=int, default=DEFAULT.tasks)
    parser.add_argument("--slots", type=int, default=DEFAULT.slots)
    parser.add_argument(
        "--times", type=int, default=DEFAULT.times, help="how often a fault is applied"
    )
    parser.add_argument("--submit-for", type=float, default=DEFAULT.submit_for_s, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=1, help="draws victims")
    parser.add_argument("--json", type=Path, metavar="FILE")
    wanted = parser.parse_args(arguments)
    if unknown := [name for name in wanted.faults if name not in FAULTS]:
        parser.error(f"no fault is called {', '.join(unknown)}; there are {', '.join(FAULTS)}")
    if not wanted.faults and not wanted.all:
        parser.error("name faults, or --all")
    return wanted


def missing(fault: Fault) -> str:
    """Say why a fault cannot be played here; "" if it can."""
    if fault.is_apart:
        return why_not()
    return "only root may mount" if fault.needs_root and os.geteuid() != 0 else ""


def main(arguments: list[str]) -> int:
    """Play, print, write."""
    wanted = parse(arguments)
    size = Size(
        nodes=wanted.nodes,
        tasks=wanted.tasks,
        slots=wanted.slots,
        times=wanted.times,
        submit_for_s=wanted.submit_for,
    )
    failures: dict[str, str] = {}
    verdicts: list[Verdict] = []
    with signals_as_exits():
        for name in FAULTS if wanted.all else wanted.faults:
            fault = FAULTS[name]
            if reason := missing(fault):
                print(f"{name}: left out: {reason}", flush=True)
                continue
            apart = replace(size, nodes=min(size.nodes, APART_NODES))
            try:
                verdict = run(fault, apart if fault.is_apart else size, wanted.seed, print)
            except MeshError as error:
                failures[name] = str(error)
                print(f"{name:<16} FAILED: {error}", flush=True)
                continue
            verdicts.append(verdict)
            print(verdict.line(), flush=True)
    if wanted.json is not None:
        result: dict[str, Any] = {
            "settings": {**asdict(size), "seed": wanted.seed},
            "faults": [verdict.to_json() for verdict in verdicts],
            "failures": failures,
        }
        wanted.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if not failures and all(verdict.is_good for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
