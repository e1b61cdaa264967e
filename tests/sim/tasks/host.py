"""A machine: its clock and disk, what runs on it, and the node that does or does not.

Nodes are stopped and killed with their work left to the guardian; hosts are stopped and cut off with everything.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

from mesh.core.effects import Answer
from mesh.core.ids import NodeId
from mesh.core.process import ProcessEvent
from mesh.registers.leases import LeaseTimes
from mesh.tasks.config import TasksConfig
from mesh.tasks.effects import Outgoing
from mesh.wire.roster_messages import Roster
from tests.sim.registers.clockwork import Clockwork, Network
from tests.sim.tasks.executor import Executor
from tests.sim.tasks.judge import Judge
from tests.sim.tasks.session import UNIX_S, Disk, Session
from tests.sim.tasks.variants import Habits

CLEARS_S_MAX = 0.05
"""A guardian has killed everything within this of its node's end."""


class World(Protocol):
    """What all hosts share."""

    clockwork: Clockwork
    network: Network
    judge: Judge
    rng: random.Random
    times: LeaseTimes
    config: TasksConfig
    habits: Habits
    roster: Roster
    is_calm: bool
    work: dict[str, float]

    def proved(self, node: NodeId, boot: int) -> None:
        """Spread the proof that a session runs nothing any more."""

    def answered(self, node: NodeId, answer: Answer) -> None:
        """Hand a client its answer."""


class Host:
    """One machine."""

    def __init__(self, own: NodeId, world: World) -> None:
        rng = world.rng
        self.own = own
        self.disk = Disk()
        self.session: Session | None = None
        self.slots = rng.choice((1, 1, 2, 3))
        self.clockwork, self.judge, self.rng = world.clockwork, world.judge, rng
        self.times, self.config = world.times, world.config
        self.habits, self.roster = world.habits, world.roster
        self.is_calm = world.is_calm
        self._world = world
        rho = self.times.rho
        self._rate = 1 + rng.choice((-rho, rho, rng.uniform(-rho, rho)))
        self._offset = rng.uniform(0, 1000)
        self.unix_offset_s = UNIX_S - self._offset + rng.uniform(-0.2, 0.2)
        self._node_wakes_at = 0.0
        self._host_wakes_at = 0.0
        self._clears_until = 0.0
        self.executor = self._new_executor()

    # Clocks.

    def clock(self) -> float:
        """Return the host's own time."""
        return self._offset + self._rate * self.clockwork.now

    def true_time(self, moment: float) -> float:
        """Return when a moment of that is."""
        return (moment - self._offset) / self._rate

    def after_own(self, moment: float) -> float:
        """Return for how long, in true time, the host's own clock has not come to this."""
        return max(0.0, self.true_time(moment) - self.clockwork.now)

    def is_stopped(self) -> bool:
        """Say whether the whole host is."""
        return self._host_wakes_at > self.clockwork.now

    @property
    def is_well(self) -> bool:
        """Say whether its node is up and not stopped."""
        return self.session is not None and self._sleeps_s() <= 0

    # What happens to it.

    def start(self) -> None:
        """Start the node, once everything of its last session is gone."""
        if self.session is not None:
            return
        if self.clockwork.now < self._clears_until or self.is_stopped():
            self.clockwork.after(0.1, self.start)
            return
        self._world.proved(self.own, self.disk.boot)  # who hears of the new session knows that
        self.executor = self._new_executor()
        self.session = Session(self)

    def kill_node(self) -> None:
        """Kill the node; its guardian clears away after it, and says so."""
        session = self._end_session()
        if session is None:
            return
        boot, executor = session.boot, self.executor
        delay_s = self.rng.uniform(0, CLEARS_S_MAX)
        self._clears_until = self.clockwork.now + delay_s + 0.001

        def clear() -> None:
            if self.is_stopped():
                self._clears_until = self.clockwork.now + 0.2
                self.clockwork.after(0.1, clear)
                return
            executor.end_all()
            self.judge.over.add((self.own, boot))
            self._world.proved(self.own, boot)

        self.clockwork.after(delay_s, clear)

    def crash(self) -> None:
        """Lose power: nobody says anything."""
        session = self._end_session()
        self.executor.end_all()
        if session is not None:
            self.judge.over.add((self.own, session.boot))

    def pause_node(self, seconds: float) -> None:
        """Stop the node alone: what it runs goes on until the guardian's deadlines."""
        self._node_wakes_at = max(self._node_wakes_at, self.clockwork.now + seconds)

    def pause_host(self, seconds: float) -> None:
        """Stop everything."""
        self.pause_node(seconds)
        if not self.is_stopped():
            self.executor.stop_all()
        self._host_wakes_at = max(self._host_wakes_at, self.clockwork.now + seconds)
        self.clockwork.after(seconds + 1e-6, self._go_on)

    def heal(self) -> None:
        """Let everything go on."""
        was_stopped = self.is_stopped()
        self._node_wakes_at = self._host_wakes_at = 0.0
        if was_stopped:
            self._go_on()
        self.start()

    def drain(self, seconds: float) -> None:
        """Leave in good order, within `seconds` or a little more, and come back later."""
        session = self.session
        if session is None or session.is_draining:
            return
        session.is_draining = True
        session.do(lambda now: session.tasks.drain(now, now + seconds))

        def look() -> None:
            if session.is_over:
                return
            if session.tasks.used:
                self.later(0.2, look)
                return
            self.kill_node()
            self.clockwork.after(self.rng.uniform(0.5, 3), self.start)

        self.later(seconds, look)

    # What the session and the network ask of it.

    def deliver(self, sender: NodeId, message: object) -> None:
        """Take a message."""
        session = self.session
        if session is None:
            return
        if self._sleeps_s() > 0:
            self.clockwork.after(self._sleeps_s(), lambda: self.deliver(sender, message))
            return
        session.do(lambda now: session.tasks.handle_message(now, sender, message))

    def send(self, to: NodeId, message: object) -> None:
        """Hand a message to the network."""
        self._world.network.send(self.own, to, message)

    def answered(self, answer: Answer) -> None:
        """Hand a client its answer."""
        self._world.answered(self.own, answer)

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Do it when so much time has passed, and the node is not stopped."""

        def do() -> None:
            if self._sleeps_s() > 0:
                self.clockwork.after(self._sleeps_s(), do)
            else:
                act()

        self.clockwork.after(delay_s, do)

    def do(self, call: Callable[[Session, float], list[Outgoing]]) -> None:
        """Let something happen to the session that runs, if one does, when it is not stopped."""
        session = self.session
        if session is not None:
            self.later(0, lambda: session.do(lambda now: call(session, now)))

    # Inside.

    def _new_executor(self) -> Executor:
        def tell(event: ProcessEvent) -> None:
            self.do(lambda session, now: session.tasks.handle_process(now, event))

        return Executor(self, self._world.work, tell)

    def _end_session(self) -> Session | None:
        session, self.session = self.session, None
        if session is not None:
            session.is_over = True
        return session

    def _sleeps_s(self) -> float:
        return max(self._node_wakes_at, self._host_wakes_at) - self.clockwork.now

    def _go_on(self) -> None:
        if not self.is_stopped():
            self.executor.go_on_all()
