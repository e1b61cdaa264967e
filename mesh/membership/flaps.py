"""Members that come and go: counted, and said once, so that people see the one that flaps.

A member that dies or returns `FLAPS_MIN` times within `WINDOW_S` flaps. Every change stays an event of
its own, for programs; people are told of the flapping when it begins.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mesh.core.ids import NodeId

WINDOW_S: Final = 60.0
FLAPS_MIN: Final = 4
MEMBERS_MAX: Final = 1024


class Flaps:
    """The times of the latest deaths and returns of each member."""

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: dict[NodeId, deque[float]] = {}

    def note(self, now: float, node_id: NodeId) -> bool:
        """Note a death or a return; say whether with it the member begins to flap."""
        times = self._times.pop(node_id, None) or deque(maxlen=FLAPS_MIN)
        was_flapping = self._is_flapping(times, now)
        times.append(now)
        self._times[node_id] = times
        if len(self._times) > MEMBERS_MAX:
            del self._times[next(iter(self._times))]
        return not was_flapping and self._is_flapping(times, now)

    @staticmethod
    def _is_flapping(times: deque[float], now: float) -> bool:
        return len(times) == FLAPS_MIN and now - times[0] <= WINDOW_S
