"""The screen in front of a node that was started on a terminal.

The node stays in its own process and the screen is a child, so that drawing can never delay the
gossip. While the screen is shown, what the node logs goes to DIR/log; when the user closes the
screen with `q` the node stays a member and logs to the terminal. Ctrl-C reaches both: the node leaves.
A node that is killed takes its screen along (`child_screen.py`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from mesh.cli.child_screen import start_screen
from mesh.client import Client
from mesh.errors import MeshError

READY_TIMEOUT_S: Final = 30.0
READY_POLL_S: Final = 0.05
CLOSE_TIMEOUT_S: Final = 5.0
LAST_LINES_MAX: Final = 8
"""What the node said last is shown on the terminal when it ends: from its leaving on, so many lines."""

LAST_BYTES_MAX: Final = 64 * 1024
"""A node may have logged for years: no more than this is read for its last lines."""

_STDERR: Final = 2
_INTERRUPTED: Final = frozenset({128 + signal.SIGINT, -signal.SIGINT})
"""How the screen ends by the Ctrl-C that makes the node leave; it may take long to stop its tasks then."""


@contextmanager
def joined_screen(data_dir: Path) -> Iterator[None]:
    """Show the screen as soon as the node of this process answers; take it away on leaving.

    Enter it in the main thread.
    """
    screen = _Screen(data_dir)
    thread = threading.Thread(target=screen.show, name="screen", daemon=True)
    thread.start()
    try:
        yield
    finally:
        screen.close()
        thread.join(CLOSE_TIMEOUT_S)


class _Screen:
    """The child process that draws, and where this process's stderr goes meanwhile."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._terminal = os.dup(_STDERR)
        self._log = data_dir / "log"
        self._log_from = 0  # where in the log this node began to write
        self._lock = threading.Lock()
        self._is_over = False
        self._is_shown = False
        self._child, self._go = start_screen(data_dir)

    def show(self) -> None:
        """Wait for the node, let the screen draw until it ends, and say what the node does then."""
        is_ready = self._wait_ready()
        with self._lock:
            if is_ready and not self._is_over:
                self._redirect()
                self._is_shown = True
                with suppress(OSError):  # it has ended already
                    os.write(self._go, b".")
            os.close(self._go)
        code = self._child.wait()
        with self._lock:
            if not self._is_shown or self._is_over:
                return
            self._is_shown = False
            os.dup2(self._terminal, _STDERR)
            if code in _INTERRUPTED:
                self._tell_last(since_leaving=True)
                return
            self._say(
                "the screen is closed, the node stays a member and logs here; Ctrl-C leaves the mesh, "
                "mesh top shows the screen again"
            )

    def close(self) -> None:
        """End the screen and show on the terminal what the node said last."""
        with self._lock:
            self._is_over = True
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGINT)
            self._child.send_signal(signal.SIGCONT)  # it may stand still in the background
            try:
                self._child.wait(CLOSE_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        if self._is_shown:
            os.dup2(self._terminal, _STDERR)
            self._tell_last()

    def _wait_ready(self) -> bool:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._is_over and self._child.poll() is None and time.monotonic() < deadline:
            with suppress(MeshError), Client(self._data_dir) as client:
                if client.call("status")["pid"] == os.getpid():
                    return True
            time.sleep(READY_POLL_S)
        return False

    def _redirect(self) -> None:
        try:
            log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._log_from = os.fstat(log).st_size
        except OSError as error:
            self._say(f"no log while the screen is shown: {error}")
            log = os.open(os.devnull, os.O_WRONLY)
        os.dup2(log, _STDERR)
        os.close(log)

    def _tell_last(self, *, since_leaving: bool = False) -> None:
        """Show on the terminal what the node said last: all of it that it said into the log."""
        for line in last_lines(self._log, self._log_from, since_leaving=since_leaving):
            with suppress(OSError):
                os.write(self._terminal, f"{line}\n".encode())

    def _say(self, text: str) -> None:
        with suppress(OSError):
            os.write(self._terminal, f"mesh: {text}\n".encode())


def last_lines(log: Path, start: int, *, since_leaving: bool = False) -> list[str]:
    """Return what was logged from the leave on, but not before the byte `start`: also what ends with the node.

    Without a leave in the log that is the last of it all, or nothing if `since_leaving`.
    """
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(min(size, max(start, size - LAST_BYTES_MAX)))
            lines = file.read(LAST_BYTES_MAX).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    nothing = len(lines) if since_leaving else 0
    begin = max((at for at, line in enumerate(lines) if ": leaving" in line), default=nothing)
    return lines[begin:][-LAST_LINES_MAX:]
