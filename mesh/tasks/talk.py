"""One client's command under way: it asks registers and members until it can be answered.

Each is told of what concerns it alone: the ends of its questions, messages about its task, and the time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, TypeAlias

from mesh.core.effects import Answer
from mesh.core.ids import TASK_ID_CHARS_MAX, NodeId
from mesh.errors import DecodeError
from mesh.registers.asker import Outcome
from mesh.registers.proposal import Reason, Refused
from mesh.tasks.body import Body, task_key
from mesh.tasks.form import of_value
from mesh.tasks.means import Means, Step
from mesh.wire.contest_messages import ContestTold
from mesh.wire.register_messages import Value
from mesh.wire.task_messages import CancelAnswer, Notice

ASK: Final = "ask"
"""The first part of every tag of these questions."""

Reply: TypeAlias = CancelAnswer | Notice | ContestTold


class Talk:
    """One command. Kinds say how it goes; `is_over` once it is answered."""

    def __init__(self, number: int, command_id: int, means: Means, timeout_s: float) -> None:
        self.number = number
        self.command_id = command_id
        self.due: float | None = None
        """When `on_timeout` has something to do."""

        self.is_over = False
        self._means = means
        self._timeout_s = timeout_s

    @property
    def task_id(self) -> str:
        """The task that messages have to be about to concern this; "": none do."""
        return ""

    def begin(self, now: float) -> list[Step]:
        """Ask the first thing."""
        raise NotImplementedError

    def on_outcome(self, now: float, part: int, outcome: Outcome) -> list[Step]:
        """Take the end of the question that was tagged with `part`."""
        raise NotImplementedError

    def on_reply(self, now: float, sender: NodeId, reply: Reply) -> list[Step]:
        """Take a message about the task; most care for none."""
        del now, sender, reply
        return []

    def on_timeout(self, now: float) -> list[Step]:
        """Do what is due; most leave the time to their questions."""
        del now
        return []

    def tag(self, part: int = 0) -> Hashable:
        """Return the tag of a question."""
        return (ASK, self.number, part)

    def end(self, result: Any = None, error: str | None = None) -> list[Step]:  # noqa: ANN401 - what JSON can say
        """Answer the command."""
        self.is_over = True
        self.due = None
        return [Answer(self.command_id, result, error)]


class TaskTalk(Talk):
    """A command about one task that is there already; it begins with what a majority holds."""

    def __init__(
        self, number: int, command_id: int, means: Means, timeout_s: float, task_id: str
    ) -> None:
        super().__init__(number, command_id, means, timeout_s)
        self._task_id = task_id
        self._key = b""

    @property
    def task_id(self) -> str:
        """The task that this is about."""
        return self._task_id

    def begin(self, now: float) -> list[Step]:
        """Read what a majority holds."""
        if not 0 < len(self._task_id) <= TASK_ID_CHARS_MAX:
            return self.end(
                error=f"a task's id of 1 to {TASK_ID_CHARS_MAX} characters is expected, "
                f"found {len(self._task_id)}"
            )
        self._key = task_key(self._task_id)
        return self._read(now)

    def _read(self, now: float) -> list[Step]:
        self._means.registers.read(now, self._key, self.tag(), self._timeout_s)
        return []

    def _body(self, value: Value | None) -> Body | str:
        return read_task(self._task_id, value)

    def _late(self) -> list[Step]:
        return self.end(error=self._means.no_majority(self._key, self._timeout_s))


def read_task(task_id: str, value: Value | None) -> Body | str:
    """Return the task that was seen, or what to say instead."""
    if value is None:
        return (
            f"no task {task_id} is known: a majority of its voters has none; it was never submitted, "
            "or was forgotten some time after its end"
        )
    try:
        body = of_value(value)
    except DecodeError as error:
        return f"task {task_id} cannot be read by this version of Mesh: {error}; upgrade it"
    if body.task_id != task_id:
        return f"the record of task {task_id} is expected, found {body.task_id}'s"
    return body


def refused_text(task_id: str, refused: Refused) -> str:
    """Return what a client is told of a question that was refused."""
    if refused.reason is Reason.LEASED:
        return (
            f"task {task_id} is leased: its owner may go on for {refused.remaining_s:.1f} s at most "
            "unless it renews; try again after that"
        )
    return f"task {task_id}: nothing was changed ({refused.reason.value}); try again in a moment"
