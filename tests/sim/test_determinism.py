"""One seed, one run: in two processes whose string hashes differ, to the last record."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mesh.sim.trace import first_difference

SCRIPT = """
import sys
from mesh.sim.scenario import run, run_sim
from tests.sim.guarantees.world import GuaranteesWorld
with open(sys.argv[2], "w", encoding="utf-8") as sink:
    if sys.argv[1] == "mixed":
        result = run(11, sink=sink)
    elif sys.argv[1] == "guarantees":
        result = GuaranteesWorld(11, sink=sink).run()
    else:
        result = run_sim(16, sys.argv[1], 11, profile="local", sink=sink)
print(result.trace_hash)
"""


@pytest.mark.parametrize("scenario", ["mixed", "crash", "guarantees"])
def test_one_seed_gives_one_trace_in_two_processes(scenario: str, tmp_path: Path) -> None:
    hashes, traces = [], []
    for hash_seed in ("1", "2"):
        trace = tmp_path / f"trace-{hash_seed}"
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, scenario, str(trace)],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        hashes.append(done.stdout.strip())
        traces.append(trace)
    with traces[0].open(encoding="utf-8") as one, traces[1].open(encoding="utf-8") as other:
        difference = first_difference(one, other)
    assert difference is None, str(difference)
    assert hashes[0] == hashes[1]
    assert len(hashes[0]) == 32
    assert traces[0].stat().st_size > 10_000
