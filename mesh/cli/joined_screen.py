"""The screen in front of a node that was started on a terminal.

The node stays in its own process and the screen is a child, so that drawing can never delay the
gossip. While the screen is shown, what the node logs goes to DIR/log; when the user closes the
screen with `q` the node stays a member and logs to the terminal. Ctrl-C reaches both: the node leaves.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from mesh.client import Client
from mesh.errors import MeshError

READY_TIMEOUT_S: Final = 30.0
READY_POLL_S: Final = 0.05
CLOSE_TIMEOUT_S: Final = 5.0
_STDERR: Final = 2


@contextmanager
def joined_screen(data_dir: Path) -> Iterator[None]:
    """Show the screen as soon as the node of this process answers; take it away on leaving."""
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
        self._lock = threading.Lock()
        self._is_over = False
        self._child: subprocess.Popen[bytes] | None = None

    def show(self) -> None:
        """Wait for the node, run the screen until it ends, and say what the node does then."""
        if not self._wait_ready():
            return
        with self._lock:
            if self._is_over:
                return
            self._redirect()
            self._child = subprocess.Popen(
                [sys.executable, "-m", "mesh", "top", "--data", str(self._data_dir)],
                stderr=self._terminal,
            )
        self._child.wait()
        with self._lock:
            os.dup2(self._terminal, _STDERR)
            if not self._is_over:
                self._say(
                    "the screen is closed, the node stays a member and logs here; Ctrl-C leaves the mesh, "
                    "mesh top shows the screen again"
                )

    def close(self) -> None:
        """End the screen and show on the terminal what the node said last."""
        with self._lock:
            self._is_over = True
            child = self._child
        if child is None or child.poll() is not None:
            return
        child.terminate()
        try:
            child.wait(CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        os.dup2(self._terminal, _STDERR)
        with suppress(OSError):
            for line in self._log.read_text(errors="replace").splitlines()[-1:]:
                os.write(self._terminal, f"{line}\n".encode())

    def _wait_ready(self) -> bool:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._is_over and time.monotonic() < deadline:
            with suppress(MeshError), Client(self._data_dir) as client:
                if client.call("status")["pid"] == os.getpid():
                    return True
            time.sleep(READY_POLL_S)
        return False

    def _redirect(self) -> None:
        try:
            log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self._say(f"no log while the screen is shown: {error}")
            log = os.open(os.devnull, os.O_WRONLY)
        os.dup2(log, _STDERR)
        os.close(log)

    def _say(self, text: str) -> None:
        with suppress(OSError):
            os.write(self._terminal, f"mesh: {text}\n".encode())
