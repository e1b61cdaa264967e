"""`mesh top` on a real terminal: what it shows, and that it gives the terminal back whatever ends it."""

from __future__ import annotations

import array
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from mesh.fleet.fleet import Fleet
from tests.process.views_server import ViewsServer
from tests.unit.tui.boards import member_json, view_json

DEADLINE_S = 20.0
ENTERED = b"\x1b[?1049h"
LEFT = b"\x1b[?25h\x1b[?1049l"

# A session's leader has to take its terminal before the screen asks what it runs on.
LAUNCH = """
import fcntl, sys, termios
from pathlib import Path
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from mesh.tui.screen import Screen
from mesh.tui.top import run_top
if sys.argv[2] == "broken":
    def render(self):
        raise RuntimeError("drawing failed")
    Screen.render = render
sys.exit(run_top(Path(sys.argv[1])))
"""


class Seat:
    """A pseudo-terminal with `mesh top` on it; ended and closed when the test is over."""

    def __init__(self, data_dir: Path, *, how: str = "whole", **environment: str) -> None:
        self.master, self.slave = pty.openpty()
        self.resize(80, 24)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(data_dir), how],
            stdin=self.slave,
            stdout=self.slave,
            stderr=subprocess.PIPE,
            env={**os.environ, "TERM": "xterm", **environment},
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()
        for fd in (self.master, self.slave):
            with suppress(OSError):
                os.close(fd)

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def read(self, until: Callable[[bytes], bool]) -> bytes:
        """Read on until what came since the last call satisfies `until`, and return that."""
        came = b""
        deadline = time.monotonic() + DEADLINE_S
        while not until(came):
            assert time.monotonic() < deadline, f"in time came only {came!r}"
            readable, _, _ = select.select([self.master], [], [], 0.1)
            if readable:
                came += os.read(self.master, 65_536)
        self.seen += came
        return came

    def wait_text(self, text: str) -> bytes:
        return self.read(lambda came: text.encode() in came)

    def end(self) -> int:
        """Read until the process has ended, and return its exit code."""
        self.read(lambda _: self.process.poll() is not None)
        with suppress(BlockingIOError):
            os.set_blocking(self.master, False)
            while data := os.read(self.master, 65_536):
                self.seen += data
        return self.process.wait()

    def is_given_back(self) -> bool:
        return self.seen.endswith(LEFT) and termios.tcgetattr(self.slave) == self.before

    def errors(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


def three_members() -> list[Any]:
    members = [member_json(n) for n in (1, 2, 3)]
    return [view_json(members)]


def views_that_differ() -> list[Any]:
    return [view_json([member_json(n, load=load) for n in range(1, 60)]) for load in (0.1, 0.9)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ViewsServer]:
    with ViewsServer(tmp_path, three_members(), 0.1) as server:
        yield server


def test_q_ends_the_screen_and_gives_the_terminal_back(server: ViewsServer, tmp_path: Path) -> None:
    with Seat(tmp_path) as seat:
        frame = seat.wait_text("127.0.0.1:7948")
        assert ENTERED in frame
        assert termios.tcgetattr(seat.slave) != seat.before
        seat.press(b"q")
        assert seat.end() == 0
        assert seat.is_given_back()


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        (signal.SIGHUP, 129),
        (signal.SIGQUIT, 131),
        (signal.SIGINT, 0),
    ],
)
def test_signal_ends_the_screen_and_gives_the_terminal_back(
    server: ViewsServer, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with Seat(tmp_path) as seat:
        seat.wait_text("127.0.0.1:7948")
        seat.process.send_signal(number)
        assert seat.end() == code
        assert seat.is_given_back()
        assert seat.errors() == ""


def test_ctrl_c_at_the_terminal_quits(server: ViewsServer, tmp_path: Path) -> None:
    with Seat(tmp_path) as seat:
        seat.wait_text("127.0.0.1:7948")
        seat.press(b"\x03")
        assert seat.end() == 0
        assert seat.is_given_back()


def test_error_while_drawing_gives_the_terminal_back_before_it_is_told(
    server: ViewsServer, tmp_path: Path
) -> None:
    with Seat(tmp_path, how="broken") as seat:
        assert seat.end() == 1
        assert seat.is_given_back()
        assert "drawing failed" in seat.errors()


def test_terminal_that_takes_nothing_cannot_keep_the_screen_from_ending(tmp_path: Path) -> None:
    with ViewsServer(tmp_path, views_that_differ(), 0.02) as server, Seat(tmp_path) as seat:
        seat.resize(200, 60)
        seat.wait_text("127.0.0.1:7948")
        # Nothing is read from here on: the terminal fills up, then the screen takes no views any more.
        deadline = time.monotonic() + DEADLINE_S
        held, since = (-1, -1), time.monotonic()
        while time.monotonic() < since + 1.0:
            assert time.monotonic() < deadline
            now_held = _waiting_bytes(seat.master), server.sent
            if now_held != held:
                held, since = now_held, time.monotonic()
            time.sleep(0.01)
        seat.process.terminate()
        assert seat.process.wait(DEADLINE_S) == 143
        assert termios.tcgetattr(seat.slave) == seat.before


def _waiting_bytes(fd: int) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]


