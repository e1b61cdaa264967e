"""How busy the processors are: read from the kernel's counters, smoothed, and none where there are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mesh.runtime.busy import SMOOTHED_S, Processors

MINE = sorted(os.sched_getaffinity(0))


def write(path: Path, busy: int, idle: int) -> None:
    """Write counters of this process's processors, and of others that are all busy."""
    rows = [f"cpu{number} {busy} 0 0 {idle} 0 0 0 0 7 7" for number in MINE]
    others = [f"cpu{max(MINE) + 1} {10 * busy} 0 0 0 0 0 0 0 0 0"]
    path.write_text("\n".join(["cpu 1 2 3 4 5 6 7 8", *rows, *others, "intr 5", "ctxt 3"]))


def test_the_share_of_its_own_processors_that_was_busy_since_the_call_before(
    tmp_path: Path,
) -> None:
    stat = tmp_path / "stat"
    processors = Processors(stat)
    write(stat, 100, 100)
    assert processors.busy_pct(0.0) is None
    write(stat, 130, 170)
    assert processors.busy_pct(1.0) == 30


def test_it_follows_a_change_within_some_seconds(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    processors = Processors(stat)
    write(stat, 0, 0 + 1)
    processors.busy_pct(0.0)
    write(stat, 0, 101)
    assert processors.busy_pct(1.0) == 0
    write(stat, 100, 101)
    assert processors.busy_pct(1.0 + SMOOTHED_S) == pytest.approx(63, abs=1)
    assert processors.busy_pct(1.1 + SMOOTHED_S) == pytest.approx(63, abs=1), "no tick has passed"


@pytest.mark.parametrize("text", ["", "cpu", "cpu0 x y", "cpu0 1 2", "\0\0", "intr 5"])
def test_where_the_kernel_tells_nothing_nothing_is_known(tmp_path: Path, text: str) -> None:
    stat = tmp_path / "stat"
    assert Processors(stat).busy_pct(0.0) is None
    stat.write_text(text)
    assert Processors(stat).busy_pct(0.0) is None


def test_this_host_tells_or_says_that_it_does_not() -> None:
    processors = Processors()
    processors.busy_pct(0.0)
    for _ in range(3_000_000):
        pass
    found = processors.busy_pct(1.0)
    assert found is None or 0 <= found <= 100
