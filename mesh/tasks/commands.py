"""What clients ask of tasks and their queues, and a hook of its turns, at any node: all but `Abandon` and `Unfollow` are answered by exactly one `Answer`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from mesh.hooks.commands import TakeTurn
from mesh.queues.commands import ListQueues, SetQueue, ShowQueue
from mesh.tasks.body import Terms
from mesh.wire.work_messages import Spec


@dataclass(frozen=True, slots=True)
class New:
    """A task to be. Its id is the caller's idempotency key; "" draws a fresh one. `not_before` is Unix time; 0: now."""

    spec: Spec
    terms: Terms = field(default_factory=Terms)
    not_before: float = 0.0


@dataclass(frozen=True, slots=True)
class Submit:
    """Take this task in. Answer, once a majority of its voters holds it: `{"id": …}`.

    An id that is there already is answered with `"known": true`, its state, and whether it was asked for in the
    same words (`"same"`); nothing is started again.
    """

    command_id: int
    new: New
    timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class SubmitMany:
    """Take these in. Answer: `{"tasks": [as for Submit, or {"id": …, "error": why}…]}`, in the order given."""

    command_id: int
    news: tuple[New, ...]
    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class GetTask:
    """What a majority of its voters holds. Answer: its JSON."""

    command_id: int
    task_id: str
    timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class WhyTask(GetTask):
    """The same, with `contests`: how the latest ones for it went, as those voters that held them remember."""


LISTED: Final = 500
"""Tasks that are listed where nobody says how many."""


@dataclass(frozen=True, slots=True)
class ListTasks:
    """The newest tasks that this node votes on. Answer: `{"tasks": [JSON…], "counts": {…}, "local": in words}`."""

    command_id: int
    count_max: int = LISTED


@dataclass(frozen=True, slots=True)
class CancelTask:
    """Let it be run no more. Answer: its JSON, once it is cancelled, or is sure to be when its run was stopped."""

    command_id: int
    task_id: str
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class RetryTask:
    """Submit a dead letter's task anew. Answer: as for `Submit`, under an id that follows from the first one's.

    Asked twice, it makes one new task; a retry that is a dead letter itself is retried in its turn.
    """

    command_id: int
    task_id: str
    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Answer with a task's JSON once a majority holds that it has ended. `timeout_s` 0: however long it takes."""

    command_id: int
    task_id: str
    timeout_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Abandon:
    """Whoever gave this command waits for its answer no more: it gets none. What was begun goes on by itself."""

    command_id: int


Question: TypeAlias = (
    Submit
    | SubmitMany
    | GetTask
    | ListTasks
    | CancelTask
    | RetryTask
    | WaitFor
    | SetQueue
    | ShowQueue
    | TakeTurn
    | ListQueues
    | Abandon
)
"""What an answer is the end of."""


@dataclass(frozen=True, slots=True)
class Follow:
    """Let a watcher follow a task's output, from the first piece of its last attempt that is still held.

    Answer, once a majority was seen to hold the task: `{"id": …}`. Then `TaskChanged` says when there is something
    to take. A watcher that takes nothing for a while is dropped, and told so.
    """

    command_id: int
    watcher_id: int
    task_id: str


@dataclass(frozen=True, slots=True)
class Unfollow:
    """This watcher takes no more; harmless when there is none. Not answered."""

    watcher_id: int


TaskCommand: TypeAlias = Question | Follow | Unfollow
