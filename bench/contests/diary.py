"""Commands that write down when they begin and end, and at which node: what these experiments are measured by.

A command is a shell, which is there within a millisecond or two where a Python takes seven. A line is `begin` or
`end`, the task's id, Unix time in ns, and the process that started the command, which is the node. It is one write
to a file opened to append, so lines of many commands do not mix.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from mesh.bench.contestant import BenchError
from mesh.fleet.clearing import wait_until

_PROGRAM: Final = """\
echo "begin $MESH_TASK_ID $(date +%s%N) $PPID" >>"$0"
sleep "$1"
echo "end $MESH_TASK_ID $(date +%s%N) $PPID" >>"$0"
"""


def now_ns() -> int:
    """Return the time on the clock of the diary."""
    return time.time_ns()


class Line(NamedTuple):
    """One begin or end of a command."""

    task: str
    at_ns: int
    node_pid: int


class Diary:
    """A file in which commands write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._begins: dict[str, list[Line]] = {}
        self._ends: dict[str, list[Line]] = {}

    def argv(self, hold_s: float = 0.0) -> list[str]:
        """Return a command that writes down its begin, holds its slot for so long, and writes down its end."""
        return ["/bin/sh", "-c", _PROGRAM, str(self._path), f"{hold_s:.3f}"]

    def begins(self, task: str) -> list[Line]:
        """Return a task's begins as last read, in the order in which they were written."""
        return self._begins.get(task, [])

    def ends(self, task: str) -> list[Line]:
        """Return a task's ends as last read."""
        return self._ends.get(task, [])

    def read(self) -> None:
        """Read what was written since."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for text in whole.decode().splitlines():
            what, task, at_ns, pid = text.split()
            where = self._begins if what == "begin" else self._ends
            where.setdefault(task, []).append(Line(task, int(at_ns), int(pid)))

    def wait_begun(self, tasks: Sequence[str], timeout_s: float) -> list[Line]:
        """Wait until each of these has begun; return the first begin of each.

        Raises:
            BenchError: some did not in time.
        """
        self._wait(tasks, self.begins, "begun", timeout_s)
        return [self.begins(task)[0] for task in tasks]

    def wait_ended(self, tasks: Sequence[str], timeout_s: float) -> list[Line]:
        """Wait until each of these has ended; return the first end of each.

        Raises:
            BenchError: some did not in time.
        """
        self._wait(tasks, self.ends, "ended", timeout_s)
        return [self.ends(task)[0] for task in tasks]

    def _wait(
        self, tasks: Sequence[str], of: Callable[[str], list[Line]], what: str, timeout_s: float
    ) -> None:
        left = list(tasks)

        def look() -> bool | None:
            self.read()
            left[:] = [task for task in left if not of(task)]
            return None if left else True

        text = f"{len(tasks)} tasks should have {what} within {timeout_s:g} s"
        wait_until(look, timeout_s, lambda: BenchError(f"{text}, {len(left)} have not: {left[:3]}"))
