"""What clients ask of this node's work: every command is answered by exactly one `Answer`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from mesh.wire.work_messages import Spec


@dataclass(frozen=True, slots=True)
class Submit:
    """Take this task. `spec.task_id` "" draws a fresh id. Answer: `{"id": …}`.

    An id that this node keeps already is answered with `"known": true` too, and nothing is started again. A
    `watcher_id` other than 0 follows the task from the start, so that it misses none of its output.
    """

    command_id: int
    spec: Spec
    watcher_id: int = 0


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel a task, wherever in the mesh it is kept. Answer: its JSON after cancelling."""

    command_id: int
    task_id: str


@dataclass(frozen=True, slots=True)
class ListTasks:
    """Every task that any living member keeps. Answer: `{"tasks": [JSON…], "silent": [names]}`."""

    command_id: int


@dataclass(frozen=True, slots=True)
class GetTask:
    """One task, wherever in the mesh it is kept. Answer: its JSON."""

    command_id: int
    task_id: str


@dataclass(frozen=True, slots=True)
class Watch:
    """Let `watcher_id` follow a task that this node keeps, from the first output that is still held.

    Answer: `{"id": …}`. `TaskChanged` says when there is something to take.
    """

    command_id: int
    watcher_id: int
    task_id: str


@dataclass(frozen=True, slots=True)
class Unwatch:
    """The watcher is gone. Not answered."""

    watcher_id: int


WorkCommand: TypeAlias = Submit | Cancel | ListTasks | GetTask | Watch | Unwatch
