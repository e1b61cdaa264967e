"""Wakes each node at its own deadline, read off its own clock, and notices one that never lets time pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from mesh.errors import LocalProtocolError
from mesh.sim.host import Host
from mesh.sim.loop import Loop

_WAKES_AT_ONCE_MAX: Final = 1_000


class Wakes:
    """The wake of every host. `fire` is called with a host and the reading of its clock when one is due."""

    def __init__(
        self, loop: Loop, hosts: Sequence[Host], fire: Callable[[Host, float], None]
    ) -> None:
        self._loop = loop
        self._hosts = hosts
        self._fire = fire
        self._at_once = 0
        self._last_s = -1.0

    def arm(self, host: Host) -> None:
        """Wake a running node at its next deadline, unless it is to be woken before."""
        assert host.node is not None
        deadline = host.node.next_timeout()
        if deadline is None:
            return
        at_s = host.clock.true_time(deadline)
        if host.wake_s is None or at_s < host.wake_s:
            host.wake_s = at_s
            self._loop.schedule(at_s, self._wake, (host, host.session, at_s))

    def wake(self, host: Host) -> None:
        """Let a node do what is due now; if nothing is, wake it when it is."""
        node = host.node
        deadline = node.next_timeout() if node is not None else None
        if deadline is None:
            return
        now_s = self._loop.now_s
        now = host.clock.read_at_least(now_s, deadline)
        if now < deadline:
            self.arm(host)
            return
        if now_s != self._last_s:
            self._last_s = now_s
            self._at_once = 0
        self._at_once += 1
        if self._at_once > _WAKES_AT_ONCE_MAX + 10 * len(self._hosts):
            raise LocalProtocolError(f"{host.spec.name} sets its timers in the past, for ever")
        self._fire(host, now)

    def _wake(self, item: tuple[Host, int, float]) -> None:
        host, session, at_s = item
        if host.session == session and host.wake_s == at_s:
            host.wake_s = None
            if not host.is_paused:
                self.wake(host)
