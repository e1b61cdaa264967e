"""The keeping side behind one face: messages, commands and time go in, steps come out.

Tasks live in the memory of the node that accepted them and end with it. Whoever keeps tasks in another
way takes this face's place; the running side knows nothing of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

from mesh.core.effects import Answer, TaskChanged
from mesh.core.ids import TASK_ID_CHARS_MAX, NodeId
from mesh.errors import LocalProtocolError
from mesh.placement.live_view import LiveView
from mesh.wire import work_messages as wire
from mesh.wire.records import Card
from mesh.work.commands import Cancel, GetTask, ListTasks, Submit, Unwatch, Watch, WorkCommand
from mesh.work.config import WorkConfig
from mesh.work.keeping.inquiry import INQUIRY, Inquiries
from mesh.work.keeping.keeper import Keeper
from mesh.work.keeping.offering import Offering
from mesh.work.keeping.output import OutputStore
from mesh.work.keeping.ready_queue import ReadyQueue
from mesh.work.keeping.show import Show
from mesh.work.keeping.task_table import TaskTable
from mesh.work.keeping.watching import Watching
from mesh.work.post import Step

Handled: TypeAlias = tuple[object | None, list[Step]]
LIST_CHARS_MAX: Final = 1_500_000  # in the worst case four bytes each, within one frame


class Keeping:
    """All tasks that this node accepted, and questions about those of others."""

    DATAGRAMS: Final = frozenset({wire.SlotsFree})
    REQUESTS: Final = frozenset(
        {wire.OutputPiece, wire.Report, wire.Released, wire.TaskQuery, wire.CancelTask}
    )

    def __init__(
        self,
        *,
        card: Callable[[], Card],
        view: LiveView,
        rng: random.Random,
        unix_offset_s: float,
        config: WorkConfig,
    ) -> None:
        self._card = card
        self._view = view
        self._config = config
        self._output = output = OutputStore(config)
        self._table = table = TaskTable(config, unix_offset_s, output)
        self._queue = queue = ReadyQueue(view, rng, config)
        self._offering = offering = Offering(
            card=card, table=table, queue=queue, rng=rng, config=config
        )
        self._watching = watching = Watching(output, config)
        self._keeper = Keeper(
            table=table,
            output=output,
            queue=queue,
            offering=offering,
            watching=watching,
            rng=rng,
            config=config,
        )
        self._show = Show(
            card=card, view=view, table=table, output=output, queue=queue, config=config
        )
        self._inquiries = Inquiries(card().node_id, view, config)
        self._handlers: dict[type, Callable[[float, NodeId, Any], Handled]] = {
            wire.OutputPiece: self._keeper.handle_output,
            wire.Report: self._keeper.handle_report,
            wire.Released: self._keeper.handle_released,
            wire.SlotsFree: self._on_slots_free,
            wire.TaskQuery: self._on_task_query,
            wire.CancelTask: self._on_cancel_task,
        }

    def handle_message(self, now: float, sender: NodeId, message: object) -> Handled:
        """Take one of DATAGRAMS or REQUESTS and return its reply (None: it has none)."""
        handler = self._handlers.get(type(message))
        if handler is None:
            raise LocalProtocolError(f"{type(message).__name__} is no message to a keeper")
        return handler(now, sender, message)

    def handle_reply(
        self, now: float, tag: tuple[Hashable, ...], reply: object | None
    ) -> list[Step]:
        """Take the reply to a message that this side posted; None: there was none."""
        if tag[0] == INQUIRY:
            return self._inquiries.handle_reply(tag, reply)
        return self._offering.handle_reply(now, tag, reply)

    def handle_command(self, now: float, command: WorkCommand) -> list[Step]:
        """Take a client's command."""
        match command:
            case Submit():
                return self._keeper.submit(now, command)
            case Watch():
                return self._watch(now, command)
            case Unwatch():
                self._watching.unwatch(command.watcher_id)
                return []
            case ListTasks():
                own = list(self._show.newest(wire.QUERY_TASKS_MAX))
                return self._inquiries.start(command.command_id, wire.TaskQuery(""), own)
            case GetTask():
                task = self._table.tasks.get(command.task_id)
                if task is not None:
                    return [Answer(command.command_id, self._show.task(task))]
                query = wire.TaskQuery(command.task_id)
                return self._ask_all(command.command_id, query)
            case Cancel():
                task = self._table.tasks.get(command.task_id)
                if task is not None:
                    steps = self._keeper.cancel(now, task)
                    return [*steps, Answer(command.command_id, self._show.task(task))]
                return self._ask_all(command.command_id, wire.CancelTask(command.task_id))

    def handle_member_up(self, node_id: NodeId) -> None:
        """Note what a member's vitals say of its slots."""
        member = self._view.get(node_id)
        if member is not None:
            self._queue.note_free(node_id, member.free_slots)

    def handle_member_down(self, now: float, node_id: NodeId, boot: int, reason: str) -> list[Step]:
        """End what was given to a session that is over; if it is this node's own, what that one gave away."""
        if node_id == self._card().node_id:
            return self._offering.end_session(now)
        return self._offering.handle_member_down(now, node_id, boot, reason)

    def handle_timeout(self, now: float) -> list[Step]:
        """Drop watchers that take nothing, and do what offers ask for."""
        return self._watching.handle_timeout(now) + self._offering.handle_timeout(now)

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do."""
        dues = (self._watching.next_timeout(), self._offering.next_timeout())
        return min((due for due in dues if due is not None), default=None)

    def offer_ready(self, now: float) -> list[Step]:
        """Offer ready tasks wherever a slot may be free."""
        return self._offering.offer_ready(now)

    def take_watch(self, watcher_id: int) -> tuple[list[tuple[int, bytes]], dict[str, Any] | None]:
        """Return what a watcher has not taken, and its task's JSON: see `Work.take_watch`."""
        pieces, task_id, error = self._watching.take(watcher_id)
        task = None if task_id is None else self._table.tasks.get(task_id)
        if error:
            return [], {**(self._show.task(task) if task else {}), "watch_error": error}
        return pieces, self._show.task(task) if task is not None and task.is_terminal else None

    def view(self) -> tuple[list[dict[str, Any]], dict[str, int], dict[str, int]]:
        """Return the newest tasks in short form, how many are in each state, and what made room for others."""
        given_up = {
            "dropped_output_bytes": self._output.dropped_bytes,
            "forgotten_tasks": self._table.forgotten,
        }
        tasks = list(self._show.newest(self._config.view_tasks_max))
        return tasks, self._show.counts(), given_up

    def stop(self) -> list[Step]:
        """Accept and offer nothing more, and say what is lost with this node."""
        self._offering.stop()
        return self._keeper.stop()

    def check_invariants(self) -> None:
        """Raise AssertionError if a part contradicts itself or another. O(tasks)."""
        self._table.check_invariants()
        self._output.check_invariants()
        self._offering.check_invariants()
        self._inquiries.check_invariants()

    # Inside.

    def _watch(self, now: float, command: Watch) -> list[Step]:
        if command.task_id in self._table.tasks:
            error = self._watching.refusal()
        else:
            error = f"no task {command.task_id} is kept by this node: ask the node that accepted it"
        if error:
            return [Answer(command.command_id, None, error)]
        self._watching.watch(now, command.watcher_id, command.task_id)
        return [Answer(command.command_id, {"id": command.task_id}), TaskChanged(command.task_id)]

    def _ask_all(self, command_id: int, message: wire.TaskQuery | wire.CancelTask) -> list[Step]:
        """Ask everybody about one task that is not kept here."""
        if not 0 < len(message.task_id) <= TASK_ID_CHARS_MAX:
            error = f"a task's id of 1 to {TASK_ID_CHARS_MAX} characters is expected"
            return [Answer(command_id, None, error)]
        return self._inquiries.start(command_id, message, [])

    def _on_slots_free(self, _now: float, sender: NodeId, message: wire.SlotsFree) -> Handled:
        """Note that a member that declined has a slot for us now."""
        self._queue.note_free(sender, message.free_slots, is_noted=False)
        return None, []

    def _on_task_query(self, _now: float, _sender: NodeId, message: wire.TaskQuery) -> Handled:
        if not message.task_id:
            return wire.TaskList(self._show.texts(wire.QUERY_TASKS_MAX, LIST_CHARS_MAX)), []
        task = self._table.tasks.get(message.task_id)
        return wire.TaskList(() if task is None else (self._show.text(task),)), []

    def _on_cancel_task(self, now: float, _sender: NodeId, message: wire.CancelTask) -> Handled:
        task = self._table.tasks.get(message.task_id)
        if task is None:
            return wire.TaskList(()), []
        steps = self._keeper.cancel(now, task)
        return wire.TaskList((self._show.text(task),)), steps
