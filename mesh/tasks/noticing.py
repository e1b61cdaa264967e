"""A voter's side of `Watch`: who is told when a task changes here.

A notice is a hint, sent once: it says what is durable at one voter. Watchers are nodes; each is remembered for as
long as it asked, and no longer than until the task has ended.
"""

from __future__ import annotations

from typing import Final

from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.registers.record import Record
from mesh.tasks.body import Head, is_task_key, task_key
from mesh.tasks.entry import head_of
from mesh.wire.task_messages import Notice, Watch

WATCHES_MAX: Final = 100_000
"""Pairs of a task and a node that watches it. One more is not remembered: whoever waits reads now and then as well."""


class Noticing:
    """Who watches which task of this voter's."""

    def __init__(self) -> None:
        self._watchers: dict[bytes, dict[NodeId, None]] = {}
        self._told: dict[bytes, tuple[int, int]] = {}  # state and attempt, as was said last
        self._timers: Timers[tuple[bytes, NodeId]] = Timers()
        self.turned_away = 0
        """Watches that found no room."""

    def __len__(self) -> int:
        return len(self._timers)

    def watch(
        self, now: float, sender: NodeId, message: Watch, record: Record
    ) -> list[tuple[NodeId, Notice]]:
        """Remember a watcher, and tell it what is held: `record` is this voter's of that task."""
        key = task_key(message.task_id)
        if not message.seconds:
            self._forget(key, sender)
            return []
        head = head_of(record)
        if head is None or not head.state.is_terminal:
            pair = (key, sender)
            if pair not in self._timers and len(self._timers) >= WATCHES_MAX:
                self.turned_away += 1
            else:
                self._timers.set(pair, now + message.seconds)
                self._watchers.setdefault(key, {})[sender] = None
                if head is not None:
                    self._told.setdefault(key, (head.state, head.attempt))
        return [] if head is None else [(sender, _notice(head, record))]

    def changed(self, key: bytes, record: Record) -> list[tuple[NodeId, Notice]]:
        """Tell the watchers of a register whose state or attempt has changed. O(watchers of it)."""
        watchers = self._watchers.get(key)
        head = head_of(record) if watchers and is_task_key(key) else None
        if not watchers or head is None or self._told.get(key) == (head.state, head.attempt):
            return []
        self._told[key] = (head.state, head.attempt)
        notices = [(watcher, _notice(head, record)) for watcher in watchers]
        if head.state.is_terminal:
            for watcher in list(watchers):
                self._forget(key, watcher)
        return notices

    def handle_timeout(self, now: float) -> None:
        """Forget those whose time is over."""
        for key, watcher in self._timers.take_due(now):
            self._forget(key, watcher)

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do."""
        return self._timers.next_deadline()

    def check_invariants(self) -> None:
        """Raise AssertionError if somebody is remembered for ever, or for nothing."""
        pairs = {(key, watcher) for key, those in self._watchers.items() for watcher in those}
        assert pairs == set(self._timers)
        assert self._told.keys() <= self._watchers.keys()
        assert all(self._watchers.values())

    def _forget(self, key: bytes, watcher: NodeId) -> None:
        self._timers.cancel((key, watcher))
        watchers = self._watchers.get(key, {})
        watchers.pop(watcher, None)
        if not watchers:
            self._watchers.pop(key, None)
            self._told.pop(key, None)


def _notice(head: Head, record: Record) -> Notice:
    owner = None if record.value is None else record.value.owner
    return Notice(head.task_id, record.ballot, record.seq, head.state, head.attempt, owner)
