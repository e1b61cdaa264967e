"""Why a task is where it is: what a majority holds of it, and how its latest contests went, as those who held them tell.

    read ─── a majority holds it ──► its voters are asked ──all have told, or the time is over──► answered
        └─── none does, or no answer: as `GetTask` says it

Source: our own.
"""

from __future__ import annotations

from typing import Any, Final

from mesh.core.ids import NodeId
from mesh.queues.settings import Strategy
from mesh.tasks.commands import WhyTask
from mesh.tasks.contest_json import contest_json
from mesh.tasks.means import Means, Step
from mesh.tasks.talk import Reply
from mesh.tasks.waiting import Getting
from mesh.wire.contest_messages import AskContest, ContestTold
from mesh.wire.register_messages import Value

TOLD_S: Final = 0.5
"""So long the voters have to tell: who does not is slow, or gone, and the rest is worth having."""


class Explaining(Getting):
    """`WhyTask`."""

    def __init__(self, number: int, means: Means, command: WhyTask) -> None:
        super().__init__(number, means, command)
        self._found: dict[str, Any] | None = None
        self._awaited: dict[NodeId, None] = {}
        self._contests: list[dict[str, Any]] = []

    def _tell_task(self, now: float, value: Value, strategy: Strategy | None) -> list[Step]:
        """Ask the voters for what they remember, once the task is known."""
        self._found = self._means.json(self._key, value, strategy=strategy)
        self._awaited = dict.fromkeys(self._means.registers.seats(self._key).voters)
        self.due = now + TOLD_S
        return [(voter, AskContest(self._task_id)) for voter in self._awaited]

    def on_reply(self, now: float, sender: NodeId, reply: Reply) -> list[Step]:
        """Take what a voter remembers."""
        del now
        if not isinstance(reply, ContestTold) or sender not in self._awaited:
            return []
        del self._awaited[sender]
        if reply.contest is not None:
            name_of = self._means.name_of
            told = contest_json(self._task_id, name_of(sender), reply.contest, name_of)
            self._contests.append(told)
        return [] if self._awaited else self._tell()

    def on_timeout(self, now: float) -> list[Step]:
        """Answer with what was told."""
        del now
        return self._tell() if self._found is not None else []

    def _tell(self) -> list[Step]:
        found = self._found or {}
        found["contests"] = sorted(self._contests, key=lambda one: one["at"])
        return self.end(found)
