"""Stops, continues and kills a command with what descends from it, where no guardian does it better.

    leader ── its group: one signal reaches all of it
       └───── below it, in groups of their own: each is looked for, and signalled by itself

Whoever left its parents too (setsid and a double fork) is nobody's child here, and is not found. On a system
without /proc the group is all there is. The caller has not reaped the leader: else its number may be another's.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from mesh.guardian.process import PASSES_MAX, Process, below, send, survey


class Tree:
    """One command's processes, and which of them were stopped from here."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._stopped: dict[tuple[int, int], None] = {}

    def stop(self) -> None:
        """Stop all of it where it stands. May be repeated, and reaches what was started since."""
        self.signal(signal.SIGSTOP)
        for _ in range(PASSES_MAX):
            fresh = [each for each in self._strays() if not each.is_stopped]
            for process in fresh:
                if send(process.key, signal.SIGSTOP):
                    self._stopped[process.key] = None
            if not fresh:
                return

    def go_on(self) -> None:
        """Continue what was stopped from here, and the whole group."""
        for key in self._stopped:
            send(key, signal.SIGCONT)
        self._stopped.clear()
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill all of it."""
        strays = self._strays()  # before the leader dies: what it orphans is not found any more
        self.signal(signal.SIGKILL)
        for process in strays:
            send(process.key, signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """Signal the whole group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._leader, number)

    def _strays(self) -> list[Process]:
        """Return what lives below the leader outside its group; nobody where /proc does not say."""
        try:
            processes = survey()
        except OSError:
            return []
        return [
            each
            for each in below((self._leader,), processes)
            if each.group != self._leader and not each.is_dead
        ]
