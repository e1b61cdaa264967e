"""The follower's side at any node: its clients' watchers, and the tasks that they follow.

    Follow ──► a majority holds it? ──► {"id"} ──► a trail: read ── Notice, or a while ──► read again …
                                                     ▲ Piece, FollowEnd      │ Follow
                                                     └──── the owner of each attempt, one after the other

What a task's attempt is at and where, only its record says. A notice is a hint to read; it may be lost, so it is
read now and then all the same, more seldom the longer nothing changes.

A watcher takes by itself (`take_watch`), and `TaskChanged` wakes it. One that has something to take and takes
nothing for a while is dropped.

Source: our own.
"""

from __future__ import annotations

from typing import Any, Final

from mesh.core.effects import Answer, TaskChanged
from mesh.core.ids import TASK_ID_CHARS_MAX, NodeId
from mesh.core.timers import Timers
from mesh.registers.asker import Done, Late
from mesh.registers.proposal import Refused
from mesh.tasks.body import task_key
from mesh.tasks.commands import Abandon, Follow, Unfollow
from mesh.tasks.config import TasksConfig
from mesh.tasks.effects import Step
from mesh.tasks.means import Means
from mesh.tasks.talk import read_task, refused_text
from mesh.tasks.trail import NEVER, Trail, Watcher
from mesh.tasks.waiting import POLL_S, POLL_S_MAX, READ_S, WATCH_S
from mesh.tasks.window import SIZE_MAX
from mesh.wire.register_messages import Value
from mesh.wire.task_messages import FollowEnd, Notice, Piece, Watch

FOLLOW: Final = "follow"
"""The first part of every tag of these questions."""

WINDOWS_TOTAL: Final = 1_024
"""Pieces of all watchers together: where there are many, each one's window is smaller."""


