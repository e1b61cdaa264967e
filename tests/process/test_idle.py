"""What an idle node costs, as `bench/idle.py` measures it."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "idle.py"
CPU_PCT_MAX = 0.5
PSS_MIB_MAX = 30.0
DATAGRAMS_S_MAX = 3.0


def measure(nodes: int, seconds: float) -> dict[str, list[float]]:
    found = subprocess.run(
        [sys.executable, str(BENCH), "--json", "--nodes", str(nodes), "--seconds", str(seconds)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds + 120.0,
        check=True,
    )
    rows = json.loads(found.stdout)
    assert len(rows) == nodes
    figures = {key: [row[key] for row in rows] for key in rows[0] if key != "name"}
    for name, values in figures.items():
        print(f"{name}: median {statistics.median(values):.2f}, most {max(values):.2f}")
    return figures


def test_eight_idle_nodes_send_little_and_stay_small() -> None:
    figures = measure(8, 6.0)
    assert max(figures["datagrams_s"]) < DATAGRAMS_S_MAX
    assert statistics.median(figures["pss_mib"]) < PSS_MIB_MAX
    # Generous here: on a busy machine every wake-up costs more. The sweep holds the real bound.
    assert statistics.median(figures["cpu_pct"]) < 4 * CPU_PCT_MAX


@pytest.mark.sweep
def test_sixteen_idle_nodes_keep_to_the_bounds() -> None:
    figures = measure(16, 60.0)
    assert max(figures["datagrams_s"]) < DATAGRAMS_S_MAX
    assert max(figures["pss_mib"]) < PSS_MIB_MAX
    assert statistics.median(figures["cpu_pct"]) < CPU_PCT_MAX
