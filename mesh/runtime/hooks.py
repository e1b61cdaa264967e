"""Runs a node's hooks, as its user wants them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from mesh.core.events import Event
from mesh.node.node import Node
from mesh.runtime.clock import Clock
from mesh.runtime.driver import Driver
from mesh.runtime.guard import Guard
from mesh.runtime.hook_settings import HookSettings

if TYPE_CHECKING:
    from mesh.runtime.health import HealthCheck
    from mesh.runtime.shortage import ShortageHook


class Hooks:
    """One node's hooks. `run` them while the node runs: all that they have started is killed when that ends."""

    def __init__(
        self,
        settings: HookSettings,
        *,
        node: Node,
        driver: Driver,
        clock: Clock,
        guard: Guard,
        emit: Callable[[Event], None],
        say: Callable[[str], None],
    ) -> None:
        """Make those that are asked for; `emit` publishes an event of this node, `say` writes a line of its log."""
        self._parts: list[HealthCheck | ShortageHook] = []
        if settings.are_any:
            from mesh.runtime.hook_parts import hook_parts  # noqa: PLC0415 - most nodes have none

            self._parts = hook_parts(
                settings, node=node, driver=driver, clock=clock, guard=guard, emit=emit, say=say
            )

    async def run(self) -> None:
        """Run all of them until cancelled."""
        async with trio.open_nursery() as nursery:
            for part in self._parts:
                nursery.start_soon(part.run)
