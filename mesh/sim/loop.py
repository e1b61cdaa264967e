"""Virtual time: a heap of things to do, and one clock that jumps from each to the next.

Nothing here waits. What is scheduled for one instant happens in the order of scheduling, so that a
run depends on its seed alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, TypeAlias

Action: TypeAlias = Callable[[Any], None]


class Loop:
    """The event loop. `now_s` is the true time, which no simulated node ever sees."""

    __slots__ = ("_heap", "_order", "now_s", "steps")

    def __init__(self) -> None:
        self.now_s = 0.0
        self.steps = 0
        self._heap: list[tuple[float, int, Action, Any]] = []
        self._order = 0

    def schedule(self, at_s: float, action: Action, argument: object) -> None:
        """Call `action(argument)` at `at_s`, or at once if that has passed. O(log n)."""
        self._order = order = self._order + 1
        heapq.heappush(self._heap, (at_s, order, action, argument))

    def run_until(self, until_s: float) -> None:
        """Do all that is due up to `until_s`, inclusive; that is the time afterwards."""
        heap = self._heap
        pop = heapq.heappop
        steps = 0
        try:
            while heap and heap[0][0] <= until_s:
                at_s, _, action, argument = pop(heap)
                self.now_s = max(self.now_s, at_s)
                steps += 1
                action(argument)
        finally:
            self.steps += steps
        self.now_s = max(self.now_s, until_s)
