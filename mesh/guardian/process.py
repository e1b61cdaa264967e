"""Processes as /proc shows them: who is whose child, and signals that reach nobody else.

A pid alone names nobody: it is given anew. Together with the start time it names one process for as
long as the host is up. Reading a process's stat takes no lock of that process, so that one stuck in
the kernel cannot hold up who looks at it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable, Mapping
    from typing import Final, TypeAlias

    Key: TypeAlias = tuple[int, int]
else:
    import _signal as signal  # the same without its enumerations: 0.7 MiB less

SIGKILL: Final = int(signal.SIGKILL)
SIGSTOP: Final = int(signal.SIGSTOP)
SIGCONT: Final = int(signal.SIGCONT)

PASSES_MAX: Final = 64
"""How often work is searched for what it has forked meanwhile, before others get their turn."""

ENVIRON_BYTES_MAX: Final = 6 << 20
"""What the kernel lets a program begin with, arguments and environment: three quarters of 8 MiB."""

_PIECE_BYTES: Final = 1 << 16
_STAT_BYTES_MAX: Final = 4096


class Process:
    """One process at the moment it was looked at."""

    __slots__ = ("group", "is_dead", "is_stopped", "key", "parent", "pid", "session", "start")

    def __init__(self, pid: int, stat: bytes) -> None:
        # The name stands in brackets and may hold brackets and blanks itself: fields count from its end.
        fields = stat[stat.rindex(b")") + 2 :].split()
        self.pid = pid
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.start = int(fields[19])
        self.key = (pid, self.start)
        self.is_stopped = fields[0] == b"T"
        # One whose first thread has ended shows as a zombie too, and runs on in its other threads.
        self.is_dead = fields[0] in {b"Z", b"X"} and int(fields[17]) <= 1


def look(pid: int) -> Process | None:
    """Return the process that has this pid now, or None. Raises OSError if /proc cannot be read."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except (FileNotFoundError, ProcessLookupError):
        return None
    try:
        stat = os.read(fd, _STAT_BYTES_MAX)
    except ProcessLookupError:
        return None
    finally:
        os.close(fd)
    return Process(pid, stat) if stat else None


def survey() -> dict[int, Process]:
    """Return every process of this host that can be seen. Takes about 30 us for each."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = look(int(name))
            if process is not None:
                found[process.pid] = process
    return found


def below(roots: Iterable[int], processes: Mapping[int, Process]) -> list[Process]:
    """Return all descendants of the roots, without these, parents before their children."""
    children: dict[int, list[Process]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process)
    found = [child for root in roots for child in children.pop(root, ())]
    for process in found:  # grows while it is walked
        found += children.pop(process.pid, ())
    return found


def send(key: Key, number: int) -> bool:
    """Signal exactly this process; return False if it is gone, or may not be signalled."""
    pid, start = key
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (AttributeError, OSError):
        fd = -1  # an older kernel, or no descriptor left: the pid is good for the next microseconds
    try:
        process = look(pid)
        if process is None or process.start != start:
            return False
        if fd < 0:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(fd, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        if fd >= 0:
            os.close(fd)
    return True


def kill_all(find: Callable[[], list[Process]]) -> int:
    """Kill whoever is found, parents first; return how many lived. Ask again until it is 0.

    All are stopped, until none is found that was not stopped before, and only then is the first
    killed, so that none forks in between; children go before their parents, so that no stopped
    process group is orphaned, which the kernel would continue.
    """
    stopped: set[Key] = set()
    found: list[Process] = []
    for _ in range(PASSES_MAX):
        found = [process for process in find() if not process.is_dead]
        fresh = [process.key for process in found if process.key not in stopped]
        if not fresh:
            break
        for key in fresh:
            send(key, SIGSTOP)
        stopped.update(fresh)
    for process in reversed(found):
        send(process.key, SIGKILL)
    return len(found)


def kill_below(root: int, spared_group: int = 0) -> int:
    """Kill all descendants of a process, without those in the spared group, as `kill_all` does."""
    return kill_all(
        lambda: [each for each in below((root,), survey()) if each.group != spared_group]
    )


def carries(pid: int, entries: Iterable[bytes]) -> bool:
    """Say whether a process has one of these in its environment, as it was when its program began.

    What it has changed since does not show. Without the right to look, or the process: False. Raises
    OSError. May wait for as long as the process is stuck in the kernel.
    """
    wanted = [b"\0%b\0" % entry for entry in entries]
    longest = max(map(len, wanted), default=0)
    rest = b"\0"
    try:
        fd = os.open(f"/proc/{pid}/environ", os.O_RDONLY)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False
    try:
        for _ in range(ENVIRON_BYTES_MAX // _PIECE_BYTES):
            piece = os.read(fd, _PIECE_BYTES)
            rest += piece or b"\0"  # the last entry may lack its end
            if any(each in rest for each in wanted):
                return True
            if not piece:
                return False
            rest = rest[-longest:]
    except (ProcessLookupError, PermissionError):
        pass
    finally:
        os.close(fd)
    return False


def may_be_continued(group: int) -> bool:
    """Say whether a process group is not orphaned: somebody of its session, outside it, started one of it.

    That would be a shell, who can continue it when it is stopped. In an orphaned group the kernel
    itself stops nobody at the terminal's word (POSIX.1-2017, 2.4.3).
    """
    processes = survey()
    for process in processes.values():
        parent = processes.get(process.parent)
        if process.group != group or process.is_dead or parent is None or parent.pid == 1:
            continue
        if parent.group != group and parent.session == process.session:
            return True
    return False


def become(command: list[str], more: dict[str, str], mask: set[int]) -> None:
    """Replace this process by a command, whose environment has some more. Raises OSError."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # the interpreter ignores them
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.execvpe(command[0], command, {**os.environ, **more})  # noqa: S606 - an argument list
