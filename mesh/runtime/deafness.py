"""A fault to be injected: this process hears nothing while its timers and its sending go on.

Only with MESH_FAULT_HOOK=1 in the environment of `mesh join` does SIGUSR2 turn it on and off again;
without it that signal ends a node, as it ends any process. Packets and frames are still read, and
counted, and then forgotten: to the others this looks like a host whose incoming path is broken.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Final

import trio

SIGNAL: Final = signal.SIGUSR2


class Deafness:
    """Whether what arrives is forgotten; asked by whatever reads a socket."""

    def __init__(self) -> None:
        self.is_on = False

    async def heed_signal(
        self,
        say: Callable[[str], None],
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Let every SIGUSR2 turn it on or off, for ever."""
        with trio.open_signal_receiver(SIGNAL) as arriving:
            task_status.started()
            async for _ in arriving:
                self.is_on = not self.is_on
                say(
                    f"fault hook: {'deaf: all that arrives is dropped' if self.is_on else 'hearing again'}"
                )
