"""The client's side at any node: every command is a talk of its own, which ends with one `Answer`.

Submitting, reading, cancelling, retrying and waiting ask a majority of a task's voters (`submitting.py`,
`waiting.py`, `cancelling.py`); what is about queues, those of a queue (`queueing.py`), and the turns of a hook those of that (`turn_taking.py`). A list shows what this node keeps itself, and says so.

What it asks of registers comes back as `Done` under a tag that begins with `ASK`; what it says to members is
returned, beside answers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Any, Final

from mesh.core.effects import Answer
from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.errors import DecodeError
from mesh.hooks.commands import TakeTurn
from mesh.queues.commands import ListQueues, SetQueue, ShowQueue
from mesh.registers.asker import Done
from mesh.registers.record import Record
from mesh.tasks.cancelling import Cancelling
from mesh.tasks.commands import (
    Abandon,
    CancelTask,
    GetTask,
    ListTasks,
    Question,
    RetryTask,
    Submit,
    SubmitMany,
    WaitFor,
    WhyTask,
)
from mesh.tasks.entry import KeptTask
from mesh.tasks.explaining import Explaining
from mesh.tasks.form import of_value
from mesh.tasks.listing import Listing
from mesh.tasks.means import Means, Step
from mesh.tasks.queue_listing import QueueListing
from mesh.tasks.queueing import SettingQueue, ShowingQueue
from mesh.tasks.show import task_json
from mesh.tasks.submitting import Retrying, Submitting
from mesh.tasks.talk import ASK, Reply, Talk
from mesh.tasks.waiting import Getting, Waiting
from mesh.wire.contest_messages import ContestTold
from mesh.wire.register_messages import Standing, Value
from mesh.wire.task_messages import CancelAnswer, Notice, TaskState

__all__ = ["ASK", "Asking"]

TALKS_MAX: Final = 10_000
"""Commands under way at once; those that wait for a task's end are counted too."""

LIST_MAX: Final = 2_000
"""Tasks of one list: more would keep the node from its other work for too long."""


