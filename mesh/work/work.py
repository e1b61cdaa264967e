"""All of a node's work behind one face: keeping tasks, running them, and asking the mesh about them.

What a node tells itself takes the same way as what it tells others, but never leaves: a message that
is posted to this node is handled at once, and its reply handed back. Tasks live in the memory of the
node that accepted them and end with it; a store that outlives it can take this face's place.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

from mesh.core.address import Address
from mesh.core.effects import Answer
from mesh.core.ids import TASK_ID_CHARS_MAX, NodeId
from mesh.core.process import ProcessEvent
from mesh.core.requests import Ask, Outgoing, Tell
from mesh.errors import LocalProtocolError
from mesh.placement.live_view import LiveView
from mesh.wire import work_messages as wire
from mesh.work.commands import Cancel, GetTask, ListTasks, Submit, Unwatch, Watch, WorkCommand
from mesh.work.config import WorkConfig
from mesh.work.inquiry import INQUIRY, Inquiries
from mesh.work.keep import Keep
from mesh.work.owner import RUN, Owner
from mesh.work.post import Post, Step
from mesh.work.show import Show, WorkView
from mesh.work.slots import Slots
from mesh.work.steward import Steward

__all__ = ["Work", "WorkConfig", "WorkView"]

Handled: TypeAlias = tuple[object | None, list[Step]]
LIST_CHARS_MAX = 1_500_000  # in the worst case four bytes each, within one frame


class Work:
    """The work of one node. Every method that takes `now` returns what is to be done, in order."""

    DATAGRAMS: Final = frozenset({wire.SlotsFree})
    REQUESTS: Final = frozenset(
        {
            wire.Offer,
            wire.OutputPiece,
            wire.Report,
            wire.Released,
            wire.CancelRun,
            wire.RunQuery,
            wire.TaskQuery,
            wire.CancelTask,
        }
    )

    def __init__(  # noqa: PLR0913 - keyword-only: the parts of one node
        self,
        *,
        node_id: NodeId,
        boot: int,
        name: str,
        slots: int,
        offers: tuple[tuple[str, int], ...],
        view: LiveView,
        rng: random.Random,
        unix_offset_s: float,
        config: WorkConfig | None = None,
    ) -> None:
        config = config or WorkConfig()
        self._node_id = node_id
        self._view = view
        self._config = config
        keep = Keep(config, unix_offset_s)
        self._keep = keep
        self._steward = Steward(boot=boot, view=view, rng=rng, keep=keep, config=config)
        self._owner = Owner(
            boot=boot,
            slots=Slots(slots, dict(offers), config),
            view=view,
            unix_offset_s=unix_offset_s,
            config=config,
        )
        self._show = Show(name=name, view=view, keep=keep, queue=self._steward.offering.queue)
        self._inquiries = Inquiries(node_id, view, config)
        self.running = 0
        """Runs whose process has not ended."""
        self.used = 0
        """Slots that runs hold: until their process has ended and their output is with its keeper."""
        self.free_slots = slots
        """Slots that an offer could get; 0 once this node is leaving."""

        # Where members were last: a suspect is in no view, but its runs go on.
        self._addresses: dict[NodeId, Address] = {}
        self._handlers: dict[type, Callable[[float, NodeId, Any], Handled]] = {
            wire.Offer: self._owner.handle_offer,
            wire.CancelRun: self._on_cancel_run,
            wire.RunQuery: self._on_run_query,
            wire.OutputPiece: self._steward.handle_output,
            wire.Report: self._steward.handle_report,
            wire.Released: self._steward.handle_released,
            wire.SlotsFree: self._on_slots_free,
            wire.TaskQuery: self._on_task_query,
            wire.CancelTask: self._on_cancel_task,
        }

    def handle_message(
        self, now: float, sender: NodeId, message: object
    ) -> tuple[object | None, list[Outgoing]]:
        """Take one of DATAGRAMS or REQUESTS and return its reply (None: it has none)."""
        self._learn_address(sender)
        reply, steps = self._dispatch(now, sender, message)
        outputs = self._carry_out(now, steps)
        return reply, outputs

    def handle_reply(self, now: float, tag: Hashable, reply: object | None) -> list[Outgoing]:
        """Take the reply to an `Ask`; None: there was none, and nobody knows whether it arrived."""
        if not isinstance(tag, tuple):
            raise LocalProtocolError(f"a tag of this machine is a tuple, found {tag!r}")
        return self._carry_out(now, self._on_reply(now, tag, reply))

    def handle_process(self, now: float, event: ProcessEvent) -> list[Outgoing]:
        """Take what a process that was started here wrote, or that it ended."""
        return self._carry_out(now, self._owner.handle_process(now, event))

    def handle_command(self, now: float, command: WorkCommand) -> list[Outgoing]:
        """Take a client's command."""
        return self._carry_out(now, self._on_command(now, command))

    def handle_member_up(self, now: float, node_id: NodeId) -> list[Outgoing]:
        """Note that a member may get work, or that its vitals show free slots. The view knows already."""
        self._learn_address(node_id)
        self._steward.handle_member_up(node_id)
        return self._carry_out(now, [])

    def handle_member_down(
        self, now: float, node_id: NodeId, boot: int, reason: str
    ) -> list[Outgoing]:
        """Note that a member's session `boot` is over. `reason`: "declared dead (…)", "left", "restarted"."""
        steps = self._steward.offering.handle_member_down(now, node_id, boot, reason)
        steps += self._owner.handle_member_down(now, node_id, boot)
        if self._view.get(node_id) is None:
            self._addresses.pop(node_id, None)
        return self._carry_out(now, steps)

    def handle_timeout(self, now: float) -> list[Outgoing]:
        """Do what is due; early, twice or late is harmless."""
        steps = self._owner.handle_timeout(now) + self._steward.handle_timeout(now)
        return self._carry_out(now, steps)

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do, or None."""
        dues = (self._owner.next_timeout(), self._steward.next_timeout())
        return min((due for due in dues if due is not None), default=None)

    def take_watch(self, watcher_id: int) -> tuple[list[tuple[int, bytes]], dict[str, Any] | None]:
        """Return the pieces (stream, data) a watcher has not taken, and its task's JSON once that has ended.

        The JSON comes with the last pieces. A watcher that is unknown, or was dropped because it took
        nothing for `watcher_stall_s`, gets no pieces and `{"watch_error": why}` with what is known of
        the task. When a new attempt starts, the pieces go on with that attempt's first.
        """
        pieces, task, error = self._steward.take_watch(watcher_id)
        if error:
            return [], {**(self._show.task(task) if task else {}), "watch_error": error}
        return pieces, self._show.task(task) if task is not None and task.is_terminal else None

    def view(self, now: float) -> WorkView:  # noqa: ARG002 - every machine's view takes it
        """Return what this node keeps and runs."""
        tasks = self._keep.newest(self._config.view_tasks_max)
        return WorkView(
            [self._show.task(task, is_short=True) for task in tasks],
            self._show.counts(),
            self._owner.running(),
        )

    def stop(self, now: float) -> list[Outgoing]:
        """Take no more work and stop what runs; keepers hear that their attempts are released.

        Everything was stopped and told once `used` is 0 and no `Ask` is under way.
        """
        return self._carry_out(now, self._steward.stop() + self._owner.stop())

    def check_invariants(self) -> None:
        """Raise AssertionError if a part contradicts itself or another. O(tasks)."""
        self._keep.check_invariants()
        self._steward.offering.check_invariants()
        self._owner.check_invariants()
        self._inquiries.check_invariants()

    # -- inside

    def _carry_out(self, now: float, steps: list[Step]) -> list[Outgoing]:
        """Handle what is for this node, offer what can be offered, and address the rest."""
        outputs: list[Outgoing] = []
        todo = deque(steps)
        while True:
            if not todo:
                todo.extend(self._steward.offering.offer_ready(now))
                if not todo:
                    self.used, self.free_slots = self._owner.slots.used, self._owner.free_slots
                    self.running = self._owner.living
                    return outputs
            step = todo.popleft()
            if not isinstance(step, Post):
                outputs.append(step)
                continue
            if step.to == self._node_id:
                reply, more = self._dispatch(now, step.to, step.message)
                if step.tag is not None:
                    more = more + self._on_reply(now, step.tag, reply)
                todo.extendleft(reversed(more))
                continue
            address = self._address(step.to)
            if address is not None and step.tag is not None:
                outputs.append(Ask(address, step.message, step.tag, step.timeout_s))
            elif address is not None:
                outputs.append(Tell(address, step.message))
            elif step.tag is not None:
                todo.extendleft(reversed(self._on_reply(now, step.tag, None)))

    def _dispatch(self, now: float, sender: NodeId, message: object) -> Handled:
        handler = self._handlers.get(type(message))
        if handler is None:
            raise LocalProtocolError(f"{type(message).__name__} is no message of work")
        return handler(now, sender, message)

    def _on_reply(self, now: float, tag: tuple[Hashable, ...], reply: object | None) -> list[Step]:
        if tag[0] == RUN:
            return self._owner.handle_reply(now, tag, reply)
        if tag[0] == INQUIRY:
            return self._inquiries.handle_reply(tag, reply)
        return self._steward.offering.handle_reply(now, tag, reply)

    def _on_command(self, now: float, command: WorkCommand) -> list[Step]:
        match command:
            case Submit():
                return self._steward.submit(now, command)
            case Watch():
                return self._steward.watch(now, command)
            case Unwatch():
                self._keep.output.unwatch(command.watcher_id)
                return []
            case ListTasks():
                tasks = self._keep.newest(wire.QUERY_TASKS_MAX)
                own = [self._show.task(task, is_short=True) for task in tasks]
                return self._inquiries.start(command.command_id, wire.TaskQuery(""), own)
            case GetTask():
                task = self._keep.tasks.get(command.task_id)
                if task is not None:
                    return [Answer(command.command_id, self._show.task(task))]
                query = wire.TaskQuery(command.task_id)
                return self._ask_all(command.command_id, query)
            case Cancel():
                task = self._keep.tasks.get(command.task_id)
                if task is not None:
                    steps = self._steward.cancel(now, task)
                    return [*steps, Answer(command.command_id, self._show.task(task))]
                return self._ask_all(command.command_id, wire.CancelTask(command.task_id))

    def _ask_all(self, command_id: int, message: wire.TaskQuery | wire.CancelTask) -> list[Step]:
        """Ask everybody about one task that is not kept here."""
        if not 0 < len(message.task_id) <= TASK_ID_CHARS_MAX:
            error = f"a task's id of 1 to {TASK_ID_CHARS_MAX} characters is expected"
            return [Answer(command_id, None, error)]
        return self._inquiries.start(command_id, message, [])

    def _on_cancel_run(self, _now: float, sender: NodeId, message: wire.CancelRun) -> Handled:
        return self._owner.handle_cancel(sender, message)

    def _on_run_query(self, _now: float, sender: NodeId, message: wire.RunQuery) -> Handled:
        return self._owner.handle_query(sender, message)

    def _on_slots_free(self, _now: float, sender: NodeId, message: wire.SlotsFree) -> Handled:
        self._steward.handle_slots_free(sender, message)
        return None, []

    def _on_task_query(self, _now: float, _sender: NodeId, message: wire.TaskQuery) -> Handled:
        if not message.task_id:
            return wire.TaskList(self._show.texts(wire.QUERY_TASKS_MAX, LIST_CHARS_MAX)), []
        task = self._keep.tasks.get(message.task_id)
        return wire.TaskList(() if task is None else (self._show.text(task),)), []

    def _on_cancel_task(self, now: float, _sender: NodeId, message: wire.CancelTask) -> Handled:
        task = self._keep.tasks.get(message.task_id)
        if task is None:
            return wire.TaskList(()), []
        steps = self._steward.cancel(now, task)
        return wire.TaskList((self._show.text(task),)), steps

    def _learn_address(self, node_id: NodeId) -> None:
        member = self._view.get(node_id)
        if member is not None:
            self._addresses[node_id] = member.address

    def _address(self, node_id: NodeId) -> Address | None:
        self._learn_address(node_id)
        return self._addresses.get(node_id)
