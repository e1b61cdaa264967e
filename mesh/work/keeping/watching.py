"""Who follows tasks' output, and whether they keep up.

A watcher that has something to take and takes nothing for `watcher_stall_s` holds a command up for
nobody: it is dropped, and told so when it comes back.
"""

from __future__ import annotations

from collections.abc import Iterable

from mesh.core.effects import TaskChanged
from mesh.core.timers import Timers
from mesh.work.config import WorkConfig
from mesh.work.keeping.output import OutputStore
from mesh.work.post import Step


class Watching:
    """All watchers, at most `watchers_max`."""

    def __init__(self, output: OutputStore, config: WorkConfig) -> None:
        self._output = output
        self._config = config
        self._stalls: Timers[int] = Timers()  # watchers that have something to take

    def refusal(self) -> str:
        """Return why one more watcher cannot come, or ""."""
        if len(self._output.watchers) < self._config.watchers_max:
            return ""
        return f"at most {self._config.watchers_max} clients may follow tasks of one node"

    def watch(self, now: float, watcher_id: int, task_id: str) -> None:
        """Let a watcher follow a task from the first piece that is still held."""
        self._output.watch(watcher_id, task_id)
        self._stalls.set(watcher_id, now + self._config.watcher_stall_s)

    def unwatch(self, watcher_id: int) -> None:
        """Forget a watcher; nothing happens if there is none."""
        self._output.unwatch(watcher_id)
        self._stalls.cancel(watcher_id)

    def note_piece(self, now: float, watcher_ids: Iterable[int]) -> None:
        """Note that these, who had taken everything, have something to take again."""
        for watcher_id in watcher_ids:
            self._stalls.set(watcher_id, now + self._config.watcher_stall_s)

    def take(self, watcher_id: int) -> tuple[list[tuple[int, bytes]], str | None, str]:
        """Return what the watcher has not taken, its task's id, and why it was dropped ("" if it was not)."""
        watcher = self._output.watchers.get(watcher_id)
        if watcher is None:
            return [], None, "this watcher is not known, or its task was forgotten"
        self._stalls.cancel(watcher_id)
        return self._output.take(watcher), watcher.task_id, watcher.error

    def handle_timeout(self, now: float) -> list[Step]:
        """Drop those that took nothing."""
        steps: list[Step] = []
        for watcher_id in self._stalls.take_due(now):
            watcher = self._output.watchers.get(watcher_id)
            if watcher is not None:
                error = f"nothing was taken for {self._config.watcher_stall_s:.0f} s"
                self._output.drop_watcher(watcher_id, error)
                steps.append(TaskChanged(watcher.task_id))
        return steps

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do."""
        return self._stalls.next_deadline()
