"""The last events of this node, stamped with the time, and whoever follows them.

A ring of fixed size. A follower has a queue of fixed size of its own: one that falls behind is told
so (`has_lagged`) and costs no more memory, and the node never waits for it.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import trio

from mesh.core.events import Event
from mesh.core.ids import format_id

EVENTS_MAX: Final = 2_000
FOLLOWER_EVENTS_MAX: Final = 1_000

EventJson: TypeAlias = dict[str, Any]


class Follower:
    """Events from the moment it began to follow, each at once or gathered for `gather_s`. One reader at a time.

    Whoever measures what events tell of gathers: to be woken by each would disturb what is measured.
    """

    def __init__(self, events_max: int, gather_s: float = 0.0) -> None:
        self.has_lagged = False
        self._events: deque[EventJson] = deque()
        self._max = events_max
        self._gather_s = gather_s
        self._due = math.inf  # when the oldest of them is to be taken
        self._waiting: trio.CancelScope | None = None

    def add(self, item: EventJson) -> None:
        """Take one more event; when the queue is full the oldest goes, and `has_lagged` stays true."""
        if len(self._events) >= self._max:
            self._events.popleft()
            self.has_lagged = True
        if not self._events:
            self._due = trio.current_time() + self._gather_s
            if self._waiting is not None:
                self._waiting.deadline = self._due
        self._events.append(item)

    def take(self) -> list[EventJson]:
        """Return what has come since the last call, oldest first."""
        taken = list(self._events)
        self._events.clear()
        self._due = math.inf
        return taken

    async def wait(self) -> None:
        """Return when there is something to take, and it has been gathered for long enough."""
        with trio.CancelScope(deadline=self._due) as self._waiting:
            await trio.sleep_forever()
        self._waiting = None


class EventLog:
    """Stamps, keeps and hands on events. `observer` gives this node's name, which each event bears."""

    def __init__(
        self, observer: Callable[[], str], time_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._observer = observer
        self._time_ns = time_ns
        self._ring: deque[EventJson] = deque(maxlen=EVENTS_MAX)
        self._followers: set[Follower] = set()

    def publish(self, event: Event) -> None:
        """Stamp `event`, keep it, and hand it to every follower."""
        item = event_json(event, self._time_ns(), self._observer())
        self._ring.append(item)
        for follower in self._followers:
            follower.add(item)

    def last(self, count: int) -> list[EventJson]:
        """Return the latest `count` events at most, oldest first."""
        return list(self._ring)[-count:] if count > 0 else []

    @contextmanager
    def follow(self, events_max: int, gather_s: float = 0.0) -> Iterator[Follower]:
        """Follow from now on, for as long as the context is open."""
        follower = Follower(events_max, gather_s)
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)


def event_json(event: Event, at_ns: int, observer: str) -> EventJson:
    """Return the shape that programs rely on."""
    return {
        "at_ns": at_ns,
        "observer": observer,
        "kind": event.kind.value,
        "member": event.member,
        "member_id": format_id(event.member_id) if event.member_id else "",
        "state": event.state,
        "cause": event.cause,
        "evidence": list(event.evidence),
        "evidence_kinds": [kind.value for kind in event.evidence_kinds],
        "accuser": event.accuser,
        "confirmed_by": list(event.confirmed_by),
        "detail": event.detail,
        "task_id": event.task_id,
    }
