"""The tasks that this node accepted, and the ways a task's record changes.

Every change of a task's state passes through here, so that counts, indexes, events and watchers
follow it. What to do next is decided elsewhere (`keeper.py`, `offering.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import islice

from mesh.core.effects import Effect, Emit, TaskChanged
from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveMember
from mesh.wire.work_messages import Spec
from mesh.work.config import WorkConfig
from mesh.work.keeping.output import OutputStore
from mesh.work.keeping.task import TERMINAL, Attempt, AttemptCause, Task, TaskState


@dataclass(slots=True)
class TaskTable:
    """All tasks by id, oldest first.

    Invariant: `counts` and `by_node` say what the tasks say.
    """

    config: WorkConfig
    unix_offset_s: float
    output: OutputStore
    tasks: dict[str, Task] = field(default_factory=dict)
    counts: dict[TaskState, int] = field(default_factory=lambda: dict.fromkeys(TaskState, 0))
    by_node: dict[NodeId, dict[str, None]] = field(default_factory=dict)  # asked or leased there
    finished: OrderedDict[str, None] = field(default_factory=OrderedDict)
    forgotten: int = 0  # finished tasks that made room for others
    submitted: int = 0

    @property
    def unfinished(self) -> int:
        """Tasks whose state is not final."""
        return len(self.tasks) - len(self.finished)

    def unix(self, now: float) -> float:
        """Return `now` as Unix time, for people."""
        return now + self.unix_offset_s

    def add(self, now: float, spec: Spec) -> Task:
        """Keep a new task. The caller has checked that there is room and that the id is new."""
        self.submitted += 1
        task = Task(spec, self.submitted, self.unix(now))
        self.tasks[spec.task_id] = task
        self.counts[TaskState.READY] += 1
        while len(self.tasks) > self.config.tasks_max and self.finished:
            self._forget_oldest()
        return task

    def ask(self, now: float, task: Task, member: LiveMember) -> None:
        """Note that the task's attempt is being offered to `member`."""
        task.asked, task.asked_boot, task.asked_name = member.node_id, member.boot, member.name
        task.asked_at = self.unix(now)
        self.by_node.setdefault(member.node_id, {})[task.task_id] = None

    def end_offer(self, task: Task) -> None:
        """Note that it is offered to nobody any more."""
        self._unlink(task.asked, task)
        task.forget_offer()

    def lease(self, now: float, task: Task, boot: int) -> list[Effect]:
        """Note that whoever was asked runs the attempt, in session `boot`."""
        attempt = self._attempt(task, boot)
        attempt.heard = now
        node_id = attempt.node_id
        self.end_offer(task)
        self.by_node.setdefault(node_id, {})[task.task_id] = None
        if task.attempts:
            self.output.start_attempt(task.task_id)
        task.attempts.append(attempt)
        self._become(task, TaskState.LEASED)
        return self._changed(task, attempt, attempt.cause.value, f"attempt {attempt.number}")

    def lose(self, now: float, task: Task, error: str, cause: AttemptCause) -> list[Effect]:
        """End the attempt that runs, or may run, without a result: the task is ready for the next one.

        `cause` is why the next attempt will start. A task that was to be cancelled is cancelled.
        """
        attempt = task.running_attempt
        if attempt is None:
            attempt = self._attempt(task, task.asked_boot)
            task.attempts.append(attempt)
            self.end_offer(task)
        else:
            self._unlink(attempt.node_id, task)
        attempt.ended, attempt.error = self.unix(now), error
        if len(task.attempts) > self.config.attempts_max:
            del task.attempts[1]  # the first one tells when it began, the latest ones how it goes
        if task.state is TaskState.LEASED:
            self._become(task, TaskState.READY)
        task.number, task.cause = task.number + 1, cause
        effects = self._changed(task, attempt, cause.value, error)
        if task.is_cancel_requested:
            effects += self.finish(now, task, TaskState.CANCELLED)
        return effects

    def finish(
        self,
        now: float,
        task: Task,
        state: TaskState,
        exit_code: int | None = None,
        error: str = "",
    ) -> list[Effect]:
        """Give a task its final state; with an exit code, the last attempt ended with it."""
        attempt = task.attempts[-1] if task.attempts else None
        if attempt is not None and (attempt.ended is None or exit_code is not None):
            attempt.ended = self.unix(now)
            attempt.exit_code, attempt.error = exit_code, error
        running = task.running_attempt
        if running is not None:
            self._unlink(running.node_id, task)
        if task.asked is not None:
            self.end_offer(task)
        self._become(task, state)
        task.ended = self.unix(now)
        self.finished[task.task_id] = None
        self.output.finish(task.task_id)
        if len(self.finished) > self.config.finished_max:
            self._forget_oldest()
        detail = error or ("" if exit_code is None else f"exit code {exit_code}")
        if detail and attempt is not None:
            detail += f" (attempt {attempt.number})"
        return self._changed(task, attempt, "", detail)

    def at(self, node_id: NodeId) -> list[Task]:
        """Return the tasks that are offered to, or run at, a member. O(those)."""
        return [self.tasks[task_id] for task_id in self.by_node.get(node_id, ())]

    def newest(self, count_max: int) -> list[Task]:
        """Return the tasks that were submitted last, newest first."""
        return list(islice(reversed(self.tasks.values()), count_max))

    def check_invariants(self) -> None:
        """Raise AssertionError if an index disagrees with the tasks. O(tasks)."""
        counts = dict.fromkeys(TaskState, 0)
        linked: dict[NodeId, dict[str, None]] = {}
        for task_id, task in self.tasks.items():
            task.check_invariants()
            counts[task.state] += 1
            running = task.running_attempt
            node_id = running.node_id if running is not None else task.asked
            if node_id is not None:
                linked.setdefault(node_id, {})[task_id] = None
            assert (task_id in self.finished) == task.is_terminal
        assert counts == self.counts
        assert linked == self.by_node
        assert len(self.finished) == sum(counts[state] for state in TERMINAL)
        assert len(self.finished) <= self.config.finished_max

    def _attempt(self, task: Task, boot: int) -> Attempt:
        assert task.asked is not None
        return Attempt(
            task.number, task.asked, boot, task.asked_name, task.cause, started=task.asked_at
        )

    def _become(self, task: Task, state: TaskState) -> None:
        self.counts[task.state] -= 1
        task.become(state)
        self.counts[state] += 1

    def _unlink(self, node_id: NodeId | None, task: Task) -> None:
        if node_id is not None:
            held = self.by_node[node_id]
            del held[task.task_id]
            if not held:
                del self.by_node[node_id]

    def _forget_oldest(self) -> None:
        self.forgotten += 1
        task_id, _ = self.finished.popitem(last=False)
        task = self.tasks.pop(task_id)
        self.counts[task.state] -= 1
        self.output.forget(task_id)

    def _changed(
        self, task: Task, attempt: Attempt | None, cause: str, detail: str
    ) -> list[Effect]:
        event = Event(
            kind=EventKind.TASK,
            member_id=None if attempt is None else attempt.node_id,
            member="" if attempt is None else attempt.name,
            state=task.state.value,
            cause=cause,
            detail=detail,
            task_id=task.task_id,
        )
        return [Emit(event), TaskChanged(task.task_id)]
