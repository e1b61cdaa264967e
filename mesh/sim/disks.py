"""Disks that commit, in groups, while the nodes go on: one commit at a time for each host, in order.

A commit takes a while, now and then a long one. A crash in the middle of it leaves all of the group or nothing,
as SQLite does, and nobody is told which; what waited behind it is lost.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from mesh.core.effects import Commit
from mesh.sim.host import Host
from mesh.sim.loop import Loop

RATE_S: Final = 500.0
"""Commits a second, on average: an fsync of a good disk takes about 2 ms."""

STALL_SHARE: Final = 0.01
STALL_S_MAX: Final = 1.0
"""Of all commits so many stall, for up to this long."""


class Disks:
    """The stores of all hosts. `watchers` see each commit when it is stored, told or not."""

    def __init__(
        self, loop: Loop, rng: random.Random, on_committed: Callable[[tuple[Host, int, int]], None]
    ) -> None:
        """`on_committed` gets the host, its session, and the number of the last commit that is stored."""
        self.watchers: list[Callable[[Host, Commit], None]] = []
        self._loop = loop
        self._rng = rng
        self._on_committed = on_committed
        self._waiting: dict[Host, list[Commit]] = {}
        self._under_way: dict[Host, tuple[int, list[Commit]]] = {}

    def commit(self, host: Host, effect: Commit) -> None:
        """Take a commit of the node that runs on a host."""
        self._waiting.setdefault(host, []).append(effect)
        if host not in self._under_way:
            self._begin(host)

    def crash(self, host: Host) -> None:
        """End what is under way, one way or the other; call when a node ends."""
        self._waiting.pop(host, None)
        _, group = self._under_way.pop(host, (0, []))
        if group and self._rng.random() < 0.5:
            self._store(host, group)

    def _begin(self, host: Host) -> None:
        group = self._waiting.pop(host)
        self._under_way[host] = host.session, group
        takes_s = self._rng.expovariate(RATE_S)
        if self._rng.random() < STALL_SHARE:
            takes_s += self._rng.uniform(0, STALL_S_MAX)
        self._loop.schedule(self._loop.now_s + takes_s, self._end, (host, host.session))

    def _end(self, item: tuple[Host, int]) -> None:
        host, session = item
        of_session, group = self._under_way.get(host, (0, []))
        if not group or of_session != session:
            return
        del self._under_way[host]
        self._store(host, group)
        if host in self._waiting:
            self._begin(host)
        self._on_committed((host, session, group[-1].number))

    def _store(self, host: Host, group: list[Commit]) -> None:
        for effect in group:
            for key in effect.forget:
                host.records.pop(key, None)
            host.records.update((record.key, record) for record in effect.records)
            host.numbers.update(effect.numbers)
            for watcher in self.watchers:
                watcher(host, effect)
