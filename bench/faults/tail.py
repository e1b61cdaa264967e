"""What the tasks' log says so far: which runs have started, and which of them go on at which node.

The log is read as it grows. A run is named by its own line's `run`; its node, by the process that started it.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Start(NamedTuple):
    """A run, as its first line tells of it."""

    at_ns: int
    task: str
    attempt: str
    token: str
    run: str
    node_pid: int
    """The process that started it: the node, for nodes start their tasks themselves."""


class Tail:
    """Follows a log that recorders write."""

    def __init__(self, log: Path) -> None:
        self.starts: list[Start] = []
        self.ended: set[str] = set()
        """The runs that came to an end of their own; one that was killed is never among them."""

        self.done: set[str] = set()
        """The tasks of which a run came to a good end."""

        self._log = log
        self._offset = 0

    def read(self) -> None:
        """Take what was written since."""
        for line in self._lines():
            if line["kind"] == "start":
                pid = int(line["node"].removeprefix("pid "))
                names = (line["task"], line["attempt"], line["token"], line["run"])
                self.starts.append(Start(line["at_ns"], *names, pid))
            elif line["kind"] in {"end", "failed"}:
                self.ended.add(line["run"])
                if line["kind"] == "end":
                    self.done.add(line["task"])

    def busy_pids(self, tasks: Container[str] | None = None) -> set[int]:
        """Return the nodes that have started what has not ended, of these tasks; some may be dead. O(runs)."""
        return {
            start.node_pid
            for start in self.starts
            if start.run not in self.ended and (tasks is None or start.task in tasks)
        }

    def starts_of(self, task: str) -> list[Start]:
        """Return a task's runs in the order of the log."""
        return [start for start in self.starts if start.task == task]

    def _lines(self) -> Iterator[dict[str, Any]]:
        if not self._log.exists():
            return
        with self._log.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        yield from map(json.loads, whole.splitlines())
