"""Who saw what of whom, and when: the events of all observers, in one shape for Mesh and its peers.

Reader threads add, the driver waits. What an observer holds a member to be is what it said last.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LOOK_S: Final = 0.05
"""The driver looks so often at what was seen: woken by each, it would take the processors of those who see."""


class Sight(StrEnum):
    """What may be seen of a member."""

    ALIVE = "alive"
    SUSPECT = "suspect"
    DEAD = "dead"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Sighting:
    """One observer's word about one member, at a Unix time in ns."""

    at_ns: int
    observer: str
    sight: Sight
    member: str


class SightingLog:
    """Everything seen, in order of arrival. Safe for many threads."""

    def __init__(self, *, tells_refutations: bool) -> None:
        """Start empty; without `tells_refutations` a suspect counts as alive, for lack of later word."""
        self._tells_refutations = tells_refutations
        self._all: list[Sighting] = []
        self._views: dict[str, dict[str, Sighting]] = {}
        self._lock = threading.Lock()

    def add(self, sighting: Sighting) -> None:
        """Take one more."""
        with self._lock:
            self._all.append(sighting)
            if sighting.sight is not Sight.SUSPECT or self._tells_refutations:
                self._views.setdefault(sighting.observer, {})[sighting.member] = sighting

    def forget(self, observer: str) -> None:
        """Forget what an observer holds: its process is gone. What it said stays."""
        with self._lock:
            self._views.pop(observer, None)

    def since(self, start_ns: int, end_ns: int | None = None) -> list[Sighting]:
        """Return what was seen from `start_ns` on, and before `end_ns`."""
        with self._lock:
            return [
                one
                for one in self._all
                if one.at_ns >= start_ns and (end_ns is None or one.at_ns < end_ns)
            ]

    def wait_seen(
        self,
        sights: Iterable[Sight],
        member: str,
        observers: Iterable[str],
        since_ns: int,
        timeout_s: float,
    ) -> dict[str, int]:
        """Wait until every observer has seen this of `member`; return when each first did, in ns.

        Whoever has not when the time is over is missing from the result.
        """
        wanted, asked = frozenset(sights), frozenset(observers)
        found: dict[str, int] = {}
        position = 0

        def is_complete() -> bool:
            nonlocal position
            for one in self._all[position:]:
                if (
                    one.member == member
                    and one.sight in wanted
                    and one.at_ns >= since_ns
                    and one.observer in asked
                ):
                    found.setdefault(one.observer, one.at_ns)
            position = len(self._all)
            return len(found) == len(asked)

        self._wait(is_complete, timeout_s)
        return found

    def wait_whole(self, names: Iterable[str], timeout_s: float) -> int | None:
        """Wait until all of `names` hold each other alive; return when the last came to do so, in ns.

        None: not in time.
        """
        wanted = frozenset(names)
        latest = 0

        def is_whole() -> bool:
            nonlocal latest
            latest = 0
            for observer in wanted:
                view = self._views.get(observer, {})
                for member in wanted:
                    if member == observer:
                        continue
                    held = view.get(member)
                    if held is None or held.sight is not Sight.ALIVE:
                        return False
                    latest = max(latest, held.at_ns)
            return True

        return latest if self._wait(is_whole, timeout_s) else None

    def _wait(self, is_done: Callable[[], bool], timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        with self._lock:
            while not is_done():
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return False
                self._lock.release()
                try:
                    time.sleep(min(left_s, LOOK_S))
                finally:
                    self._lock.acquire()
            return True
