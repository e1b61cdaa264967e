"""Everything the screen shows, folded from the node's stream of views and events.

A view replaces the one before it; events pile up, newest first, to a bound. Order is decided here,
once per view: what needs attention first, and stable, so that rows stay where the eye left them. A row
whose JSON did not change is kept as it is.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeVar

from mesh.core.order import natural
from mesh.tui.busiest import Busiest, busiest
from mesh.tui.contest_rows import Contests
from mesh.tui.history import Levels, Rates
from mesh.tui.reading import Json, listing, mapping, number, text, whole
from mesh.tui.rows import EventRow, MemberRow, NodeRow, TaskRow
from mesh.tui.traffic import Traffic

EVENTS_MAX: Final = 500
TASKS_MAX: Final = 500
MEMBERS_MAX: Final = 10_000
FRESH_DEATH_S: Final = 600.0
"""A member that died within this time stands above the living; later it has been seen, and sinks."""

TASK_STATES: Final = ("scheduled", "ready", "running", "lost", "done", "failed", "cancelled")
"""As people call them, in the order of a task's life."""

_COUNTED: Final = {"running": "leased"}
"""What the node calls those that it calls otherwise."""

_VERDICTS: Final = {"suspect": "suspect", "dead": "dead", "leave": "left"}
"""The events that explain a member's state, and which state that is."""


class _Row(Protocol):
    @property
    def source(self) -> Json: ...


_AnyRow = TypeVar("_AnyRow", bound=_Row)


class History:
    """The past that sparklines show: packets out and in a second, tasks done a second, own load."""

    def __init__(self) -> None:
        self.sent = Rates()
        self.received = Rates()
        self.done = Rates()
        self.load = Levels()


