"""Tasks as people and programs see them: JSON-ready dictionaries with stable keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from mesh.placement.live_view import LiveView
from mesh.wire.records import Card
from mesh.work.config import WorkConfig
from mesh.work.keeping.output import STDERR, STDOUT, OutputStore
from mesh.work.keeping.ready_queue import ReadyQueue
from mesh.work.keeping.task import Task, TaskState
from mesh.work.keeping.task_table import TaskTable

SHORT_TAIL_CHARS: Final = 160
SHORT_ARGV_MAX: Final = 32
SHORT_ARGUMENT_CHARS: Final = 256
RANKED_MAX: Final = 50_000
"""Members ranked for one list, all its tasks together: about 0.1 s. Homes beyond that are told as seen last."""


class Show:
    """Makes a task's JSON. A short form, for lists, cuts long arguments and output."""

    def __init__(
        self,
        *,
        card: Callable[[], Card],
        view: LiveView,
        table: TaskTable,
        output: OutputStore,
        queue: ReadyQueue,
        config: WorkConfig,
    ) -> None:
        self._card = card
        self._view = view
        self._table = table
        self._output = output
        self._queue = queue
        self._config = config

    def counts(self) -> dict[str, int]:
        """Return how many tasks are in each state."""
        return {state.value: count for state, count in self._table.counts.items()}

    def task(self, task: Task) -> dict[str, Any]:
        """Return one task's JSON. O(members) when the membership changed since the last time."""
        self._find_home(task)
        return self._json(task, is_short=False)

    def newest(self, count_max: int) -> Iterator[dict[str, Any]]:
        """Yield the newest tasks' short JSON, newest first."""
        left = RANKED_MAX
        for task in self._table.newest(count_max):
            if left >= len(self._view) and self._find_home(task):
                left -= len(self._view)
            yield self._json(task, is_short=True)

    def text(self, task: Task) -> str:
        """Return one task's JSON as text, for the wire."""
        return _text(self.task(task))

    def texts(self, count_max: int, chars_max: int) -> tuple[str, ...]:
        """Return the newest tasks' short JSON as text, as many as fit into `chars_max`."""
        found: list[str] = []
        left = chars_max
        for task in self.newest(count_max):
            text = _text(task)
            left -= len(text)
            if left < 0:
                break
            found.append(text)
        return tuple(found)

    def _json(self, task: Task, *, is_short: bool) -> dict[str, Any]:
        spec, running = task.spec, task.running_attempt
        last = task.attempts[-1] if task.attempts else None
        is_ready = task.state is TaskState.READY
        argv = list(spec.argv)
        if is_short:
            argv = [argument[:SHORT_ARGUMENT_CHARS] for argument in argv[:SHORT_ARGV_MAX]]
        owner = running.name if running else (last.name if last and task.is_terminal else None)
        return {
            "id": spec.task_id,
            "state": task.state.value,
            "queue": spec.queue,
            "kind": "command",
            "argv": argv,
            "key": spec.key,
            "keeper": self._card().name,
            "home": task.home[1],
            "owner": owner,
            "attempt": last.number if last is not None else 0,
            "created": task.created,
            "started": last.started if last is not None else None,
            "ended": task.ended,
            "cause": task.cause.value,
            "cancel_requested": task.is_cancel_requested,
            "waits_for": self._queue.waits_for(task) if is_ready else "",
            "attempts": [attempt.json() for attempt in task.attempts],
            "result": self._result(task, SHORT_TAIL_CHARS if is_short else None),
        }

    def _find_home(self, task: Task) -> bool:
        """Note the task's first candidate, for a finished task as it was seen last; say whether that took a ranking."""
        version = task.home[0]
        if version == self._view.version or (version >= 0 and task.is_terminal):
            return False
        candidates = self._view.candidates(task.wants)
        task.home = self._view.version, candidates[0].name if candidates else None
        return True

    def _result(self, task: Task, tail_chars: int | None) -> dict[str, Any] | None:
        if not task.is_terminal or not task.attempts:
            return None
        last = task.attempts[-1]
        log = self._output.logs.get(task.task_id)
        chars = self._config.tail_chars_max if tail_chars is None else tail_chars
        return {
            "exit_code": last.exit_code,
            "error": last.error,
            "output_bytes": log.output_bytes if log else 0,
            "output_dropped_bytes": log.dropped_bytes if log else 0,
            "stdout_tail": log.tail(STDOUT, chars) if log else "",
            "stderr_tail": log.tail(STDERR, chars) if log else "",
        }


def _text(task: dict[str, Any]) -> str:
    return json.dumps(task, ensure_ascii=False, separators=(",", ":"))