class Following:
    """All that this node's clients follow."""

    MESSAGES: Final = frozenset({Piece, FollowEnd, Notice})

    def __init__(self, means: Means, config: TasksConfig) -> None:
        self._means = means
        self._config = config
        self._trails: dict[str, Trail] = {}
        self._by_number: dict[int, str] = {}
        self._last = 0
        self._watchers: dict[int, Watcher] = {}
        self._timers: Timers[str] = Timers()  # of trails
        self._stalls: Timers[int] = Timers()  # of watchers that have something to take

    def handle_command(self, now: float, command: Follow | Unfollow | Abandon) -> list[Step]:
        """Take a client's command."""
        if isinstance(command, Unfollow):
            return self._forget(now, command.watcher_id)
        if isinstance(command, Abandon):
            number = command.command_id
            asked = [one for one in self._watchers.values() if one.command_id == number]
            return [step for one in asked for step in self._forget(now, one.watcher_id)]
        return self._follow(now, command)

    def handle_message(
        self, now: float, sender: NodeId, message: Piece | FollowEnd | Notice
    ) -> list[Step]:
        """Take one of `MESSAGES`; what nobody asked for is dropped."""
        trail = self._trails.get(message.task_id)
        if trail is None:
            return []
        if isinstance(message, Notice):
            return self._on_notice(now, sender, trail, message)
        if isinstance(message, FollowEnd):
            is_news = trail.end(now, sender, message)
            if is_news and trail.read_due != NEVER:
                trail.pause_s, trail.read_due = 0.0, min(trail.read_due, now + POLL_S)
        else:
            is_news = trail.add(now, sender, message, self._size)
        return self._advance(now, trail) if is_news else []

    def handle_done(self, now: float, done: Done) -> list[Step]:
        """Take the end of a question whose tag begins with `FOLLOW`."""
        assert isinstance(done.tag, tuple)
        trail = self._trails.get(self._by_number.get(done.tag[1], ""))
        if trail is None:
            return []
        trail.is_reading = False
        outcome = done.outcome
        if isinstance(outcome, Late | Refused):
            error = (
                self._means.no_majority(trail.key, READ_S)
                if isinstance(outcome, Late)
                else refused_text(trail.task_id, outcome)
            )
            steps = self._refuse(now, trail, error) if trail.body is None else []
            self._wait(now, trail)
            return steps + self._advance(now, trail)
        return self._on_value(now, trail, outcome.value)

    def take_watch(self, watcher_id: int) -> tuple[list[tuple[int, bytes]], dict[str, Any] | None]:
        """Return the pieces (stream, data) that a watcher has not taken, and its task's JSON once that has ended.

        The JSON comes with the last pieces. A watcher that is unknown, or was dropped because it took nothing for
        `watcher_stall_s`, gets no pieces and `{"watch_error": why}` with what is known of the task. When a new
        attempt starts, its pieces come after all of the one before. Where nothing of the last attempt could be had,
        the pieces are the tails that the task's result holds.
        """
        watcher = self._watchers.get(watcher_id)
        if watcher is None:
            return [], {
                "watch_error": "this watcher is not known: it was never answered, or has left"
            }
        trail = self._trails[watcher.task_id]
        if watcher.error:
            return [], {**trail.json, "watch_error": watcher.error}
        self._stalls.cancel(watcher_id)
        return trail.take(watcher), watcher.task

    def handle_timeout(self, now: float) -> list[Step]:
        """Read again, ask again, drop who takes nothing; early, twice or late is harmless."""
        steps: list[Step] = []
        for watcher_id in self._stalls.take_due(now):
            error = f"nothing was taken for {self._config.watcher_stall_s:.0f} s"
            steps += self._drop(now, self._watchers[watcher_id], error)
        for task_id in self._timers.take_due(now):
            trail = self._trails[task_id]
            if now >= trail.read_due:
                steps += self._read(now, trail)
            steps += self._advance(now, trail)
        return steps

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do, or None."""
        dues = (self._timers.next_deadline(), self._stalls.next_deadline())
        return min((due for due in dues if due is not None), default=None)

    def check_invariants(self) -> None:
        """Raise AssertionError if a watcher is without its trail, a trail without watchers, or a feed without either."""
        those = {
            watcher_id: (task_id, watcher)
            for task_id, trail in self._trails.items()
            for watcher_id, watcher in trail.watchers.items()
        }
        assert those.keys() == self._watchers.keys()
        for watcher_id, (task_id, watcher) in those.items():
            assert (watcher.watcher_id, watcher.task_id) == (watcher_id, task_id)
        assert set(self._by_number.values()) == set(self._trails)
        assert set(self._timers) <= set(self._trails)
        assert set(self._stalls) <= set(self._watchers)
        for trail in self._trails.values():
            assert trail.watchers
            assert trail.body is not None or trail.is_reading
            for attempt, feed in trail.feeds.items():
                at_it = [
                    one for one in trail.watchers.values() if one.watcher_id in feed.window.places
                ]
                assert at_it
                assert all(one.attempt == attempt for one in at_it)
                feed.check_invariants()

    # Commands.

    @property
    def _size(self) -> int:
        return max(1, min(SIZE_MAX, WINDOWS_TOTAL // max(1, len(self._watchers))))

    def _follow(self, now: float, command: Follow) -> list[Step]:
        task_id, watcher_id = command.task_id, command.watcher_id
        error = ""
        if not 0 < len(task_id) <= TASK_ID_CHARS_MAX:
            error = f"a task's id of 1 to {TASK_ID_CHARS_MAX} characters is expected, found {len(task_id)}"
        elif watcher_id not in self._watchers and len(self._watchers) >= self._config.watchers_max:
            error = f"at most {self._config.watchers_max} clients of one node may follow tasks: ask at another node"
        if error:
            return [Answer(command.command_id, None, error)]
        steps = self._forget(now, watcher_id)
        trail = self._trails.get(task_id)
        if trail is None:
            self._last += 1
            trail = self._trails[task_id] = Trail(self._last, task_id, task_key(task_id))
            self._by_number[trail.number] = task_id
            steps += self._read(now, trail)
        watcher = Watcher(watcher_id, task_id, command.command_id)
        self._watchers[watcher_id] = trail.watchers[watcher_id] = watcher
        return steps + self._answer(trail) + self._advance(now, trail)

    def _answer(self, trail: Trail) -> list[Step]:
        if trail.body is None:
            return []
        steps: list[Step] = []
        for watcher in trail.watchers.values():
            if watcher.command_id is not None:
                steps.append(Answer(watcher.command_id, {"id": trail.task_id}))
                watcher.command_id = None
        return steps

    def _refuse(self, now: float, trail: Trail, error: str) -> list[Step]:
        """Tell everybody that the task cannot be followed: who was not answered yet in an answer."""
        steps: list[Step] = []
        for watcher in list(trail.watchers.values()):
            if watcher.command_id is None:
                steps += self._drop(now, watcher, error)
            else:
                steps.append(Answer(watcher.command_id, None, error))
                steps += self._forget(now, watcher.watcher_id)
        return steps

    def _drop(self, now: float, watcher: Watcher, error: str) -> list[Step]:
        """Let a watcher hold nothing up any more, and wake it to be told."""
        trail = self._trails[watcher.task_id]
        watcher.error = error
        watcher.rest = []
        self._stalls.cancel(watcher.watcher_id)
        return [*trail.leave(watcher), TaskChanged(trail.task_id), *self._advance(now, trail)]

    def _forget(self, now: float, watcher_id: int) -> list[Step]:
        watcher = self._watchers.pop(watcher_id, None)
        if watcher is None:
            return []
        self._stalls.cancel(watcher_id)
        trail = self._trails[watcher.task_id]
        steps: list[Step] = list(trail.leave(watcher))
        del trail.watchers[watcher_id]
        if trail.watchers:
            return steps + self._advance(now, trail)
        del self._trails[trail.task_id]
        del self._by_number[trail.number]
        self._timers.cancel(trail.task_id)
        return steps

    # A trail.

    def _advance(self, now: float, trail: Trail) -> list[Step]:
        """Go on as far as possible, wake who has something to take, and arm the timers anew."""
        if self._trails.get(trail.task_id) is not trail:
            return []  # the last of its watchers has left meanwhile
        steps: list[Step] = list(trail.advance(now, self._size, self._lost(trail)))
        is_news = False
        for watcher in trail.watchers.values():
            if (
                not watcher.error
                and watcher.watcher_id not in self._stalls
                and trail.has_any(watcher)
            ):
                self._stalls.set(watcher.watcher_id, now + self._config.watcher_stall_s)
                is_news = True
        if is_news:
            steps.append(TaskChanged(trail.task_id))
        due = trail.due
        if due is None:
            self._timers.cancel(trail.task_id)
        else:
            self._timers.set(trail.task_id, due)
        return steps

    def _lost(self, trail: Trail) -> frozenset[NodeId]:
        own = self._means.own.node_id
        owners = [feed.owner for feed in trail.feeds.values()]
        return frozenset(
            owner for owner in owners if owner != own and self._means.view.get(owner) is None
        )

    # Reading.

    def _read(self, now: float, trail: Trail) -> list[Step]:
        """Ask a majority, and to be told of changes."""
        trail.is_reading, trail.read_due = True, NEVER
        trail.noticed.clear()
        self._means.registers.read(now, trail.key, (FOLLOW, trail.number), READ_S)
        if now < trail.watched_until:
            return []
        trail.watched_until = now + WATCH_S / 2
        voters = self._means.registers.seats(trail.key).voters
        return [(voter, Watch(trail.task_id, WATCH_S)) for voter in voters]

    def _wait(self, now: float, trail: Trail) -> None:
        pause_s = trail.pause_s or POLL_S
        trail.pause_s = min(2 * pause_s, POLL_S_MAX)
        trail.read_due = now + pause_s * self._means.rng.uniform(0.5, 1.0)

    def _on_value(self, now: float, trail: Trail, value: Value | None) -> list[Step]:
        body = read_task(trail.task_id, value)
        if isinstance(body, str) or value is None:
            steps = self._refuse(now, trail, str(body))
            trail.read_due = NEVER
            return steps + self._advance(now, trail)
        if trail.body is not None and body.attempt != trail.body.attempt:
            trail.pause_s = 0.0
        trail.body, trail.json = body, self._means.json(trail.key, value)
        steps = self._answer(trail)
        if body.state.is_terminal:
            trail.read_due = NEVER
        elif any(trail.differs(*noticed) for noticed in trail.noticed):
            steps += self._read(now, trail)
        else:
            self._wait(now, trail)
        return steps + self._advance(now, trail)

    def _on_notice(self, now: float, sender: NodeId, trail: Trail, notice: Notice) -> list[Step]:
        """Read again when a voter says something else than was read; it is not believed before a majority is."""
        if trail.is_terminal or sender not in self._means.registers.seats(trail.key).voters:
            return []
        if trail.is_reading:
            trail.note(notice)
            return []
        if not trail.differs(notice.state, notice.attempt):
            return []
        trail.pause_s = 0.0
        return [*self._read(now, trail), *self._advance(now, trail)]
