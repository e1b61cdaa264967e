"""A host that ran short rests: it takes no work for a while, for longer each time.

A host out of descriptors, processes or memory fails every command at once, and so would be the
quickest to ask for the next one. The first rest is short; each further shortage doubles it, until a
command that was accepted after a rest has started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

REST_S: Final = 1.0
REST_S_MAX: Final = 30.0


@dataclass(slots=True)
class Rest:
    """When the rest that is under way ends (`until`; None: none is), and how long the last one was."""

    until: float | None = None
    pause_s: float = 0.0
    _run_id: int = 0  # the latest run that was accepted before the latest rest

    def begin(self, now: float, last_run_id: int) -> bool:
        """Begin a rest; False: one is under way, which covers every command that failed with it."""
        if self.until is not None:
            return False
        self.pause_s = min(self.pause_s * 2, REST_S_MAX) or REST_S
        self.until = now + self.pause_s
        self._run_id = last_run_id
        return True

    def note_started(self, run_id: int) -> None:
        """Note a command that has started: if that was after the rest, the shortage is over."""
        if run_id > self._run_id:
            self.pause_s = 0.0

    def end(self, now: float) -> bool:
        """End the rest that is due, and say whether there was one."""
        if self.until is None or self.until > now:
            return False
        self.until = None
        return True
