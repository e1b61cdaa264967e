"""Offers: who is asked to run which attempt, and what their answers mean.

An answer that never comes leaves the question open whether the attempt runs there. The same member is
asked about the same number again, until it answers, is declared down, or was asked `offer_tries_max`
times; only then does the next number go to another member.

After it was leased an attempt is watched: an owner that was silent for `check_s` is asked whether it
still knows the attempt, and a cancelled attempt's owner is told until it answers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from typing import Final, TypeAlias

from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.placement.live_view import LiveMember
from mesh.wire.records import Card
from mesh.wire.work_messages import (
    CancelRun,
    Decline,
    Offer,
    OfferAnswer,
    ReportAnswer,
    RunQuery,
    Verdict,
)
from mesh.work.config import WorkConfig
from mesh.work.keeping.ready_queue import ReadyQueue
from mesh.work.keeping.task import Attempt, AttemptCause, Task, TaskState
from mesh.work.keeping.task_table import TaskTable
from mesh.work.post import Post, Step

Tag: TypeAlias = tuple[Hashable, ...]
OFFER: Final = "offer"
CHECK: Final = "check"
CANCEL: Final = "cancel"
VOID: Final = "void"  # the answer does not matter


class Offering:
    """Turns ready tasks into attempts that run, and asks after those."""

    def __init__(
        self,
        *,
        card: Callable[[], Card],
        table: TaskTable,
        queue: ReadyQueue,
        rng: random.Random,
        config: WorkConfig,
    ) -> None:
        self._card = card
        self._table = table
        self._queue = queue
        self._rng = rng
        self._config = config
        self._timers: Timers[tuple[str, str]] = Timers()  # (what, task id)
        self._is_stopped = False

    def offer_ready(self, now: float) -> list[Step]:
        """Offer ready tasks wherever a slot may be free."""
        steps: list[Step] = []
        while not self._is_stopped:
            picked = self._queue.take_offer(now)
            if picked is None:
                break
            steps.append(self._offer(now, *picked))
        return steps

    def lease(self, now: float, task: Task, boot: int, asked: NodeId) -> list[Step]:
        """Note that the member that was asked runs the attempt."""
        steps: list[Step] = list(self._table.lease(now, task, boot))
        self._queue.end_offer(task, asked)
        self._timers.cancel((OFFER, task.task_id))
        self._timers.set((CHECK, task.task_id), now + self._config.check_s)
        if task.is_cancel_requested:
            steps.append(self.ask_to_stop(task))
        return steps

    def lose(self, now: float, task: Task, error: str, cause: AttemptCause) -> list[Step]:
        """End the attempt that runs, or may run, without a result, and let the task wait again."""
        asked = task.asked
        steps: list[Step] = list(self._table.lose(now, task, error, cause))
        self.settle(task)
        if not task.is_terminal:
            self._queue.add(task)
        if asked is not None:
            self._queue.end_offer(task, asked)
        return steps

    def settle(self, task: Task) -> None:
        """Stop asking about a task whose attempt is over."""
        for what in (OFFER, CHECK, CANCEL):
            self._timers.cancel((what, task.task_id))
        self._queue.remove(task)

    def ask_to_stop(self, task: Task) -> Post:
        """Return the message that asks the owner of a leased task to stop it."""
        running = task.attempts[-1]
        message = CancelRun(task.task_id, running.number)
        return self._post(running.node_id, message, (CANCEL, task.task_id, running.number))

    def handle_reply(self, now: float, tag: Tag, reply: object | None) -> list[Step]:
        """Take the answer to an offer, a check or a request to stop; None: there was none."""
        what, task_id, number = tag[0], str(tag[1]), tag[2]
        task = self._table.tasks.get(task_id)
        if what == OFFER:
            return self._on_offer_answer(now, task, tag, reply)
        running = None if task is None else task.running_attempt
        if task is None or running is None or running.number != number:
            return []
        verdict = reply.verdict if isinstance(reply, ReportAnswer) else None
        if verdict is not None:
            running.heard = now
        if what == CHECK and verdict is Verdict.STALE:
            error = f"{running.name} no longer knows this attempt"
            return self.lose(now, task, error, AttemptCause.LAPSE)
        if what == CANCEL and verdict is Verdict.STALE:
            self.settle(task)
            return list(self._table.finish(now, task, TaskState.CANCELLED))
        if what == CANCEL and verdict is None:
            self._retry((CANCEL, task_id), now)
        return []

    def handle_member_down(self, now: float, node_id: NodeId, boot: int, reason: str) -> list[Step]:
        """End every attempt that was leased, or offered, to a session that is over."""
        self._queue.drop_member(node_id)
        was = "was " if reason.startswith("declared") else ""
        cause = AttemptCause.RELEASED if reason.startswith("left") else AttemptCause.CRASH
        steps: list[Step] = []
        for task in self._table.at(node_id):
            running = task.running_attempt
            name = task.asked_name if running is None else running.name
            if (task.asked_boot if running is None else running.boot) <= boot:
                steps += self.lose(now, task, f"{name} {was}{reason}", cause)
        return steps

    def end_session(self, now: float) -> list[Step]:
        """End every attempt that was given away under a number of this node's session that is over. O(tasks).

        Others may have heard that this session ended, or never have believed that it began: an
        attempt's number must not be offered again under the new one, since it would start twice.
        """
        own = self._card()
        steps: list[Step] = []
        for task in list(self._table.tasks.values()):
            running = task.running_attempt
            if running is None and task.asked is None:
                continue
            if running is not None and running.node_id != own.node_id:
                message = CancelRun(task.task_id, running.number)
                tag = (VOID, task.task_id, running.number)
                steps.append(self._post(running.node_id, message, tag))
            steps += self.lose(now, task, f"{own.name} began a new session", AttemptCause.CRASH)
        return steps

    def handle_timeout(self, now: float) -> list[Step]:
        """Repeat what was not answered, ask after silent attempts, try blocked lanes."""
        steps: list[Step] = []
        for what, task_id in self._timers.take_due(now):
            task = self._table.tasks.get(task_id)
            if task is None:
                continue
            running = task.running_attempt
            if what == OFFER and task.asked is not None:
                steps.append(self._ask(task, task.asked))
            elif what == CANCEL and running is not None:
                steps.append(self.ask_to_stop(task))
            elif what == CHECK and running is not None:
                steps += self._check(now, task, running)
        if not self._is_stopped:
            steps += [self._offer(now, *picked) for picked in self._queue.take_retries(now)]
        return steps

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do."""
        retry = None if self._is_stopped else self._queue.next_timeout()
        dues = (self._timers.next_deadline(), retry)
        return min((due for due in dues if due is not None), default=None)

    def stop(self) -> None:
        """Offer nothing more."""
        self._is_stopped = True

    def check_invariants(self) -> None:
        """Raise AssertionError if a task would be forgotten by all timers. O(tasks)."""
        tasks = self._table.tasks.values()
        self._queue.check_invariants(
            task for task in tasks if task.state is TaskState.READY and task.asked is None
        )
        for task in tasks:
            assert task.running_attempt is None or (CHECK, task.task_id) in self._timers, task

    def _offer(self, now: float, task: Task, member: LiveMember) -> Post:
        self._table.ask(now, task, member)
        return self._ask(task, member.node_id)

    def _ask(self, task: Task, node_id: NodeId) -> Post:
        task.tries += 1
        has_more = self._queue.has_more(task)
        message = Offer(task.spec, task.number, self._card().boot, has_more)
        return self._post(node_id, message, (OFFER, task.task_id, task.number, node_id, has_more))

    def _post(self, node_id: NodeId, message: object, tag: Tag) -> Post:
        return Post(node_id, message, tag, self._config.offer_timeout_s)

    def _retry(self, key: tuple[str, str], now: float) -> None:
        self._timers.set(key, now + self._config.offer_retry_s * self._rng.uniform(0.5, 1.5))

    def _check(self, now: float, task: Task, running: Attempt) -> list[Step]:
        due = running.heard + self._config.check_s
        is_due = due <= now
        self._timers.set((CHECK, task.task_id), now + self._config.check_s if is_due else due)
        if not is_due:
            return []
        query = RunQuery(task.task_id, running.number)
        return [self._post(running.node_id, query, (CHECK, task.task_id, running.number))]

    def _on_offer_answer(
        self, now: float, task: Task | None, tag: Tag, reply: object | None
    ) -> list[Step]:
        number, node_id, had_more = tag[2:]
        assert isinstance(node_id, int)
        asked = NodeId(node_id)
        answer = reply if isinstance(reply, OfferAnswer) else None
        if task is None or task.asked != asked or task.number != number:
            return self._on_late_answer(task, tag, answer)
        if answer is None:
            return self._on_no_answer(now, task, asked)
        # Before the task leaves its lane: the lane remembers who declined.
        self._queue.note_answer(
            task, asked, answer.decline, answer.free_slots, had_more=bool(had_more)
        )
        has_restarted = task.is_doubtful and answer.boot != task.asked_boot
        if answer.decline is Decline.NONE:
            return self.lease(now, task, answer.boot, asked)
        if has_restarted:
            return self.lose(now, task, f"{task.asked_name} restarted", AttemptCause.CRASH)
        return self._on_decline(now, task, asked)

    def _on_decline(self, now: float, task: Task, asked: NodeId) -> list[Step]:
        self._timers.cancel((OFFER, task.task_id))
        if task.is_doubtful:
            # An earlier copy of the question may still be on its way there: leave it an old number.
            task.number += 1
        self._table.end_offer(task)
        steps: list[Step] = []
        if task.is_cancel_requested:
            steps += self._table.finish(now, task, TaskState.CANCELLED)
        else:
            self._queue.add(task)
        self._queue.end_offer(task, asked)
        return steps

    def _on_no_answer(self, now: float, task: Task, asked: NodeId) -> list[Step]:
        task.is_doubtful = True
        self._queue.note_free(asked, 0, is_noted=True)
        if task.tries >= self._config.offer_tries_max:
            error = f"{task.asked_name} did not answer {task.tries} offers"
            return self.lose(now, task, error, AttemptCause.LAPSE)
        self._retry((OFFER, task.task_id), now)
        return []

    def _on_late_answer(
        self, task: Task | None, tag: Tag, answer: OfferAnswer | None
    ) -> list[Step]:
        """Stop an attempt that was accepted after nobody waited for it any more."""
        _, task_id, number, node_id, _ = tag
        assert isinstance(node_id, int)
        assert isinstance(number, int)
        running = None if task is None else task.running_attempt
        is_current = running is not None and (running.node_id, running.number) == (node_id, number)
        is_over = task is not None and task.is_terminal and task.number == number
        if answer is None or answer.decline is not Decline.NONE or is_current or is_over:
            return []
        return [
            self._post(NodeId(node_id), CancelRun(str(task_id), number), (VOID, task_id, number))
        ]
