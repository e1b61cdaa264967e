"""The keeping side: accepts tasks, hears of their runs, and answers for them.

The node that accepted a task keeps it in memory until it ends, and a while longer. What the executing
node says of an attempt counts only if it comes from the node that the attempt was given to, under the
task's latest number; everything else is stale. (A node that was wrongly believed dead may still bring
its result home, as long as the next attempt was offered to nobody.)
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from dataclasses import replace
from typing import TypeAlias

from mesh.core.effects import Answer, Emit, TaskChanged
from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId, new_task_id
from mesh.core.timers import Timers
from mesh.errors import DecodeError
from mesh.placement.live_view import LiveView
from mesh.wire.work_messages import (
    OutputPiece,
    Released,
    Report,
    ReportAnswer,
    SlotsFree,
    Spec,
    Verdict,
    check_spec,
)
from mesh.work.commands import Submit, Watch
from mesh.work.config import WorkConfig
from mesh.work.keep import Keep
from mesh.work.offering import Offering
from mesh.work.post import Step
from mesh.work.task import Attempt, AttemptCause, Task, TaskState

Tag: TypeAlias = tuple[Hashable, ...]
Taken: TypeAlias = tuple[ReportAnswer, list[Step]]


class Steward:
    """All tasks that this node accepted."""

    def __init__(
        self, *, boot: int, view: LiveView, rng: random.Random, keep: Keep, config: WorkConfig
    ) -> None:
        self.keep = keep
        self.offering = Offering(boot=boot, view=view, keep=keep, rng=rng, config=config)
        self._view = view
        self._rng = rng
        self._config = config
        self._stalls: Timers[int] = Timers()  # watchers that have something to take
        self._is_stopping = False

    def submit(self, now: float, command: Submit) -> list[Step]:
        """Keep a new task, or say why not. An id that is kept already is answered as it is."""
        spec = command.spec
        if spec.task_id in self.keep.tasks:
            return [Answer(command.command_id, {"id": spec.task_id})]
        refusal = self._refusal(spec)
        if refusal:
            return [Answer(command.command_id, None, refusal)]
        spec = replace(
            spec,
            task_id=spec.task_id or new_task_id(self._rng),
            env=tuple(sorted(dict(spec.env).items())),
            labels=tuple(sorted(dict(spec.labels).items())),
            needs=tuple(sorted(dict(spec.needs).items())),
        )
        try:
            check_spec(spec)
        except (DecodeError, UnicodeEncodeError) as error:
            return [Answer(command.command_id, None, f"the task cannot be sent on: {error}")]
        task = self.keep.add(now, spec)
        self.offering.queue.add(task)
        return [Answer(command.command_id, {"id": spec.task_id}), TaskChanged(spec.task_id)]

    def cancel(self, now: float, task: Task) -> list[Step]:
        """Cancel a task: at once if it is ready, else when its owner has stopped it."""
        if task.is_terminal or task.is_cancel_requested:
            return []
        task.is_cancel_requested = True
        if task.state is TaskState.LEASED:
            return [self.offering.ask_to_stop(task), TaskChanged(task.task_id)]
        if task.asked is not None:
            return [TaskChanged(task.task_id)]  # its answer decides
        return self._finish(now, task, TaskState.CANCELLED)

    def handle_output(self, now: float, sender: NodeId, message: OutputPiece) -> Taken:
        """Hold a piece of output of the current attempt."""
        task, attempt, steps = self._current(now, sender, message.task_id, message.attempt)
        if task is None or attempt is None:
            return ReportAnswer(Verdict.STALE), steps
        if message.seq >= attempt.next_seq:
            waiting = self.keep.output.append(task.task_id, message.stream, message.data)
            if waiting is None:
                return ReportAnswer(Verdict.WAIT), steps
            attempt.next_seq = message.seq + 1
            for watcher_id in waiting:
                self._stalls.set(watcher_id, now + self._config.watcher_stall_s)
            if waiting:
                steps.append(TaskChanged(task.task_id))
        return ReportAnswer(Verdict.TAKEN), steps

    def handle_report(self, now: float, sender: NodeId, message: Report) -> Taken:
        """End the task as its attempt ended."""
        noted = False if message.free_slots else None
        task, attempt, steps = self._current(now, sender, message.task_id, message.attempt)
        if task is None or attempt is None:
            verdict = Verdict.STALE
        else:
            state = TaskState.FAILED if message.exit_code or message.error else TaskState.DONE
            if task.is_cancel_requested:
                state = TaskState.CANCELLED
            steps += self._finish(now, task, state, message.exit_code, message.error)
            verdict = Verdict.TAKEN
        self.offering.queue.note_free(sender, message.free_slots, is_noted=noted)
        return ReportAnswer(verdict), steps

    def handle_released(self, now: float, sender: NodeId, message: Released) -> Taken:
        """Give an attempt to another that its owner stopped because it is leaving."""
        task, attempt, steps = self._current(now, sender, message.task_id, message.attempt)
        if task is None or attempt is None or task.state is not TaskState.LEASED:
            return ReportAnswer(Verdict.STALE), steps
        error = f"{attempt.name} released it: it is leaving"
        steps += self.offering.lose(now, task, error, AttemptCause.RELEASED)
        return ReportAnswer(Verdict.TAKEN), steps

    def handle_slots_free(self, sender: NodeId, message: SlotsFree) -> None:
        """Note that a member that declined has a slot for us now."""
        self.offering.queue.note_free(sender, message.free_slots, is_noted=False)

    def handle_member_up(self, node_id: NodeId) -> None:
        """Note what a member's vitals say of its slots."""
        member = self._view.get(node_id)
        if member is not None:
            self.offering.queue.note_free(node_id, member.free_slots)

    def handle_timeout(self, now: float) -> list[Step]:
        """Drop watchers that take nothing, and do what offers ask for."""
        steps: list[Step] = []
        for watcher_id in self._stalls.take_due(now):
            watcher = self.keep.output.watchers.get(watcher_id)
            if watcher is not None:
                steps.append(TaskChanged(watcher.task_id))
                self.keep.output.drop_watcher(
                    watcher_id, f"nothing was taken for {self._config.watcher_stall_s:.0f} s"
                )
        return steps + self.offering.handle_timeout(now)

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do."""
        dues = (self._stalls.next_deadline(), self.offering.next_timeout())
        return min((due for due in dues if due is not None), default=None)

    def watch(self, now: float, command: Watch) -> list[Step]:
        """Let a client follow a task that is kept here."""
        output = self.keep.output
        if command.task_id not in self.keep.tasks:
            error = f"no task {command.task_id} is kept by this node: ask the node that accepted it"
        elif len(output.watchers) >= self._config.watchers_max:
            error = f"at most {self._config.watchers_max} clients may follow tasks of one node"
        else:
            output.watch(command.watcher_id, command.task_id)
            self._stalls.set(command.watcher_id, now + self._config.watcher_stall_s)
            return [
                Answer(command.command_id, {"id": command.task_id}),
                TaskChanged(command.task_id),
            ]
        return [Answer(command.command_id, None, error)]

    def take_watch(self, watcher_id: int) -> tuple[list[tuple[int, bytes]], Task | None, str]:
        """Return what the watcher has not taken, its task, and why it was dropped ("" if it was not)."""
        watcher = self.keep.output.watchers.get(watcher_id)
        if watcher is None:
            return [], None, "this watcher is not known, or its task was forgotten"
        self._stalls.cancel(watcher_id)
        task = self.keep.tasks.get(watcher.task_id)
        return self.keep.output.take(watcher), task, watcher.error

    def stop(self) -> list[Step]:
        """Accept and offer nothing more, and say what is lost with this node."""
        self._is_stopping = True
        self.offering.stop()
        count = self.keep.unfinished
        if not count:
            return []
        detail = f"{count} unfinished tasks are kept by this node alone and end with it"
        return [Emit(Event(kind=EventKind.WARN, detail=detail))]

    def _refusal(self, spec: Spec) -> str:
        """Return why a task is not accepted, or ""."""
        config = self._config
        if self._is_stopping:
            return "this node is leaving and accepts no tasks: submit it at another node"
        if not spec.argv or not spec.argv[0]:
            return "a command is expected, found none"
        size = sum(map(len, spec.argv)) + sum(len(key) + len(value) for key, value in spec.env)
        if size > config.spec_bytes_max:
            return (
                f"a command and its environment of at most {config.spec_bytes_max} characters are "
                f"expected, found {size}: pass large input in a file"
            )
        if self.keep.unfinished >= config.tasks_max:
            return (
                f"this node keeps {config.tasks_max} unfinished tasks, which is its limit: "
                "wait for some to end, or submit at another node"
            )
        return ""

    def _current(
        self, now: float, sender: NodeId, task_id: str, number: int
    ) -> tuple[Task | None, Attempt | None, list[Step]]:
        """Return the task and attempt that a word from `sender` is about; no attempt: it is stale.

        The first word of an attempt may overtake the answer to its offer: then it is that answer.
        """
        task = self.keep.tasks.get(task_id)
        if task is None or task.is_terminal:
            return task, None, []
        steps: list[Step] = []
        if task.asked == sender and task.number == number:
            steps = self.offering.lease(now, task, task.asked_boot, sender)
        attempt = task.attempts[-1] if task.attempts else None
        is_current = (
            attempt is not None
            and (attempt.node_id, attempt.number) == (sender, number)
            and task.asked is None
        )
        if attempt is None or not is_current:
            return task, None, steps
        attempt.heard = now
        return task, attempt, steps

    def _finish(
        self,
        now: float,
        task: Task,
        state: TaskState,
        exit_code: int | None = None,
        error: str = "",
    ) -> list[Step]:
        self.offering.settle(task)
        return list(self.keep.finish(now, task, state, exit_code, error))
