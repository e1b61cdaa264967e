"""What a boot leaves behind, kept in a file, and how the next boot clears it away.

The file lists the leaders of runs with their start times, and the marks that their work carries in its
environment. It is appended to and written anew when it has grown; it need not survive the host, as
no process does: it begins with the host's boot id, and under another one nothing is left.

Left behind is: a recorded leader with its start time, its group and session; whoever carries a mark,
whatever group it fled to; and all that descends from these. A group whose leader is gone is touched
only where the mark proves it ours. What fled the group *and* emptied its environment is not found.
"""

from __future__ import annotations

import os
import stat
import time
from errno import EINVAL

from mesh.guardian.link import MARK_VARIABLE
from mesh.guardian.process import SIGKILL, SIGSTOP, below, carries, send, survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from mesh.guardian.process import Key, Process

RECORD_BYTES_MAX: Final = 1 << 22
CLEAR_TIMEOUT_S: Final = 5.0
_SPARE_LINES: Final = 1024


class Leftovers:
    """What a record says: the leaders that were running, and the marks of their work."""

    __slots__ = ("leaders", "marks")

    def __init__(self) -> None:
        self.leaders: dict[Key, None] = {}
        self.marks: dict[str, None] = {}


def host_boot_id() -> str:
    """Return the random name of this run of the host."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def parse(text: str, boot_id: str) -> Leftovers:
    """Return what a record says; of another run of the host, or of garbage, nothing."""
    found = Leftovers()
    lines = text.splitlines()
    if lines[:1] != [f"host {boot_id}"]:
        return found
    for line in lines[1:]:
        word, _, rest = line.partition(" ")
        pid, _, start = rest.partition(" ")
        if word == "mark" and rest:
            found.marks[rest] = None
        elif word in {"run", "end"} and pid.isdecimal() and start.isdecimal():
            if word == "run":
                found.leaders[int(pid), int(start)] = None
            else:
                found.leaders.pop((int(pid), int(start)), None)
    return found


def load(path: str) -> Leftovers:
    """Return what the record in this file says; without a file, nothing.

    Raises OSError if it is no file or cannot be read. Reading takes as long as its file system likes.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait for who writes
    except FileNotFoundError:
        return Leftovers()
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(EINVAL, f"{path} is no file: remove it")
        with open(fd, "rb", closefd=False) as file:
            return parse(file.read(RECORD_BYTES_MAX).decode("ascii", "replace"), host_boot_id())
    finally:
        os.close(fd)


class Record:
    """The record of this boot. Nothing is written before `begin`: the file may be another node's."""

    def __init__(self, path: str, mark: str) -> None:
        self._path = path
        self._kept = Leftovers()
        self._kept.marks[mark] = None
        self._fd = -1
        self._lines = 0
        self._is_begun = False
        self._is_whole = False  # the file says what is kept: else it is written anew

    def begin(self, left: Leftovers) -> None:
        """Write the record anew, with what the last boot left and could not be cleared. Raises OSError."""
        self._kept.marks.update(left.marks)
        self._kept.leaders.update(left.leaders)
        self._is_begun = True
        self._rewrite()

    def add(self, leader: Key) -> None:
        """Note a leader. Raises OSError."""
        self._kept.leaders[leader] = None
        self._append(f"run {leader[0]} {leader[1]}\n")

    def drop(self, leader: Key) -> None:
        """Strike out a leader whose run is over. Raises OSError."""
        self._kept.leaders.pop(leader, None)
        self._append(f"end {leader[0]} {leader[1]}\n")

    def repair(self) -> None:
        """Write it anew if the last attempt to write failed. Raises OSError."""
        if self._is_begun and not self._is_whole:
            self._rewrite()

    def _append(self, line: str) -> None:
        if not self._is_begun:
            return
        self._lines += 1
        if self._is_whole and self._lines <= _SPARE_LINES + 2 * len(self._kept.leaders):
            self._is_whole = False
            text = line.encode()
            self._is_whole = os.write(self._fd, text) == len(text)
        else:
            self._is_whole = False
        self.repair()

    def _rewrite(self) -> None:
        lines = [f"host {host_boot_id()}"]
        lines += [f"mark {mark}" for mark in self._kept.marks]
        lines += [f"run {pid} {start}" for pid, start in self._kept.leaders]
        fresh = f"{self._path}.new"
        if os.path.lexists(fresh):  # whatever it is: to open a pipe would wait for who reads
            os.unlink(fresh)
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            with open(fd, "wb", closefd=False) as file:
                file.write(("\n".join(lines) + "\n").encode())
            os.rename(fresh, self._path)
        except OSError:
            os.close(fd)
            raise
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._lines, self._is_whole = fd, 0, True


def clear(left: Leftovers, spared_root: int) -> tuple[int, int]:
    """Kill what a boot left behind; return how many were killed and how many would not die.

    The root, what descends from it and what it descends from are spared.
    Takes up to five seconds, and longer where a process that is stuck in the kernel holds what has to
    be read of it: call it from a process of its own.
    """
    if not left.leaders and not left.marks:
        return 0, 0
    deadline = time.monotonic() + CLEAR_TIMEOUT_S
    killed: set[Key] = set()
    pause_s = 0.001
    while True:
        found = _find(left, spared_root)
        fresh = [process for process in found if process.key not in killed]
        for process in fresh:
            send(process.key, SIGSTOP)
        killed.update(process.key for process in fresh)
        if not fresh:
            # Nobody new since the last look, so nobody forks: now they may go, children first.
            for process in reversed(found):
                send(process.key, SIGKILL)
        if not found:
            return len(killed), 0
        if time.monotonic() > deadline:
            return len(killed) - len(found), len(found)
        if not fresh:
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.1)


def _find(left: Leftovers, root: int) -> list[Process]:
    """Return all processes left behind that live, parents first."""
    processes = survey()
    spared = {root, 1, *(process.pid for process in below((root,), processes))}
    ancestor = processes.get(root)
    while ancestor is not None and ancestor.pid > 1:
        spared.add(ancestor.pid)
        ancestor = processes.get(ancestor.parent)
    groups = {
        pid
        for pid, start in left.leaders
        if (leader := processes.get(pid)) is not None and leader.start == start
    }
    marks = [f"{MARK_VARIABLE}={mark}".encode() for mark in left.marks]
    roots = [
        process
        for process in processes.values()
        if process.pid not in spared
        and ({process.pid, process.group, process.session} & groups or carries(process.pid, marks))
    ]
    known = {process.pid for process in roots}
    others = [process for process in below(known, processes) if process.pid not in known | spared]
    return [process for process in (*roots, *others) if not process.is_dead]
