"""The way to a disk: commits take their time and come in order; a crash loses those that were not written.

Of what is being written at a crash, any first part may be durable although nobody was told.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from mesh.registers.outbox import Commit


class SlowDisk:
    """One session's way to its disk: what waits is written as one, as soon as what is being written is done."""

    def __init__(
        self,
        rng: random.Random,
        later: Callable[[float, Callable[[], None]], None],
        committed: Callable[[int], None],
    ) -> None:
        """Write one commit after the other, and tell the session with `committed` how far it is."""
        self._rng = rng
        self._later = later
        self._committed = committed
        self._waiting: list[Commit] = []
        self._being_written = 0
        self._is_closed = False

    def put(self, commit: Commit) -> None:
        self._waiting.append(commit)
        self._go_on()

    def end(self) -> None:
        """Crash."""
        self._is_closed = True
        for commit in self._waiting[: self._rng.randint(0, self._being_written)]:
            self._apply(commit)

    # Inside.

    def _go_on(self) -> None:
        if self._waiting and not self._being_written:
            self._being_written = len(self._waiting)
            rng = self._rng
            takes_s = rng.expovariate(200) + (rng.random() < 0.02) * rng.uniform(0, 2)
            self._later(takes_s, self._on_written)

    def _on_written(self) -> None:
        if self._is_closed:
            return
        count, self._being_written = self._being_written, 0
        done, self._waiting = self._waiting[:count], self._waiting[count:]
        for commit in done:
            self._apply(commit)
        self._committed(done[-1].number)
        self._go_on()

    def _apply(self, commit: Commit) -> None:
        """Have the disk hold a commit."""
        raise NotImplementedError
