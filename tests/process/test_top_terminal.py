"""`mesh top` on a real terminal: what it shows, and that it gives the terminal back whatever ends it."""

from __future__ import annotations

import array
import fcntl
import os
import pty
import random
import re
import select
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

from tests.process.views_server import ViewsServer
from tests.unit.tui.boards import member_json, view_json

DEADLINE_S = 20.0
ENTERED = b"\x1b[?1049h"
LEFT = b"\x1b[?25h\x1b[?1049l"

# A session's leader has to take its terminal before the screen asks what it runs on. "shelled": it then does
# as a shell with job control does, and SIGUSR1 lets it take the terminal before it stops its job.
LAUNCH = """
import fcntl, os, signal, sys, termios
from pathlib import Path

def be_shell(job):
    def stop(*_):
        os.tcsetpgrp(0, os.getpgrp())
        os.kill(job, signal.SIGTSTP)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, stop)
    while True:
        status = os.waitpid(job, os.WUNTRACED)[1]
        os.tcsetpgrp(0, os.getpgrp())
        if not os.WIFSTOPPED(status):
            sys.exit(os.waitstatus_to_exitcode(status))
        print("the shell has it", flush=True)
        sys.stdin.readline()
        os.tcsetpgrp(0, job)
        os.kill(job, signal.SIGCONT)

fcntl.ioctl(0, termios.TIOCSCTTY, 0)
if sys.argv[2] == "shelled":
    job = os.fork()
    if job:
        be_shell(job)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
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


@pytest.mark.measured
def test_idle_screen_of_a_hundred_members_takes_under_a_twentieth_of_a_core(tmp_path: Path) -> None:
    rng, now = random.Random(5), time.time()
    views: list[Any] = [
        view_json(
            [
                member_json(n, since=now - 37 * n, used=n % 4, rtt_ms=0.3 + 0.3 * rng.random())
                for n in range(1, 101)
            ]
        )
        for _ in range(8)
    ]
    with ViewsServer(tmp_path, views, 1.0) as server, Seat(tmp_path) as seat:
        seat.resize(200, 60)
        seat.read(lambda _: server.sent >= 2)
        before_s, since = _cpu_s(seat.process.pid), time.monotonic()
        came = seat.read(lambda _: server.sent >= 7)
        used_s, elapsed_s = _cpu_s(seat.process.pid) - before_s, time.monotonic() - since
        assert used_s < 0.05 * elapsed_s, f"{used_s / elapsed_s:.2%} of a core, {len(came)} bytes"


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process of one thread."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def test_paused_picture_stands_still_and_catches_up(tmp_path: Path) -> None:
    with ViewsServer(tmp_path, views_that_differ(), 0.1) as server, Seat(tmp_path) as seat:
        seat.wait_text("127.0.0.1:7948")
        seat.press(b"p")
        seat.wait_text("PAUSED at ")
        sent = server.sent
        came = seat.read(lambda _: server.sent >= sent + 10)
        assert b" 90%" not in came
        assert b" 10%" not in came
        seat.press(b"p")
        seat.wait_text(" 90%")


def test_q_is_a_letter_while_a_filter_is_typed(server: ViewsServer, tmp_path: Path) -> None:
    with Seat(tmp_path) as seat:
        seat.wait_text("127.0.0.1:7948")
        seat.press(b"/q")
        seat.wait_text("no member matches")
        seat.press(b"\x1b")
        seat.wait_text("127.0.0.1:7948")
        seat.press(b"q")
        assert seat.end() == 0
        assert seat.is_given_back()


def test_without_colours_when_asked(server: ViewsServer, tmp_path: Path) -> None:
    with Seat(tmp_path, NO_COLOR="1") as seat:
        frame = seat.wait_text("pause")
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
    with Seat(tmp_path, how="shelled") as seat:
        seat.wait_text("127.0.0.1:7948")
        seat.press(b"\x1a")
        came = seat.wait_text("the shell has it")
        assert came.index(LEFT) < came.index(b"the shell has it")
        assert termios.tcgetattr(seat.slave) == seat.before
        seat.press(b"\n")
        seat.wait_text("127.0.0.1:7948")
        seat.press(b"q")
        assert seat.end() == 0
        assert seat.is_given_back()


def test_shell_that_takes_the_terminal_first_has_it_as_it_was(
    server: ViewsServer, tmp_path: Path
) -> None:
    with Seat(tmp_path, how="shelled") as seat:
        seat.wait_text("127.0.0.1:7948")
        seat.process.send_signal(signal.SIGUSR1)
        assert LEFT in seat.wait_text("the shell has it")
        assert termios.tcgetattr(seat.slave) == seat.before
        seat.press(b"\n")
        seat.wait_text("127.0.0.1:7948")
        seat.press(b"q")
        assert seat.end() == 0


def test_ctrl_z_where_no_shell_could_continue_it_stops_nothing(
    server: ViewsServer, tmp_path: Path
) -> None:
    with Seat(tmp_path) as seat:
        seat.wait_text("127.0.0.1:7948")
        seat.press(b"\x1a")
        seat.wait_text("127.0.0.1:7948")
        seat.press(b"q")
        assert seat.end() == 0
        assert seat.is_given_back()


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
