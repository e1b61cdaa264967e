"""True time, and a network that loses, repeats and delays: what the hosts of a register live in.

One queue of things to come, in the order of true time; every clock of a host is a rate and an offset of it.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass

from mesh.core.ids import NodeId


class Clockwork:
    """What comes next, in true time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def after(self, delay_s: float, act: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + delay_s, self._count, act))

    def run(self, until: float, stops: Callable[[], bool]) -> None:
        while self._queue and self._queue[0][0] <= until and not stops():
            self.now, _, act = heapq.heappop(self._queue)
            act()


@dataclass(slots=True)
class Weather:
    """How bad the network is."""

    loss: float = 0.0
    copies: float = 0.0
    late: float = 0.0
    late_s_max: float = 0.0
    delays_s: tuple[float, ...] = (0.005,)
    """Means, of which each link, one way, has its own."""


class Network:
    """Carries messages, one way at a time."""

    def __init__(
        self,
        clockwork: Clockwork,
        rng: random.Random,
        deliver: Callable[[NodeId, NodeId, object], None],
    ) -> None:
        self.weather = Weather()
        self.cuts: set[tuple[NodeId, NodeId]] = set()
        self._clockwork = clockwork
        self._rng = rng
        self._deliver = deliver
        self._luck: dict[tuple[NodeId, NodeId], float] = {}

    def send(self, sender: NodeId, to: NodeId, message: object) -> None:
        rng, weather = self._rng, self.weather
        if sender != to and ((sender, to) in self.cuts or rng.random() < weather.loss):
            return
        for _ in range(1 + (rng.random() < weather.copies)):
            delay_s = rng.expovariate(1 / self._mean_s(sender, to))
            if rng.random() < weather.late:
                delay_s += rng.uniform(0, weather.late_s_max)
            self._clockwork.after(delay_s, lambda: self._deliver(sender, to, message))

    def _mean_s(self, sender: NodeId, to: NodeId) -> float:
        luck = self._luck.setdefault((sender, to), self._rng.random())
        delays_s = self.weather.delays_s
        return delays_s[int(luck * len(delays_s))]
