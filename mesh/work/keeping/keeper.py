"""The keeper's decisions: which tasks it accepts, and what a word about an attempt does to its task.

The node that accepted a task keeps it in memory until it ends, and a while longer. What the executing
node says of an attempt counts only if it comes from the node that the attempt was given to, under the
task's latest number; everything else is stale. (A node that was wrongly believed dead may still bring
its result home, as long as the next attempt was offered to nobody.)
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice
from typing import Final, TypeAlias

from mesh.core.effects import Answer, Emit, TaskChanged
from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId, new_task_id
from mesh.errors import DecodeError
from mesh.wire.work_messages import (
    OutputPiece,
    Released,
    Report,
    ReportAnswer,
    Spec,
    Verdict,
    check_spec,
)
from mesh.work.commands import Submit
from mesh.work.config import WorkConfig
from mesh.work.keeping.offering import Offering
from mesh.work.keeping.output import OutputStore
from mesh.work.keeping.ready_queue import ReadyQueue
from mesh.work.keeping.task import Attempt, AttemptCause, Task, TaskState
from mesh.work.keeping.task_table import TaskTable
from mesh.work.keeping.watching import Watching
from mesh.work.post import Step

IDS_SHOWN_MAX: Final = 5
Taken: TypeAlias = tuple[ReportAnswer, list[Step]]


class Keeper:
    """Changes the tasks that this node accepted, as clients and owners say."""

    def __init__(
        self,
        *,
        table: TaskTable,
        output: OutputStore,
        queue: ReadyQueue,
        offering: Offering,
        watching: Watching,
        rng: random.Random,
        config: WorkConfig,
    ) -> None:
        self._table = table
        self._output = output
        self._queue = queue
        self._offering = offering
        self._watching = watching
        self._rng = rng
        self._config = config
        self._is_stopping = False

    def submit(self, now: float, command: Submit) -> list[Step]:
        """Keep a new task, or say why not. An id that is kept already is answered as it is."""
        try:
            spec = _in_order(command.spec)
            check_spec(spec)
        except DecodeError as error:
            text = f"the task is described wrongly: {error}"
            return [Answer(command.command_id, None, text)]
        is_known = spec.task_id in self._table.tasks
        refusal = "" if is_known else self._refusal(spec)
        if command.watcher_id:
            refusal = refusal or self._watching.refusal()
        if refusal:
            return [Answer(command.command_id, None, refusal)]
        if not is_known:
            spec = replace(spec, task_id=spec.task_id or new_task_id(self._rng))
            self._queue.add(self._table.add(now, spec))
        if command.watcher_id:
            self._watching.watch(now, command.watcher_id, spec.task_id)
        known = {"known": True} if is_known else {}
        steps: list[Step] = [Answer(command.command_id, {"id": spec.task_id, **known})]
        return steps if is_known and not command.watcher_id else [*steps, TaskChanged(spec.task_id)]

    def cancel(self, now: float, task: Task) -> list[Step]:
        """Cancel a task: at once if it is ready, else when its owner has stopped it."""
        if task.is_terminal or task.is_cancel_requested:
            return []
        task.is_cancel_requested = True
        if task.state is TaskState.LEASED:
            return [self._offering.ask_to_stop(task), TaskChanged(task.task_id)]
        if task.asked is not None:
            return [TaskChanged(task.task_id)]  # its answer decides
        return self._finish(now, task, TaskState.CANCELLED)

    def handle_output(self, now: float, sender: NodeId, message: OutputPiece) -> Taken:
        """Hold a piece of output of the current attempt."""
        task, attempt, steps = self._current(now, sender, message.task_id, message.attempt)
        if task is None or attempt is None:
            return ReportAnswer(Verdict.STALE), steps
        if message.seq >= attempt.next_seq:
            waiting = self._output.append(task.task_id, message.stream, message.data)
            if waiting is None:
                return ReportAnswer(Verdict.WAIT), steps
            attempt.next_seq = message.seq + 1
            self._watching.note_piece(now, waiting)
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
        self._queue.note_free(sender, message.free_slots, is_noted=noted)
        return ReportAnswer(verdict), steps

    def handle_released(self, now: float, sender: NodeId, message: Released) -> Taken:
        """Give an attempt to another that its owner does not run: it is leaving, or ran short."""
        task, attempt, steps = self._current(now, sender, message.task_id, message.attempt)
        if task is None or attempt is None or task.state is not TaskState.LEASED:
            return ReportAnswer(Verdict.STALE), steps
        error = f"{attempt.name} released it: {message.reason or 'no reason given'}"
        steps += self._offering.lose(now, task, error, AttemptCause.RELEASED)
        return ReportAnswer(Verdict.TAKEN), steps

    def stop(self) -> list[Step]:
        """Accept and offer nothing more, and say what is lost with this node."""
        self._is_stopping = True
        self._offering.stop()
        count = self._table.unfinished
        if not count:
            return []
        ids = (task_id for task_id, task in self._table.tasks.items() if not task.is_terminal)
        some = ", ".join(islice(ids, IDS_SHOWN_MAX)) + (", …" if count > IDS_SHOWN_MAX else "")
        tasks = "1 unfinished task is" if count == 1 else f"{count} unfinished tasks are"
        detail = f"{tasks} kept by this node alone, to be forgotten with it: {some}"
        return [Emit(Event(kind=EventKind.WARN, detail=detail))]

    def _refusal(self, spec: Spec) -> str:
        """Return why a task is not accepted, or ""."""
        config = self._config
        if self._is_stopping:
            return "this node is leaving and accepts no tasks: submit it at another node"
        size = sum(map(len, spec.argv)) + sum(len(key) + len(value) for key, value in spec.env)
        if size > config.spec_bytes_max:
            return (
                f"a command and its environment of at most {config.spec_bytes_max} characters are "
                f"expected, found {size}: pass large input in a file"
            )
        if self._table.unfinished >= config.tasks_max:
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
        task = self._table.tasks.get(task_id)
        if task is None or task.is_terminal:
            return task, None, []
        steps: list[Step] = []
        if task.asked == sender and task.number == number:
            steps = self._offering.lease(now, task, task.asked_boot, sender)
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
        self._offering.settle(task)
        return list(self._table.finish(now, task, state, exit_code, error))


def _in_order(spec: Spec) -> Spec:
    """Return the task with its pairs sorted, as the wire wants them; of a repeated key the last one counts."""
    return replace(
        spec,
        env=tuple(sorted(dict(spec.env).items())),
        labels=tuple(sorted(dict(spec.labels).items())),
        needs=tuple(sorted(dict(spec.needs).items())),
    )
