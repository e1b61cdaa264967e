"""What a node does with its guardian, if it has one: at its start, for each run, and when that has died.

It freezes and kills runs at their deadlines, ends all of them with their node, and then sends the node's
obituary. Where there is none, the executor keeps the deadlines itself, and nobody sends an obituary: nobody could
tell that nothing of the node's runs any more.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection, Iterable
from typing import Final

import trio

from mesh.core.address import Address
from mesh.guardian import link
from mesh.runtime.guardian import Answer, Cleared, Guardian, end_work, start_time_of

CLEAR_TIMEOUT_S: Final = 8.0


class Guard:
    """One node's guardian, or the lack of one: then nothing is watched, and nothing is cleared away."""

    def __init__(self, sock: socket.socket | None, say: Callable[[str], None]) -> None:
        self.pid = None if sock is None else os.getppid()
        self.has_died = False
        self.on_refused: Callable[[int], None] = lambda _: None
        """Told of a run that the guardian does not take; the executor sets it."""

        self.on_held: Callable[[int, int], None] = lambda _kind, _run_id: None
        """Told that the guardian has frozen, thawed or killed a run (as in the link); the executor sets it."""

        self._guardian = None if sock is None else Guardian(sock, self._heed)
        self._forwarded: list[int] = []
        self._say = say
        self._is_cleared = trio.Event()
        self._is_clear = False

    @property
    def keeps_deadlines(self) -> bool:
        """Say whether there is somebody who freezes and kills runs on time, whatever becomes of this process."""
        return self._guardian is not None

    def watch(self, run_id: int, pid: int, freeze_at: float, kill_at: float) -> bool:
        """Have a run guarded whose process has just been started; False if it cannot be."""
        if self._guardian is None:
            return True
        try:
            start = start_time_of(pid)
        except OSError:  # no descriptor left
            return False
        if start is None:
            return False
        self._guardian.watch(run_id, pid, start, freeze_at, kill_at)
        return True

    def move(self, run_id: int, freeze_at: float, kill_at: float) -> None:
        """Move a run's deadlines; 0 is at once, and a later `freeze_at` thaws what was frozen."""
        if self._guardian is not None:
            self._guardian.move(run_id, freeze_at, kill_at)

    def done(self, run_id: int) -> None:
        """Say that a run's process is reaped; the guardian kills what it left behind."""
        if self._guardian is not None:
            self._guardian.done(run_id)

    def bequeath(self, letters: Iterable[tuple[Address, bytes]]) -> None:
        """Replace what the guardian sends, and to whom, once the node and all that it started have ended."""
        if self._guardian is not None:
            self._guardian.obituary(letters)

    def forwarded(self, numbers: Collection[int]) -> int:
        """Return how many signals of these numbers the guardian has forwarded up to now."""
        if self._guardian is not None:
            self._guardian.hear()
        return sum(number in numbers for number in self._forwarded)

    def begin_clearing(self) -> None:
        """Have the work cleared away that the last session left. Only with the data directory locked."""
        if self._guardian is not None:
            self._guardian.clear()

    async def wait_cleared(self, lease_s: float) -> None:
        """Wait until that is done. `listen` meanwhile.

        That a session has begun is taken as proof that the one before it runs nothing. So where something is left,
        or nobody knows, the node says so and waits until that session's leases are over by their clocks.
        """
        if self._guardian is None:
            return
        with trio.move_on_after(CLEAR_TIMEOUT_S) as patience:
            await self._is_cleared.wait()
        if patience.cancelled_caught:
            self._say(
                f"the guardian has not found out within {CLEAR_TIMEOUT_S:g} s what the last session left running"
            )
        if not self._is_clear and not self.has_died:
            self._say(
                f"this node stays silent for {lease_s:g} s, until leases of the last session are over"
            )
            await trio.sleep(lease_s)

    async def listen(self) -> None:
        """Heed what the guardian says, until it has died; without one, for ever."""
        if self._guardian is None:
            await trio.sleep_forever()
        else:
            await self._guardian.listen()
            self.has_died = True
            self._is_cleared.set()

    def close(self) -> None:
        """Let the guardian go. If it has died, end all that this node has started: nobody else would."""
        if self._guardian is None:
            return
        self._guardian.close()
        if self.has_died:
            # Who is in this process's own group is its screen, which gives the terminal back.
            left = end_work(os.environ.get(link.MARK_VARIABLE, ""), spared_group=os.getpgrp())
            if left:
                self._say(f"{_processes(left)} of this node's work would not die")

    def _heed(self, answer: Answer | Cleared) -> None:
        if isinstance(answer, Cleared):
            self._tell(answer)
            self._is_clear = answer.left == 0
            self._is_cleared.set()
        elif answer.kind == link.REFUSED:
            self.on_refused(answer.run_id)
        elif answer.kind == link.FORWARDED:
            self._forwarded.append(answer.run_id)
        else:
            self.on_held(answer.kind, answer.run_id)

    def _tell(self, cleared: Cleared) -> None:
        if cleared.killed:
            self._say(f"the last session left {_processes(cleared.killed)} running: killed")
        if cleared.left == link.LEFT_UNKNOWN:
            self._say("what the last session left running cannot be found out: it may still run")
        elif cleared.left:
            self._say(
                f"the last session left {_processes(cleared.left)} running that will not die, and may still "
                "do its work"
            )


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"