def test_vanished_terminal_ends_the_screen_quietly(server: ViewsServer, tmp_path: Path) -> None:
    with Seat(tmp_path) as seat:
        seat.wait_text("127.0.0.1:7948")
        os.close(seat.slave)
        os.close(seat.master)
        assert seat.process.wait(DEADLINE_S) in {
            0,
            129,
        }  # hung up: by signal, or by reading nothing
        assert seat.errors() == ""


def test_new_size_is_drawn_at_once(server: ViewsServer, tmp_path: Path) -> None:
    with Seat(tmp_path) as seat:
        seat.wait_text("127.0.0.1:7948")
        seat.resize(200, 60)
        assert "NODE ID" in seat.wait_text("\x1b[60;1H").decode()


def test_unchanged_view_writes_no_member_again(server: ViewsServer, tmp_path: Path) -> None:
    with Seat(tmp_path) as seat:
        seat.wait_text("127.0.0.1:7948")
        sent = server.sent
        came = seat.read(lambda _: server.sent >= sent + 25)
        assert len(re.findall(rb"\?2026h", came)) <= 2.5 * 4 + 2
        assert came.count(b"127.0.0.1:7948") <= 4  # its age ticks once a second
        assert b"\x1b[2J" not in came


def test_without_colours_when_asked(server: ViewsServer, tmp_path: Path) -> None:
    with Seat(tmp_path, NO_COLOR="1") as seat:
        frame = seat.wait_text("scroll")
        assert not re.search(rb"\x1b\[[\d;]*3\d", frame)


def test_node_that_goes_away_is_waited_for(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with ViewsServer(tmp_path, three_members(), 0.1):
            seat = stack.enter_context(Seat(tmp_path))
            seat.wait_text("127.0.0.1:7948")
        seat.wait_text("node n1 gone, trying again")
        stack.enter_context(ViewsServer(tmp_path, three_members(), 0.1))
        seat.wait_text("3f9a2c1b7d0e4f55")
        seat.press(b"q")
        assert seat.end() == 0
        assert seat.is_given_back()


def test_ctrl_z_gives_the_terminal_back_until_continued(
    server: ViewsServer, tmp_path: Path
) -> None:
    with Seat(tmp_path) as seat:
        seat.wait_text("127.0.0.1:7948")
        seat.press(b"\x1a")
        seat.read(lambda _: _is_stopped(seat.process.pid))
        assert seat.is_given_back()
        seat.process.send_signal(signal.SIGCONT)
        seat.wait_text("127.0.0.1:7948")
        seat.press(b"q")
        assert seat.end() == 0
        assert seat.is_given_back()


def _is_stopped(pid: int) -> bool:
    found, status = os.waitpid(pid, os.WUNTRACED | os.WNOHANG)
    return found == pid and os.WIFSTOPPED(status)


def test_no_node_is_said_without_touching_the_terminal(tmp_path: Path) -> None:
    with Seat(tmp_path) as seat:
        assert seat.end() == 3
        assert seat.seen == b""
        assert seat.errors().startswith("mesh top: a running node is expected in ")


def test_dumb_terminal_is_refused(server: ViewsServer, tmp_path: Path) -> None:
    with Seat(tmp_path, TERM="dumb") as seat:
        assert seat.end() == 2
        assert seat.seen == b""
        assert seat.errors().count("\n") == 1


def test_without_a_terminal_members_are_pointed_to(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mesh", "top", "--data", str(tmp_path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2
    assert "mesh members" in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


class Tmux:
    """A tmux server of this test's own, with one window."""

    def __init__(self, socket: Path, width: int, height: int) -> None:
        self._socket = socket
        self._do("new-session", "-d", "-x", str(width), "-y", str(height), "sh")

    def _do(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout

    def send(self, *keys: str) -> None:
        self._do("send-keys", *keys)

    def pane(self) -> str:
        return self._do("capture-pane", "-p")

    def wait(self, text: str) -> str:
        deadline = time.monotonic() + DEADLINE_S
        while text not in (pane := self.pane()):
            assert time.monotonic() < deadline, f"{text!r} is expected in\n{pane}"
            time.sleep(0.02)
        return pane

    def close(self) -> None:
        self._do("kill-server")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_real_mesh_on_a_real_terminal_answers_real_keys(fleet: Fleet, tmp_path: Path) -> None:
    for name in ("n1", "n2", "n3"):
        fleet.start(name, slots=2)
    fleet.wait_whole()
    data = str(fleet.nodes["n1"].data)
    tmux = Tmux(tmp_path / "tmux", 80, 24)
    try:
        tmux.send(f"echo before; {sys.executable} -m mesh top --data {data}; echo code $?", "Enter")
        pane = tmux.wait("● 3 alive")
        assert "before" not in pane  # the alternate screen
        assert "n1 (me)" in pane
        assert all(len(line) <= 80 for line in pane.splitlines())
        tmux.send("Tab")
        tmux.wait("─[tasks]─")
        tmux.send("BTab")
        tmux.wait("─[members]─")
        tmux.send("?")
        tmux.wait("scroll by a page")
        tmux.send("Escape")
        tmux.wait("─[members]─")
        fleet.nodes["n1"].call("submit", argv=["sh", "-c", "exit 3"], cwd="/")
        tmux.wait("✗ failed")
        fleet.nodes["n3"].kill()
        tmux.wait("✗ dead")
        tmux.wait("saw n3 dead")
        tmux.send("q")
        pane = tmux.wait("code 0")
        assert "before" in pane
        assert "alive" not in pane
    finally:
        tmux.close()
