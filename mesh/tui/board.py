"""Everything the screen shows, folded from the node's stream of views and events.

A view replaces the one before it; events pile up, newest first, to a bound. Order is decided here,
once per view: what needs attention first, and stable, so that rows stay where the eye left them.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mesh.tui.rows import (
    EventRow,
    Json,
    MemberRow,
    NodeRow,
    TaskRow,
    listing,
    mapping,
    natural,
    number,
    whole,
)
from mesh.tui.traffic import Traffic

EVENTS_MAX: Final = 500
TASKS_MAX: Final = 500
MEMBERS_MAX: Final = 10_000
FRESH_DEATH_S: Final = 600.0
"""A member that died within this time stands above the living; later it has been seen, and sinks."""

TASK_STATES: Final = ("ready", "leased", "done", "failed", "cancelled")


class Board:
    """The latest view and the latest events; bounded.

    Attributes:
        node: the node whose view it is, None before the first view.
        at: the unix time of the view; every age on the screen is counted to it.
        members: in the order to show: suspect, freshly dead, alive, long dead, left.
        tasks: in the order to show: leased, then the rest, the latest change first.
        events: newest first; without the routine of tasks, which would push the deaths out of sight.
        gone: why the node does not answer, "" while it does; a view ends it.
        version: grows with every change, so that an unchanged board is not drawn again.
    """

    def __init__(self) -> None:
        self.node: NodeRow | None = None
        self.at = 0.0
        self.members: list[MemberRow] = []
        self.member_counts: dict[str, int] = {}
        self.tasks: list[TaskRow] = []
        self.task_counts: dict[str, int] = {}
        self.traffic = Traffic()
        self.events: deque[EventRow] = deque(maxlen=EVENTS_MAX)
        self.gone = ""
        self.version = 0

    def fold(self, item: Json) -> None:
        """Take one item of the stream: `{"view": …}` or `{"event": …}`; anything else is ignored."""
        if "view" in item:
            self._fold_view(mapping(item["view"]))
        elif "event" in item:
            event = EventRow.read(mapping(item["event"]))
            if event.is_routine:
                return
            self.events.appendleft(event)
        else:
            return
        self.version += 1

    def mark_gone(self, reason: str) -> None:
        """Note that the node does not answer; what it said last stays."""
        if self.gone != reason:
            self.gone = reason
            self.version += 1

    def restart(self) -> None:
        """Forget the events: the node answers again, and tells them from the start before its first view."""
        self.events.clear()
        self.version += 1

    @property
    def own(self) -> MemberRow | None:
        """This node's own row."""
        return next((member for member in self.members if member.is_self), None)

    def _fold_view(self, view: Json) -> None:
        self.gone = ""
        self.node = NodeRow.read(mapping(view.get("node")))
        self.at = number(view, "at") or self.at
        self._note_traffic(mapping(view.get("node")))
        members = [MemberRow.read(mapping(row)) for row in listing(view.get("members"))]
        self.members = sorted(members[:MEMBERS_MAX], key=self._member_rank)
        self.member_counts = {}
        for member in members:
            self.member_counts[member.state] = self.member_counts.get(member.state, 0) + 1
        counts = mapping(view.get("task_counts"))
        self.task_counts = {state: whole(counts, state) or 0 for state in TASK_STATES}
        self.tasks = self._read_tasks(view)

    def _note_traffic(self, node: Json) -> None:
        sent = number(mapping(node.get("sent")), "datagrams")
        received = number(mapping(node.get("received")), "datagrams")
        if sent is not None and received is not None:
            self.traffic.note(self.at, sent, received)

    def _read_tasks(self, view: Json) -> list[TaskRow]:
        kept = [TaskRow.read(mapping(row)) for row in listing(view.get("tasks"))[:TASKS_MAX]]
        known = {task.id for task in kept}
        here = self.node.name if self.node else ""
        running = [TaskRow.read_running(mapping(row), here) for row in listing(view.get("running"))]
        tasks = [*kept, *(task for task in running if task.id not in known)]
        return sorted(tasks, key=lambda task: (task.state != "leased", -task.changed, task.id))

    def _member_rank(self, member: MemberRow) -> tuple[int, float, tuple[object, ...]]:
        """Order members; within a rank by name, the dead by the time of their death, latest first."""
        name = natural(member.name)
        if member.state == "suspect":
            return 0, 0.0, name
        if member.state == "dead":
            since = member.since or 0.0
            return (1 if self.at - since < FRESH_DEATH_S else 3), -since, name
        return (4 if member.state == "left" else 2), 0.0, name
