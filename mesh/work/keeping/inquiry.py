"""Questions that only the whole mesh can answer: all tasks, one task, cancel one, wherever it is kept.

Every living member is asked at once. One task's answer is the first that comes with it; a list waits
for all, and names who stayed silent.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from mesh.core.effects import Answer
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveView
from mesh.wire.work_messages import QUERY_TASKS_MAX, CancelTask, TaskList, TaskQuery
from mesh.work.config import WorkConfig
from mesh.work.post import Post, Step

Tag: TypeAlias = tuple[Hashable, ...]
INQUIRY: Final = "inquiry"
UNIX_TIME_MAX: Final = 1e12
"""Some thirty thousand years either way: a time beyond it is no time."""


@dataclass(slots=True)
class Inquiry:
    """One question under way."""

    command_id: int
    task_id: str  # "": a list of all
    open: dict[NodeId, str]  # who has not answered, by name
    tasks: list[dict[str, Any]] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)


class Inquiries:
    """The questions under way, at most `inquiries_max`."""

    def __init__(self, node_id: NodeId, view: LiveView, config: WorkConfig) -> None:
        self._node_id = node_id
        self._view = view
        self._config = config
        self._last = 0
        self._open: dict[int, Inquiry] = {}

    def start(
        self, command_id: int, message: TaskQuery | CancelTask, own: list[dict[str, Any]]
    ) -> list[Step]:
        """Ask all living members but this one; `own` is what this node keeps itself."""
        if len(self._open) >= self._config.inquiries_max:
            error = "too many questions to the mesh are under way: try again in a moment"
            return [Answer(command_id, None, error)]
        others = {m.node_id: m.name for m in self._view.members() if m.node_id != self._node_id}
        self._last += 1
        inquiry = Inquiry(command_id, message.task_id, others, own)
        self._open[self._last] = inquiry
        if not others:
            return self._close(self._last, inquiry)
        timeout_s = self._config.inquiry_timeout_s
        return [
            Post(node_id, message, (INQUIRY, self._last, node_id), timeout_s) for node_id in others
        ]

    def handle_reply(self, tag: Tag, reply: object | None) -> list[Step]:
        """Take one member's answer; None: it gave none."""
        number, node_id = tag[1], tag[2]
        inquiry = self._open.get(number) if isinstance(number, int) else None
        if inquiry is None or not isinstance(number, int) or not isinstance(node_id, int):
            return []
        name = inquiry.open.pop(NodeId(node_id), None)
        if name is None:
            return []
        found = None if not isinstance(reply, TaskList) else _decode(reply)
        if found is None:
            inquiry.silent.append(name)
        elif not inquiry.task_id:
            inquiry.tasks += found
        else:
            inquiry.tasks = [task for task in found if task["id"] == inquiry.task_id][:1]
        if inquiry.open and not (inquiry.task_id and inquiry.tasks):
            return []
        return self._close(number, inquiry)

    def check_invariants(self) -> None:
        """Raise AssertionError if a question waits for nobody."""
        assert all(inquiry.open for inquiry in self._open.values())

    def _close(self, number: int, inquiry: Inquiry) -> list[Step]:
        del self._open[number]
        silent = sorted(inquiry.silent)
        if not inquiry.task_id:
            inquiry.tasks.sort(key=lambda task: (-task["created"], task["id"]))
            data = {"tasks": inquiry.tasks[:QUERY_TASKS_MAX], "silent": silent}
            return [Answer(inquiry.command_id, data)]
        if inquiry.tasks:
            return [Answer(inquiry.command_id, inquiry.tasks[0])]
        error = f"no task {inquiry.task_id} is kept by any living member"
        if silent:
            error += f" that answered ({', '.join(silent)} did not): try again, or ask there"
        else:
            error += ": `mesh tasks` lists those that are"
        return [Answer(inquiry.command_id, None, error)]


def _refuse(name: str) -> None:
    """Refuse the numbers that JSON has no word for: nobody downstream could sort or show them."""
    raise ValueError(f"a number is expected, found {name}")


def _decode(reply: TaskList) -> list[dict[str, Any]] | None:
    """Return the tasks in a reply, or None if it is not what this version sends."""
    found = []
    for text in reply.tasks:
        try:
            task = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return None
        if not isinstance(task, dict) or not isinstance(task.get("id"), str):
            return None
        created = task.get("created")
        if not isinstance(created, (int, float)) or abs(created) > UNIX_TIME_MAX:
            return None
        found.append(task)
    return found
