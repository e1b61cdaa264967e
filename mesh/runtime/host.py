"""What this host can do for a node, tried out: each try is undone, and none needs more rights than a node has."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import socket
import sqlite3
import subprocess
import sys
import time
from typing import Final

from mesh.core.address import Address
from mesh.runtime.doctor import Finding
from mesh.runtime.errqueue import ErrorQueue, open_error_queue

SQLITE_MIN: Final = (3, 24, 0)
"""The first version that changes a row only if the new one is not lower (`ON CONFLICT … DO UPDATE … WHERE`)."""

_REFUSAL_MS: Final = 500
_NAMESPACE_S: Final = 10.0
_PR_GET_CHILD_SUBREAPER: Final = 37
_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWPID: Final = 0x20000000
_ENTER: Final = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(int(sys.argv[1])):
    sys.exit(ctypes.get_errno())
child = os.fork()
if not child:
    os._exit(0 if os.getpid() == 1 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def check_host() -> list[Finding]:
    """Try out what a node makes use of. It takes less than a second, and up to some on a host at its limits."""
    return [_system(), _boot_clock(), _error_queue(), _subreaper(), _pid_namespaces(), _sqlite()]


def _system() -> Finding:
    if not sys.platform.startswith("linux"):
        text = f"Linux is expected, found {sys.platform}: Mesh runs there with what follows missing"
        return Finding("system", "warn", text, "take a Linux host for what must not fail")
    return Finding("system", "ok", f"Linux {os.uname().release}")


def _boot_clock() -> Finding:
    clock_id = getattr(time, "CLOCK_BOOTTIME", None)
    try:
        now = None if clock_id is None else time.clock_gettime(clock_id)
    except OSError:
        now = None
    if now is not None:
        return Finding("boot clock", "ok", "the clock goes on while the host sleeps")
    text = "there is no CLOCK_BOOTTIME: a node does not notice that its host has slept"
    return Finding("boot clock", "warn", text, "let this host not sleep while a node runs")


def _error_queue() -> Finding:
    """Send a datagram to a port that nobody holds any more, and see whether the kernel says so."""
    missing = "the kernel does not tell which host refused a datagram (IP_RECVERR)"
    advice = "crashes are noticed by silence alone, which takes longer"
    try:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held,
        ):
            sock.bind(("127.0.0.1", 0))
            held.bind(("127.0.0.1", 0))
            address = Address(*held.getsockname())
            held.close()
            if open_error_queue(sock):
                queue = ErrorQueue(sock)
                data = b"nobody is asked"
                sock.sendto(data, (address.host, address.port))
                queue.note_sent((address, data))
                poll = select.poll()
                poll.register(sock, 0)  # an error is always reported
                poll.poll(_REFUSAL_MS)
                if queue.drain() == [address]:
                    text = "the kernel tells which host refused a datagram"
                    return Finding("error queue", "ok", text)
    except OSError as error:
        return Finding("error queue", "warn", f"{missing}: {error.strerror}", advice)
    return Finding("error queue", "warn", missing, advice)


def _subreaper() -> Finding:
    """Ask whether this process is one: a kernel that can answer could make it one."""
    is_one = ctypes.c_int(0)
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        failed = prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(is_one), 0, 0, 0) != 0
    except (AttributeError, OSError):
        failed = True
    if not failed:
        return Finding("subreaper", "ok", "a process can adopt what its tasks leave behind")
    text = "no process can adopt what its tasks leave behind (PR_SET_CHILD_SUBREAPER)"
    return Finding(
        "subreaper", "warn", text, "tasks that start daemons may outlive their node here"
    )


def _pid_namespaces() -> Finding:
    """Make one, in a process of its own."""
    ways = [_CLONE_NEWPID] if os.geteuid() == 0 else [_CLONE_NEWUSER | _CLONE_NEWPID]
    advice = "allow user namespaces, or run the node as root: else a descendant of a task may outlive a killed node"
    for flags in ways:
        why = _enter_namespace(flags)
        if not why:
            how = "as root" if flags == _CLONE_NEWPID else "in a user namespace"
            text = f"processes of a task can be killed together, in a PID namespace ({how})"
            return Finding("pid namespaces", "ok", text)
    text = f"processes of a task cannot be put into a PID namespace: {why}"
    return Finding("pid namespaces", "warn", text, advice)


def _enter_namespace(flags: int) -> str:
    """Return why no such namespace can be made, "" if one can."""
    if not sys.platform.startswith("linux"):
        return "there are none"
    command = [sys.executable, "-I", "-S", "-c", _ENTER, str(flags)]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_NAMESPACE_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"it could not be tried: {error}"
    if done.returncode == 0:
        return ""
    known = errno.errorcode.get(done.returncode)
    return f"{os.strerror(done.returncode)} ({known})" if known else f"exit {done.returncode}"


def _sqlite() -> Finding:
    found = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < SQLITE_MIN:
        text = f"SQLite {'.'.join(map(str, SQLITE_MIN))} or later is expected, found {found}"
        return Finding("sqlite", "bad", text, "take a Python that is linked with a later one")
    if sqlite3.threadsafety == 0:
        text = f"SQLite {found} was built without threads, one that has them is expected"
        return Finding("sqlite", "bad", text, "take a Python that is linked with another")
    return Finding("sqlite", "ok", f"SQLite {found}")
