"""Setting a queue's strategy and weights, and showing them: a majority of the voters of the queue's register is asked.

What a command finds so is known at this node from then on (`mesh.queues.book`); other nodes hear of it when they ask.
"""

from __future__ import annotations

from typing import Any

from mesh.contest.weighing import shown as weights_shown
from mesh.errors import ConfigError, DecodeError
from mesh.placement.rendezvous import hash64
from mesh.queues.change import ChangeSettings
from mesh.queues.commands import SetQueue, ShowQueue
from mesh.queues.settings import DEFAULT, QueueSettings, check_name, of_value, queue_key
from mesh.registers.asker import Late, Outcome
from mesh.registers.proposal import Reason, Refused
from mesh.tasks.means import Means, Step
from mesh.tasks.talk import Talk
from mesh.wire.register_messages import Value


class _QueueTalk(Talk):
    """A command about one queue."""

    def __init__(self, number: int, means: Means, command: SetQueue | ShowQueue) -> None:
        super().__init__(number, command.command_id, means, command.timeout_s)
        self._queue = command.queue

    def begin(self, now: float) -> list[Step]:
        """Ask, if a queue can have this name."""
        try:
            check_name(self._queue)
        except ConfigError as error:
            return self.end(error=str(error))
        self._ask(now, queue_key(self._queue))
        return []

    def _ask(self, now: float, key: bytes) -> None:
        raise NotImplementedError

    def _late(self) -> str:
        return self._means.no_majority(queue_key(self._queue), self._timeout_s, "queue")

    def _take(self, now: float, value: Value | None) -> QueueSettings | None:
        """Read what a majority holds, and have it known here.

        Raises:
            DecodeError: this version cannot read it.
        """
        settings = None if value is None else of_value(self._queue, value)
        self._means.learn_queue(now, self._queue, settings)
        return settings

    def _unread(self, error: DecodeError | None = None) -> list[Step]:
        why = "" if error is None else f" ({error})"
        return self.end(
            error=f"what is set for queue {self._queue} cannot be read by this version of Mesh{why}, and stays as it "
            "is: upgrade this node, or ask at one of a later version"
        )


class SettingQueue(_QueueTalk):
    """`SetQueue`."""

    def __init__(self, number: int, means: Means, command: SetQueue) -> None:
        super().__init__(number, means, command)
        self._strategy, self._weights = command.strategy, command.weights
        self._mark = 0
        self._change: ChangeSettings | None = None

    def _ask(self, now: float, key: bytes) -> None:
        means = self._means
        own = means.own
        self._mark = hash64(f"{own.boot}/{self.number}", own.node_id)  # of this command alone
        self._change = change = ChangeSettings(
            queue=self._queue,
            strategy=self._strategy,
            weights=self._weights,
            at=means.unix(now),
            by=means.card().name,
            mark=self._mark,
        )
        means.registers.propose(now, key, change, self.tag(), self._timeout_s)

    def on_outcome(self, now: float, part: int, outcome: Outcome) -> list[Step]:
        """Answer with what holds now, and what this command has to do with it."""
        del part
        if isinstance(outcome, Late):
            text = self._late()
            if outcome.may_be_chosen:
                text += (
                    f". It may have been set all the same: mesh queue show {self._queue} says so"
                )
            return self.end(error=text)
        if isinstance(outcome, Refused) and outcome.reason is Reason.LEASED:
            return self.end(
                error=f"queue {self._queue}: nothing was set, somebody holds its register for "
                f"{outcome.remaining_s:.1f} s more; try again after that"
            )
        if isinstance(outcome, Refused):
            if self._change is not None and self._change.leaves_nothing(outcome.found):
                return self.end(
                    error=f"queue {self._queue}: nothing was set, as no part of a fitness would count any more beside what is "
                    "set already: give one part a weight above 0, or set all back with --weight default"
                )
            return self._unread()
        try:
            settings = self._take(now, outcome.value)
        except DecodeError as error:
            return self._unread(error)
        return self.end({**shown(self._queue, settings), "outcome": self._became(settings)})

    def _became(self, settings: QueueSettings | None) -> str:
        marks = () if settings is None else settings.marks
        if self._mark not in marks:
            return "kept"
        return "set" if marks[0] == self._mark else "overtaken"


class ShowingQueue(_QueueTalk):
    """`ShowQueue`."""

    def _ask(self, now: float, key: bytes) -> None:
        self._means.registers.read(now, key, self.tag(), self._timeout_s)

    def on_outcome(self, now: float, part: int, outcome: Outcome) -> list[Step]:
        """Answer with what a majority holds."""
        del part
        if isinstance(outcome, Late | Refused):
            return self.end(error=self._late())
        try:
            settings = self._take(now, outcome.value)
        except DecodeError as error:
            return self._unread(error)
        return self.end(shown(self._queue, settings))


def shown(queue: str, settings: QueueSettings | None) -> dict[str, Any]:
    """Return a queue's setting, JSON-ready; None: nobody has set any."""
    weights = () if settings is None else settings.weights
    return {
        "queue": queue,
        "strategy": str(DEFAULT if settings is None else settings.strategy),
        "weights": weights_shown(weights),
        "default_weights": not weights,
        "set_at": None if settings is None else settings.set_at,
        "set_by": None if settings is None else settings.set_by,
    }
