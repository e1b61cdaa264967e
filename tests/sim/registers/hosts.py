"""Machines: each with a clock of its own and a process that runs on it, is stopped, or has crashed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, Protocol

from mesh.core.ids import NodeId
from tests.sim.registers.clockwork import Clockwork

TICK_S: Final = 0.1


class Session(Protocol):
    """What runs on a host until it crashes."""

    @property
    def is_owner(self) -> bool: ...

    def handle(self, sender: NodeId, message: object) -> None:
        """Take a message."""

    def tick(self) -> None:
        """Do what is due; comes every `TICK_S` by the host's clock."""

    def end(self) -> None:
        """Crash."""


class Host:
    """A machine. Its clock runs at a rate within `rho` of true time, often just at the bounds."""

    def __init__(
        self,
        own: NodeId,
        clockwork: Clockwork,
        rng: random.Random,
        rho: float,
        begin: Callable[[Host], Session],
    ) -> None:
        self.own = own
        self.process: Session | None = None
        self.wakes_at = 0.0
        self.rate = 1 + rng.choice((-rho, rho, rng.uniform(-rho, rho)))
        self._offset = rng.uniform(0, 1000)
        self._clockwork = clockwork
        self._begin = begin
        self._sessions = 0

    @property
    def sessions(self) -> int:
        """How many processes have run here."""
        return self._sessions

    def clock(self) -> float:
        """Return what the host's clock shows."""
        return self._offset + self.rate * self._clockwork.now

    def true_time(self, moment: float) -> float:
        """Return the true time at which its clock shows `moment`."""
        return (moment - self._offset) / self.rate

    def start(self) -> None:
        if self.process is None:
            self.process = self._begin(self)
            self._sessions += 1
            self._tick(self._sessions)

    def crash(self) -> None:
        if self.process is not None:
            self.process.end()
            self.process = None

    def pause(self, seconds: float) -> None:
        self.wakes_at = max(self.wakes_at, self._clockwork.now + seconds)

    def deliver(self, sender: NodeId, message: object) -> None:
        if self.process is None:
            return
        if self._sleeps_s() > 0:
            self._clockwork.after(self._sleeps_s(), lambda: self.deliver(sender, message))
            return
        self.process.handle(sender, message)

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Do it when so much time has passed, and the process is not stopped."""

        def do() -> None:
            if self._sleeps_s() > 0:
                self._clockwork.after(self._sleeps_s(), do)
            else:
                act()

        self._clockwork.after(delay_s, do)

    # Inside.

    def _sleeps_s(self) -> float:
        return self.wakes_at - self._clockwork.now

    def _tick(self, session: int) -> None:
        if self.process is None or session != self._sessions:
            return
        self.process.tick()
        self.later(TICK_S / self.rate, lambda: self._tick(session))
