"""Join and demo on a real terminal: the screen comes, the screen goes, and the terminal is as before."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from mesh.client import Client
from mesh.fleet.clearing import marked_pids, wait_until
from mesh.fleet.fleet import Fleet

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
TIMEOUT_S = 30.0
VARIABLE = "MESH_TEST_RUN"
_OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execv(sys.executable, [sys.executable, '-m', 'mesh', *sys.argv[1:]])"
)


class Seat:
    """A terminal of 100x30 with one `mesh` command on it, and what it has shown so far."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.shown = b""
        self._fd, far = pty.openpty()
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.settings = termios.tcgetattr(far)
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OWN_TERMINAL, *arguments],
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
        """Check that the last thing the screen did was to give the terminal back."""
        assert self.shown.count(ENTER) == self.shown.count(LEAVE) == 1
        assert self.shown.index(ENTER) < self.shown.index(LEAVE)
        assert termios.tcgetattr(self._far) == self.settings
        assert marked_pids(self.mark, VARIABLE) == []

    def _read(self, wait_s: float) -> bool:
        if not select.select([self._fd], [], [], wait_s)[0]:
            return False
        self.shown += os.read(self._fd, 65536)
        return True


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mt-") as path:
        yield Path(path)


def join(home: Path, *more: str) -> Seat:
    data = str(home / "d")
    return Seat(home, "join", "--name", "here", "--bind", "127.0.0.1:0", "--data", data, *more)


def test_joined_screen_closes_on_q_and_the_node_stays_until_interrupt(home: Path) -> None:
    with join(home) as seat:
        seat.read_until(b"here")
        seat.read_until(b"members")
        seat.press(b"q")
        seat.read_until(b"the screen is closed, the node stays a member")
        with Client(home / "d") as client:
            assert client.call("status")["phase"] == "member"
        seat.press(b"\x03")
        assert seat.wait() == 0
        assert b"stopped: SIGINT" in seat.shown
        seat.assert_given_back()


def test_interrupt_on_the_joined_screen_leaves_the_mesh(home: Path) -> None:
    with join(home) as seat:
        seat.read_until(b"members")
        seat.press(b"\x03")
        assert seat.wait() == 0
        seat.assert_given_back()
        assert b"stopped: SIGINT" in seat.shown.partition(LEAVE)[2]


def test_terminated_node_takes_its_screen_along(home: Path) -> None:
    with join(home) as seat:
        seat.read_until(b"members")
        seat.process.terminate()
        assert seat.wait() == 0
        seat.assert_given_back()


def test_node_logs_to_its_directory_while_the_screen_is_shown(home: Path, fleet: Fleet) -> None:
    with join(home, "--profile", "local") as seat:
        seat.read_until(b"members")
        with Client(home / "d") as client:
            seed = client.call("status")["address"]
        fleet.launch("guest", seed).wait_ready()
        log = home / "d" / "log"
        wait_until(
            lambda: "guest joined" in log.read_text() or None,
            TIMEOUT_S,
            lambda: AssertionError(log.read_text()),
        )
        assert b"guest joined\r\n" not in seat.shown
        seat.press(b"\x03")
        assert seat.wait() == 0


def test_headless_join_on_a_terminal_shows_lines(home: Path) -> None:
    with join(home, "--headless") as seat:
        seat.read_until(b"founded")
        seat.press(b"\x03")
        assert seat.wait() == 0
        assert ENTER not in seat.shown


def test_joined_screen_says_why_nothing_started(home: Path) -> None:
    with Seat(home, "join", "--label", "gpu", "--data", str(home / "d")) as seat:
        assert seat.wait() == 2
        assert seat.shown.startswith(b"mesh: --label expects KEY=VALUE, found 'gpu'")


def test_demo_on_a_terminal_shows_the_screen_and_then_its_story(home: Path) -> None:
    with Seat(home, "demo", "--files", "600") as seat:
        assert seat.wait() == 0, seat.shown[-3000:]
        screen, _, after = seat.shown.partition(ENTER)[2].partition(LEAVE)
        assert b"tasks done" in screen
        assert b"gamma" in screen
        for part in (b"killed gamma", b"alpha noticed", b"every one is right"):
            assert part in after
        seat.assert_given_back()
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_demo_that_is_stopped_gives_the_terminal_back(home: Path, number: signal.Signals) -> None:
    with Seat(home, "demo", "--files", "600") as seat:
        seat.read_until(b"tasks done")
        seat.process.send_signal(number)
        assert seat.wait() == 128 + number
        seat.assert_given_back()
    assert list(home.iterdir()) == []
