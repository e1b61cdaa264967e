"""The node's side of its guardian: what runs, until when, and what to say when the node has ended.

Orders never wait. What the guardian cannot take at the moment (it is stopped, its socket full) is kept,
of each kind the latest for each run, and sent in order when it can: so no more is kept than there are
runs. The node must not outlive its guardian: `listen` returns when that has died, and then nobody
but the node itself can stop its work (`end_work`).

Times are seconds of CLOCK_BOOTTIME, as the node's clock counts them on Linux.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import trio

from mesh.core.address import Address, pack_host
from mesh.errors import LocalProtocolError
from mesh.guardian import link
from mesh.guardian.process import kill_below, look
from mesh.guardian.record import Leftovers, clear

_ANSWER_BYTES_MAX: Final = 64
_END_POLL_S: Final = 0.005


class Answer(NamedTuple):
    """What the guardian has done: `link.FROZEN`, `THAWED`, `KILLED` or `REFUSED` a run, or `FORWARDED` a signal."""

    kind: int
    run_id: int
    """Of `FORWARDED`: the signal's number."""


class Cleared(NamedTuple):
    """How the last boot's work was cleared away."""

    killed: int
    left: int
    """How many processes would not die (`link.LEFT_UNKNOWN`: nobody could find out)."""


def start_time_of(pid: int) -> int | None:
    """Return when a process started, as /proc counts it, or None if there is none."""
    process = look(pid)
    return None if process is None else process.start


def end_work(mark: str, timeout_s: float = 2.0, *, spared_group: int = 0) -> int:
    """Kill everything that this process has started and wait for it; return how many would not die.

    Who is in the spared process group is no work, and left alone.

    For a node whose guardian has died: it blocks, and leaves the dead to be reaped. What had fled from
    its parents belongs to nobody now: it is found by the mark, `link.MARK_VARIABLE` in the environment.
    """
    deadline = time.monotonic() + timeout_s
    while left := kill_below(os.getpid(), spared_group):
        if time.monotonic() > deadline:
            break
        time.sleep(_END_POLL_S)
    fled = Leftovers()
    if mark:
        fled.marks[mark] = None
    return left + clear(fled, os.getpid())[1]


class Guardian:
    """The guardian as its node sees it. Give it the socket of `guarded.take_link`, and `listen`."""

    def __init__(self, sock: socket.socket, report: Callable[[Answer | Cleared], None]) -> None:
        self.is_alive = True
        self._socket = sock
        self._report = report
        self._unsent: dict[tuple[int, int], bytes] = {}
        self._has_unsent = trio.Event()

    def watch(
        self,
        run_id: int,
        pid: int,
        start_time: int,
        freeze_at: float,
        kill_at: float,
        *,
        keeps_orphans: bool = False,
    ) -> None:
        """Guard a run from now on: call it at once after the command was started.

        It is frozen from `freeze_at` and killed from `kill_at` on. REFUSED is reported where it cannot
        be guarded; such a run must not go on. `keeps_orphans`: its leader was made a subreaper before
        the command was started (PR_SET_CHILD_SUBREAPER), so that all its work stays below it.
        """
        leader = link.Leader(pid, start_time, keeps_orphans=keeps_orphans)
        self._send((link.RUN, run_id), link.encode_run(run_id, leader, freeze_at, kill_at))

    def move(self, run_id: int, freeze_at: float, kill_at: float) -> None:
        """Move a run's deadlines, to 0 to have it frozen or killed at once. A later one thaws it."""
        self._send((link.DEADLINE, run_id), link.encode_deadline(run_id, freeze_at, kill_at))

    def done(self, run_id: int) -> None:
        """Say that a run's command has ended and is reaped; what it left behind is killed."""
        self._unsent.pop((link.DEADLINE, run_id), None)
        self._send((link.DONE, run_id), link.encode_run_id(link.DONE, run_id))

    def obituary(self, letters: Iterable[tuple[Address, bytes]]) -> None:
        """Replace what is sent when this node has ended, and to whom; without letters, nothing is.

        Raises:
            LocalProtocolError: it is too large; the last one stays.
        """
        packed = [(pack_host(to.host), to.port, data) for to, data in letters]
        try:
            packet = link.encode_obituary(packed)
        except ValueError as error:
            raise LocalProtocolError(str(error)) from error
        self._send((link.OBITUARY, 0), packet)

    def clear(self) -> None:
        """Have the last boot's work cleared away; `Cleared` is reported, within about five seconds.

        Only with the data directory locked: else it is the work of a node that lives.
        """
        self._send((link.CLEAR, 0), bytes((link.CLEAR,)))

    async def listen(self) -> None:
        """Report answers and send what is unsent, until the guardian has died."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._flush)
            await self._hear()
            nursery.cancel_scope.cancel()

    def close(self) -> None:
        """Close the socket: the guardian goes on, and hears nothing any more."""
        self.is_alive = False
        self._socket.close()

    def hear(self) -> None:
        """Report the answers that have come."""
        while self.is_alive:
            try:
                packet = self._socket.recv(_ANSWER_BYTES_MAX)
            except BlockingIOError:
                return
            except OSError:  # it died with orders unread
                packet = b""
            if not packet:
                self.is_alive = False
                return
            kind, number, left = link.decode_answer(packet)
            self._report(Cleared(number, left) if kind == link.CLEARED else Answer(kind, number))

    async def _hear(self) -> None:
        self.hear()
        while self.is_alive:
            await trio.lowlevel.wait_readable(self._socket)
            self.hear()

    async def _flush(self) -> None:
        while True:
            await self._has_unsent.wait()
            await trio.lowlevel.wait_writable(self._socket)
            unsent, self._unsent = self._unsent, {}
            self._has_unsent = trio.Event()
            for key, packet in unsent.items():
                self._send(key, packet)

    def _send(self, key: tuple[int, int], packet: bytes) -> None:
        if not self._unsent:
            try:
                self._socket.send(packet)
            except BlockingIOError:
                pass
            except OSError:
                return  # the guardian has died: `listen` says so
            else:
                return
        self._unsent[key] = packet
        self._has_unsent.set()
