"""Many deadlines, one question: what is due, and when is the next?

A heap with lazy deletion. Each arming of a key gets a new generation, so that a deadline that was
moved or cancelled is recognised as stale when it comes up.

Source: timers with identity follow foca; `next_deadline` as a cheap query follows quinn-proto.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Timers(Generic[K]):
    """Named deadlines. Deadlines that are equal come up in the order in which they were set."""

    __slots__ = ("_armed", "_generation", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._armed: dict[K, tuple[float, int]] = {}
        self._generation = 0

    def __contains__(self, key: K) -> bool:
        return key in self._armed

    def __len__(self) -> int:
        return len(self._armed)

    def __iter__(self) -> Iterator[K]:
        return iter(self._armed)

    def set(self, key: K, deadline: float) -> None:
        """Arm `key` for `deadline`; an earlier arming of the same key is forgotten. O(log n)."""
        self._generation += 1
        self._armed[key] = (deadline, self._generation)
        heapq.heappush(self._heap, (deadline, self._generation, key))
        if len(self._heap) > 64 and len(self._heap) > 4 * len(self._armed):
            self._heap = [(at, gen, k) for k, (at, gen) in self._armed.items()]
            heapq.heapify(self._heap)

    def cancel(self, key: K) -> None:
        """Disarm `key`; nothing happens if it is not armed. O(1)."""
        self._armed.pop(key, None)

    def deadline(self, key: K) -> float | None:
        """Return when `key` is due, or None if it is not armed."""
        armed = self._armed.get(key)
        return None if armed is None else armed[0]

    def next_deadline(self) -> float | None:
        """Return the earliest deadline, or None if nothing is armed."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: float) -> list[K]:
        """Disarm and return every key whose deadline is not after `now`, earliest first."""
        due: list[K] = []
        self._drop_stale()
        while self._heap and self._heap[0][0] <= now:
            key = heapq.heappop(self._heap)[2]
            del self._armed[key]
            due.append(key)
            self._drop_stale()
        return due

    def _drop_stale(self) -> None:
        heap = self._heap
        while heap:
            _, generation, key = heap[0]
            armed = self._armed.get(key)
            if armed is not None and armed[1] == generation:
                return
            heapq.heappop(heap)