class Asking:
    """All commands of this node's clients about tasks."""

    MESSAGES: Final = frozenset({CancelAnswer, Notice, ContestTold})

    def __init__(self, means: Means, kept: Iterable[KeptTask] = ()) -> None:
        """Begin; `kept` is what this node's voter keeps of tasks, in the order of their making."""
        self._means = means
        self._listing = Listing(kept)
        self._queues = QueueListing(means)
        self._last = 0
        self._talks: dict[int, Talk] = {}
        self._by_command: dict[int, int] = {}
        self._by_task: dict[str, dict[int, None]] = {}
        self._timers: Timers[int] = Timers()
        self._shown: dict[bytes, tuple[Value, dict[str, Any]]] = {}
        """What is final, and its short JSON, of the latest `LIST_MAX` that were listed; who was listed last is last."""

    def __len__(self) -> int:
        return len(self._talks)

    def handle_command(self, now: float, command: Question) -> list[Step]:
        """Take a client's command."""
        if isinstance(command, Abandon):
            number = self._by_command.get(command.command_id)
            if number is not None:
                self._close(number)
            return []
        if isinstance(command, ListTasks):
            return [self._list(command)]
        if isinstance(command, ListQueues):
            return [self._queues.answer(command)]
        if len(self._talks) >= TALKS_MAX:
            error = (
                f"at most {TALKS_MAX} commands about tasks may be under way at one node: try again in a "
                "moment, or at another node"
            )
            return [Answer(command.command_id, None, error)]
        self._last += 1
        talk = self._talk(self._last, command)
        self._talks[talk.number] = talk
        self._by_command[talk.command_id] = talk.number
        if talk.task_id:
            self._by_task.setdefault(talk.task_id, {})[talk.number] = None
        return self._after(talk, talk.begin(now))

    def handle_message(self, now: float, sender: NodeId, message: Reply) -> list[Step]:
        """Take one of `MESSAGES`; what nobody waits for is dropped."""
        steps: list[Step] = []
        for number in list(self._by_task.get(message.task_id, ())):
            talk = self._talks[number]
            steps += self._after(talk, talk.on_reply(now, sender, message))
        return steps

    def handle_done(self, now: float, done: Done) -> list[Step]:
        """Take the end of a question whose tag begins with `ASK`."""
        tag: Hashable = done.tag
        assert isinstance(tag, tuple)
        assert tag[0] == ASK
        _, number, part = tag
        talk = self._talks.get(number)
        return [] if talk is None else self._after(talk, talk.on_outcome(now, part, done.outcome))

    def handle_changed(self, key: bytes, record: Record) -> TaskState | None:
        """Note what this voter holds of a register now; return where its task was, None: not known here."""
        if key in self._shown and self._shown[key][0] is not record.value:
            del self._shown[key]
        self._queues.changed(key)
        return self._listing.changed(key, record)

    def handle_timeout(self, now: float) -> list[Step]:
        """Do what is due; early, twice or late is harmless."""
        steps: list[Step] = []
        for number in self._timers.take_due(now):
            talk = self._talks[number]
            steps += self._after(talk, talk.on_timeout(now))
        return steps

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do, or None."""
        return self._timers.next_deadline()

    def counts(self) -> dict[str, int]:
        """Return how many of the tasks that this node votes on are in each state."""
        return self._listing.counts()

    def newest(self, count_max: int) -> list[dict[str, Any]]:
        """Return the newest tasks that this node votes on, as it knows them, in short JSON; nobody may change it.

        What is final is decoded once for as long as it is listed: a status is asked for more often than tasks end.
        """
        voter = self._means.registers.voter
        shown = self._shown
        tasks = []
        for key in self._listing.newest(min(count_max, LIST_MAX)):
            value = voter.record(key).value
            if value is None:
                continue
            known = shown.pop(key, None)
            if known is None or known[0] is not value:
                try:
                    body = of_value(value)
                except DecodeError:
                    continue  # of a later version: counted, but not shown
                known = (
                    value,
                    task_json(
                        body, self._means.seen(key, body), self._means.name_of, is_short=True
                    ),
                )
            if value.standing is Standing.FINAL:
                shown[key] = known
            tasks.append(known[1])
        # Only now: whom the first of this list would push out may be the second.
        for key in list(islice(shown, max(0, len(shown) - LIST_MAX))):
            del shown[key]
        return tasks

    def check_invariants(self) -> None:
        """Raise AssertionError if a command is remembered that is answered, or counts are wrong. O(tasks)."""
        assert all(not talk.is_over for talk in self._talks.values())
        assert set(self._by_command.values()) == set(self._talks)
        assert all(self._by_task.values())
        assert {n for those in self._by_task.values() for n in those} <= self._talks.keys()
        assert set(self._timers) == {n for n, talk in self._talks.items() if talk.due is not None}
        assert len(self._shown) <= LIST_MAX
        self._listing.check_invariants()

    # Inside.

    def _talk(
        self,
        number: int,
        command: Submit
        | SubmitMany
        | GetTask
        | CancelTask
        | RetryTask
        | WaitFor
        | SetQueue
        | ShowQueue
        | TakeTurn,
    ) -> Talk:
        match command:
            case Submit() | SubmitMany():
                return Submitting(number, self._means, command)
            case WhyTask():
                return Explaining(number, self._means, command)
            case GetTask():
                return Getting(number, self._means, command)
            case CancelTask():
                return Cancelling(number, self._means, command)
            case RetryTask():
                return Retrying(number, self._means, command)
            case WaitFor():
                return Waiting(number, self._means, command)
            case SetQueue():
                return SettingQueue(number, self._means, command)
            case ShowQueue():
                return ShowingQueue(number, self._means, command)
            case TakeTurn():
                from mesh.tasks.turn_taking import TakingTurn  # noqa: PLC0415 - few nodes have hooks

                return TakingTurn(number, self._means, command)

    def _after(self, talk: Talk, steps: list[Step]) -> list[Step]:
        """Keep the timers and tables as the talk left things."""
        if talk.is_over:
            self._close(talk.number)
        elif talk.due is None:
            self._timers.cancel(talk.number)
        else:
            self._timers.set(talk.number, talk.due)
        return steps

    def _close(self, number: int) -> None:
        talk = self._talks.pop(number)
        self._by_command.pop(talk.command_id, None)
        self._timers.cancel(number)
        those = self._by_task.get(talk.task_id, {})
        those.pop(number, None)
        if not those:
            self._by_task.pop(talk.task_id, None)

    def _list(self, command: ListTasks) -> Answer:
        name = self._means.card().name
        local = (
            f"the tasks that {name} votes on, as it knows them; `mesh task ID` asks a majority of "
            "a task's voters"
        )
        data = {
            "tasks": self.newest(command.count_max),
            "counts": self._listing.counts(),
            "local": local,
        }
        return Answer(command.command_id, data)