class Board:
    """The latest view and the latest events; bounded.

    Attributes:
        node: the node whose view it is, None before the first view.
        at: the unix time of the view; every age on the screen is counted to it.
        members: in the order to show: suspect, freshly dead, alive, long dead, left.
        task_counts: how many of the tasks that this node keeps are in each state.
        own: this node's own row.
        busiest: which member has the most to do, if one has.
        tasks: in the order to show: running, ready, scheduled, then those that are over.
        contests: those that this node holds as a voter.
        events: newest first; without the routine of tasks, which would push the deaths out of sight.
        events_seen: how many of these came so far, those that are forgotten too.
        gone: why the node does not answer, "" while it does; a view ends it.
        verdicts: by member, the latest event that called it suspect, dead or gone.
        version: grows with every change, so that an unchanged board is not drawn again.
    """

    def __init__(self) -> None:
        self.node: NodeRow | None = None
        self.at = 0.0
        self.members: list[MemberRow] = []
        self.member_counts: dict[str, int] = {}
        self.own: MemberRow | None = None
        self.busiest = Busiest()
        self.tasks: list[TaskRow] = []
        self.task_counts: dict[str, int] = {}
        self.contests = Contests()
        self.traffic = Traffic()
        self.history = History()
        self.events: deque[EventRow] = deque(maxlen=EVENTS_MAX)
        self.events_seen = 0
        self.gone = ""
        self.version = 0
        self.verdicts: dict[str, EventRow] = {}

    def fold(self, item: Json) -> None:
        """Take one item of the stream: `{"view": …}` or `{"event": …}`; anything else is ignored."""
        if "view" in item:
            self._fold_view(mapping(item["view"]))
        elif "event" in item:
            if not self._fold_event(mapping(item["event"])):
                return
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
        self.verdicts.clear()
        self.version += 1

    def snapshot(self) -> Board:
        """Return the board as it is now: what this one takes afterwards does not change the copy."""
        frozen = copy.copy(self)
        frozen.events = self.events.copy()
        frozen.traffic = copy.deepcopy(self.traffic)
        frozen.history = copy.deepcopy(self.history)
        frozen.verdicts = dict(self.verdicts)
        return frozen

    @property
    def guests(self) -> list[TaskRow]:
        """The tasks that run here and that only others keep."""
        return [task for task in self.tasks if task.is_guest]

    @property
    def shown_counts(self) -> dict[str, int]:
        """How many tasks that this node keeps or runs are in each state."""
        counts = dict(self.task_counts)
        lost = sum(task.state == "lost" for task in self.tasks)  # the node counts them as leased
        counts["running"] = max(0, counts.get("running", 0) - lost) + len(self.guests)
        counts["lost"] = lost
        return counts

    def verdict(self, member: MemberRow) -> EventRow | None:
        """Return the latest event by which this member was suspected, declared dead, or left; or None."""
        found = self.verdicts.get(member.node_id) or self.verdicts.get(member.name)
        is_current = found is not None and _VERDICTS.get(found.kind) == member.state
        return found if is_current else None

    def is_busiest(self, member: MemberRow) -> bool:
        """Say whether this member has the most to do; nobody has when all are idle, or as busy as each other."""
        return bool(self.busiest.key) and member.key == self.busiest.key

    def _fold_event(self, source: Json) -> bool:
        event = EventRow.read(source, f"e{self.events_seen}")
        if event.is_routine:
            return False
        self.events_seen += 1
        self.events.appendleft(event)
        if event.kind in _VERDICTS and event.subject:
            self.verdicts.pop(event.subject, None)
            self.verdicts[event.subject] = event
            if len(self.verdicts) > MEMBERS_MAX:
                del self.verdicts[next(iter(self.verdicts))]
        return True

    def _fold_view(self, view: Json) -> None:
        self.gone = ""
        self.node = NodeRow.read(mapping(view.get("node")))
        self.at = number(view, "at") or self.at
        before = {member.node_id: member for member in self.members}
        sources = listing(view.get("members"))[:MEMBERS_MAX]
        self.members = sorted(
            _reread(sources, "node_id", before, MemberRow.read), key=self._member_rank
        )
        self.own = next((member for member in self.members if member.is_self), None)
        self.busiest = busiest(self.members, self.busiest.key)
        self.member_counts = {}
        for member in self.members:
            self.member_counts[member.state] = self.member_counts.get(member.state, 0) + 1
        counts = mapping(view.get("task_counts"))
        self.task_counts = {
            state: whole(counts, _COUNTED.get(state, state)) or 0 for state in TASK_STATES
        }
        self.tasks = self._read_tasks(view)
        self.contests = Contests.read(view.get("contests"), self.contests.rows)
        self._note_past(mapping(view.get("node")))

    def _note_past(self, node: Json) -> None:
        past = self.history
        sent = number(mapping(node.get("sent")), "datagrams")
        received = number(mapping(node.get("received")), "datagrams")
        if sent is not None and received is not None:
            self.traffic.note(self.at, sent, received)
            past.sent.note(self.at, sent)
            past.received.note(self.at, received)
        past.done.note(self.at, self.task_counts["done"])
        if self.own is not None and self.own.load is not None:
            past.load.note(self.at, self.own.load)

    def _read_tasks(self, view: Json) -> list[TaskRow]:
        before = {task.id: task for task in self.tasks}
        kept = _reread(listing(view.get("tasks"))[:TASKS_MAX], "id", before, TaskRow.read)
        known = {task.id for task in kept}
        here = self.node.name if self.node else ""
        running = [TaskRow.read_running(mapping(row), here) for row in listing(view.get("running"))]
        tasks = [*kept, *(task for task in running if task.id not in known)]
        return sorted(tasks, key=lambda task: task.rank)

    def _member_rank(self, member: MemberRow) -> tuple[int, float, tuple[object, ...]]:
        """Order members; within a rank by name, the dead by the time of their death, latest first."""
        name = natural(member.name)
        if member.state == "suspect":
            return 0, 0.0, name
        if member.state == "dead":
            since = member.since or 0.0
            return (1 if self.at - since < FRESH_DEATH_S else 3), -since, name
        return (4 if member.state == "left" else 2), 0.0, name


def _reread(
    sources: list[object],
    id_key: str,
    before: Mapping[str, _AnyRow],
    read: Callable[[Json], _AnyRow],
) -> list[_AnyRow]:
    """Return the rows of `sources`; a row of `before` whose JSON is the same is used again."""
    rows = []
    for item in sources:
        source = mapping(item)
        known = before.get(text(source, id_key))
        rows.append(known if known is not None and known.source == source else read(source))
    return rows
