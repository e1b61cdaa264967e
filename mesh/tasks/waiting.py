"""Reading a task, and waiting for its end: only what a majority holds counts.

Whoever waits tells the task's voters, and reads again when one says that it has ended. A notice may be lost, so it
reads now and then all the same, more seldom the longer it takes. Nobody is told when the waiting is over: other
commands of this node may go on waiting for the same task, and voters forget.
"""

from __future__ import annotations

from typing import Final

from mesh.core.ids import NodeId
from mesh.errors import DecodeError
from mesh.queues.settings import DEFAULT, Strategy, of_value, queue_key
from mesh.registers.asker import Late, Outcome
from mesh.registers.proposal import Refused
from mesh.tasks.commands import GetTask, WaitFor
from mesh.tasks.means import Means, Step
from mesh.tasks.talk import Reply, TaskTalk, refused_text
from mesh.wire.register_messages import Value
from mesh.wire.task_messages import Notice, Watch

POLL_S: Final = 1.0
POLL_S_MAX: Final = 16.0
"""Between two readings of one who waits: twice as long each time, but no longer than this."""

WATCH_S: Final = 60
"""So long the voters are asked to tell of changes, anew with every reading after half of it."""

QUEUE_S: Final = 2.0
"""So long the voters of a task's queue are waited for: the task itself is worth having without its strategy."""

_QUEUE: Final = 1
"""The part that asks about the queue."""

READ_S: Final = 5.0
"""How long one of the readings of one who waits may take."""


class Getting(TaskTalk):
    """`GetTask`. Where this node has not heard of the queue yet, its register is asked next: a home depends on it."""

    def __init__(self, number: int, means: Means, command: GetTask) -> None:
        super().__init__(number, command.command_id, means, command.timeout_s, command.task_id)
        self._value: Value | None = None
        self._queue = ""

    def on_outcome(self, now: float, part: int, outcome: Outcome) -> list[Step]:
        """Answer with what a majority holds."""
        if part == _QUEUE:
            return self._on_queue(now, outcome)
        if isinstance(outcome, Late):
            return self._late()
        if isinstance(outcome, Refused):
            return self.end(error=refused_text(self._task_id, outcome))
        body = self._body(outcome.value)
        if isinstance(body, str) or outcome.value is None:
            return self.end(error=str(body))
        self._value, self._queue = outcome.value, body.spec.queue
        strategy = self._means.strategy(now, self._queue)
        if strategy is None:
            key = queue_key(self._queue)
            self._means.registers.read(now, key, self.tag(_QUEUE), QUEUE_S)
            return []
        return self._tell_task(now, self._value, strategy)

    def _on_queue(self, now: float, outcome: Outcome) -> list[Step]:
        assert self._value is not None
        if isinstance(outcome, Refused | Late):
            return self._tell_task(now, self._value, None)
        try:
            found = outcome.value
            settings = None if found is None else of_value(self._queue, found)
        except DecodeError:
            settings = None  # by what this version cannot read, nothing is set
        self._means.learn_queue(now, self._queue, settings)
        strategy = DEFAULT if settings is None else settings.strategy
        return self._tell_task(now, self._value, strategy)

    def _tell_task(self, now: float, value: Value, strategy: Strategy | None) -> list[Step]:
        """Answer. No strategy: a majority of the queue's voters did not; then no home is named."""
        del now
        return self.end(self._means.json(self._key, value, strategy=strategy))


class Waiting(TaskTalk):
    """`WaitFor`."""

    def __init__(self, number: int, means: Means, command: WaitFor) -> None:
        super().__init__(number, command.command_id, means, READ_S, command.task_id)
        self._patience_s = command.timeout_s
        self._deadline: float | None = None
        self._pause_s = POLL_S
        self._watched_until = 0.0
        self._is_reading = False
        self._is_stale = False  # the task has ended, says a voter, since this reading began
        self._last = "is not known yet"

    def begin(self, now: float) -> list[Step]:
        """Read what a majority holds, and ask to be told of changes."""
        if self._patience_s:
            self._deadline = now + self._patience_s
        steps = super().begin(now)
        return steps if self.is_over else [*steps, *self._watch(now)]

    def on_outcome(self, now: float, part: int, outcome: Outcome) -> list[Step]:
        """Answer if it has ended; else wait on."""
        del part
        self._is_reading = False
        if isinstance(outcome, Refused | Late):
            self._last = self._means.no_majority(self._key, self._timeout_s)
            return self._wait(now)
        body = self._body(outcome.value)
        if isinstance(body, str) or outcome.value is None:
            return self.end(error=str(body))
        if body.state.is_terminal:
            return self.end(self._means.json(self._key, outcome.value))
        self._last = f"it is {body.state.word}"
        if self._is_stale:
            return self._read(now)
        return self._wait(now)

    def on_reply(self, now: float, sender: NodeId, reply: Reply) -> list[Step]:
        """Read again when a voter says that it has ended; it is not believed before a majority is."""
        if not isinstance(reply, Notice) or not reply.state.is_terminal:
            return []
        if sender not in self._means.registers.seats(self._key).voters:
            return []
        if self._is_reading:
            self._is_stale = True
            return []
        return self._read(now)

    def on_timeout(self, now: float) -> list[Step]:
        """Read again, or give up."""
        if self._deadline is not None and now >= self._deadline:
            return self.end(
                error=f"task {self._task_id} has not ended within {self._patience_s:g} s: {self._last}"
            )
        return [] if self._is_reading else [*self._read(now), *self._watch(now)]

    # Inside.

    def _read(self, now: float) -> list[Step]:
        self._is_reading, self._is_stale = True, False
        self.due = self._deadline
        return super()._read(now)

    def _wait(self, now: float) -> list[Step]:
        pause_s = self._pause_s * self._means.rng.uniform(0.5, 1.0)
        self._pause_s = min(2 * self._pause_s, POLL_S_MAX)
        self.due = now + pause_s if self._deadline is None else min(now + pause_s, self._deadline)
        return []

    def _watch(self, now: float) -> list[Step]:
        if now < self._watched_until:
            return []
        self._watched_until = now + WATCH_S / 2
        voters = self._means.registers.seats(self._key).voters
        return [(voter, Watch(self._task_id, WATCH_S)) for voter in voters]
