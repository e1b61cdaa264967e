"""Until when one run may go on, and what keeps that on a host without a guardian: a timer in the node itself.

    runs ──freeze_at──► frozen ──kill_at──► killed
      ▲                    │
      └─ deadlines moved ──┘         the node may freeze and thaw it in between as well

A process that is stopped or starved keeps no deadline; when it goes on, this comes late. So a guardian is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import trio

from mesh.guardian import link
from mesh.runtime.clock import Clock
from mesh.runtime.holding import Tree

LOOK_S: Final = 1.0
"""How long a deadline is slept for at most: a host that was asleep may be beyond it."""


class Deadlines(NamedTuple):
    """When a run is frozen and when it is killed, in seconds of the node's clock."""

    freeze_at: float
    kill_at: float


NEVER: Final = Deadlines(math.inf, math.inf)


class Keeper:
    """Freezes, thaws and kills one command. `is_over` says that its leader is reaped: then nothing is done."""

    def __init__(self, tree: Tree, clock: Clock, note: Callable[[int], None]) -> None:
        """`note` is told what was done: FROZEN, THAWED or KILLED, as the guardian's link has them."""
        self._tree, self._clock, self._note = tree, clock, note
        self._deadlines = NEVER
        self._is_held = self._is_frozen = self._is_over = False
        self._has_moved = trio.Event()

    def move(self, deadlines: Deadlines, *, is_held: bool) -> None:
        """Keep these from now on; `is_held`: freeze it at once, whatever its deadline."""
        self._deadlines, self._is_held = deadlines, is_held
        self._keep()
        self._has_moved.set()

    def end(self) -> None:
        """Touch it no more."""
        self._is_over = True
        self._has_moved.set()

    async def run(self) -> None:
        """Keep the deadlines until it has ended."""
        while not self._is_over:
            self._has_moved = trio.Event()
            wait_s = (
                min(self._due() - self._clock(), LOOK_S) if self._due() < math.inf else math.inf
            )
            with trio.move_on_after(max(wait_s, 0.0)):
                await self._has_moved.wait()
            self._keep()

    def _due(self) -> float:
        freeze_at, kill_at = self._deadlines
        return kill_at if self._is_frozen else min(freeze_at, kill_at)

    def _keep(self) -> None:
        if self._is_over:
            return
        now = self._clock()
        if self._deadlines.kill_at <= now:
            self._is_over = True
            self._tree.kill()
            self._note(link.KILLED)
        elif self._is_held or self._deadlines.freeze_at <= now:
            if not self._is_frozen:
                self._is_frozen = True
                self._tree.stop()
                self._note(link.FROZEN)
        elif self._is_frozen:
            self._is_frozen = False
            self._tree.go_on()
            self._note(link.THAWED)
