"""Commands that write down when they start, and where: what a benchmark of tasks is measured by.

A line is the task's id, CLOCK_BOOTTIME in ns, and the process that started the command, which is the node. It
is one write to a file opened to append, so lines of many commands do not mix.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from mesh.bench.contestant import BenchError
from mesh.fleet.clearing import wait_until

_PROGRAM: Final = """\
import os, sys, time
at_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
file = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
os.write(file, b"%s %d %d\\n" % (os.environb[b"MESH_TASK_ID"], at_ns, os.getppid()))
time.sleep(float(sys.argv[2]))
"""


def now_ns() -> int:
    """Return the time on the clock of the ledger."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Entry(NamedTuple):
    """One start of a command."""

    task: str
    at_ns: int
    node_pid: int


class Ledger:
    """A file in which commands write their starts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: list[Entry] = []
        self._offset = 0

    def argv(self, hold_s: float = 0.0) -> list[str]:
        """Return a command that writes down its start and ends after `hold_s`."""
        return [sys.executable, "-I", "-S", "-c", _PROGRAM, str(self._path), str(hold_s)]

    def of(self, task: str) -> list[Entry]:
        """Return a task's starts up to now, in the order in which they were written."""
        self._read()
        return [entry for entry in self._entries if entry.task == task]

    def wait(self, task: str, count: int, timeout_s: float) -> Entry:
        """Wait for a task's start number `count`, from 1, and return it.

        Raises:
            BenchError: it did not start so often in time.
        """

        def find() -> Entry | None:
            found = self.of(task)
            return found[count - 1] if len(found) >= count else None

        text = f"task {task} should have started {count} times within {timeout_s:g} s"
        return wait_until(
            find, timeout_s, lambda: BenchError(f"mesh: {text}, found {len(self.of(task))}")
        )

    def alone_ms(self, count: int) -> list[float]:
        """Return how long the command itself takes from its start to its line, without any node."""
        found = []
        for number in range(count):
            task = f"alone-{number}"
            began_ns = now_ns()
            subprocess.run(self.argv(), env={"MESH_TASK_ID": task}, check=True)
            found.append((self.of(task)[0].at_ns - began_ns) / 1e6)
        return found

    def _read(self) -> None:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.decode().splitlines():
            task, at_ns, pid = line.split()
            self._entries.append(Entry(task, int(at_ns), int(pid)))


def percentile(times: Sequence[float], share: float) -> float | None:
    """Return the value that this share of some values does not exceed; None of none."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
