"""Runs the health check of this host, again and again, and tells the node whether it is fit for work.

One run at a time, each begun an interval after the one before, or when that has ended if it took longer.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from mesh.hooks.health import Health, Verdict
from mesh.runtime.shell import Shell


class HealthCheck:
    """One node's check. `run` it while the node runs."""

    def __init__(
        self, shell: Shell, *, every_s: float, timeout_s: float, tell: Callable[[Verdict], None]
    ) -> None:
        """`tell` hears of each change, and at the start that the check has not passed yet."""
        self._shell = shell
        self._every_s = every_s
        self._timeout_s = timeout_s
        self._tell = tell

    async def run(self) -> None:
        """Check until cancelled; the run that is under way then is killed."""
        health = Health()
        self._tell(health.verdict)
        while True:
            begun = trio.current_time()
            outcome = await self._shell.run(self._timeout_s)
            changed = health.take(outcome)
            if changed is not None:
                self._tell(changed)
            await trio.sleep_until(begun + self._every_s)
