"""A terminal with one `mesh` command on it, as its user sits before it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Self

from mesh.fleet.clearing import marked_pids

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
TIMEOUT_S = 30.0
VARIABLE = "MESH_TEST_RUN"
_MESH = (sys.executable, "-m", "mesh")
_OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execv(sys.argv[1], sys.argv[1:])"
)


class Seat:
    """A terminal of 100x30 with one `mesh` command on it, and what it has shown so far."""

    def __init__(self, home: Path, *arguments: str, shell: str = "") -> None:
        """Start it; with a `shell` script that runs "$@", the shell leads the session."""
        self.shown = b""
        self._fd, far = pty.openpty()
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.settings = termios.tcgetattr(far)
        leader = ("/bin/sh", "-c", shell, "sh") if shell else ()
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OWN_TERMINAL, *leader, *_MESH, *arguments],
            stdin=far,
            stdout=far,
            stderr=far,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "TMPDIR": str(home), VARIABLE: self.mark},
        )
        self._far = far

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pid in marked_pids(self.mark, VARIABLE):
            os.kill(pid, signal.SIGKILL)
        os.close(self._fd)
        os.close(self._far)

    def press(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def read_until(self, wanted: bytes) -> None:
        """Read what is shown until `wanted` is part of it."""
        deadline = time.monotonic() + TIMEOUT_S
        while wanted not in self.shown:
            assert time.monotonic() < deadline, f"{wanted!r} is not in {self.shown[-2000:]!r}"
            self._read(0.2)

    def vanish(self) -> None:
        """Close both ends, as a terminal whose window is closed."""
        for fd in (self._fd, self._far):
            os.close(fd)
        self._fd, self._far = (os.open(os.devnull, os.O_RDWR) for _ in range(2))

    def wait(self) -> int:
        """Read on until the command ends; return its exit code."""
        deadline = time.monotonic() + TIMEOUT_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it did not end: {self.shown[-2000:]!r}"
            self._read(0.05)
        while self._read(0.1):
            pass
        return self.process.wait()

    def assert_given_back(self) -> None:
        """Check that the last thing the screen did was to give the terminal back, and that nothing runs."""
        self.assert_restored()
        self.assert_nothing_runs()

    def assert_nothing_runs(self) -> None:
        """Check that no process that began here is left."""
        assert marked_pids(self.mark, VARIABLE) == []

    def assert_restored(self) -> None:
        """Check that the screen came once, and that the terminal is as before."""
        assert self.shown.count(ENTER) == self.shown.count(LEAVE) == 1
        assert self.shown.index(ENTER) < self.shown.index(LEAVE)
        assert termios.tcgetattr(self._far) == self.settings

    def _read(self, wait_s: float) -> bool:
        if not select.select([self._fd], [], [], wait_s)[0]:
            return False
        self.shown += os.read(self._fd, 65536)
        return True
