"""Join and demo on a real terminal: the screen comes, the screen goes, and the terminal is as before."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mesh.client import Client
from mesh.fleet.clearing import marked_pids, wait_until
from mesh.fleet.fleet import Fleet
from tests.process.seat import ENTER, LEAVE, TIMEOUT_S, VARIABLE, Seat


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


def test_interrupt_says_what_ends_with_the_node_however_long_that_takes(home: Path) -> None:
    with join(home) as seat:
        seat.read_until(b"members")
        with Client(home / "d") as client:
            stubborn = ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
            task_id = client.call("submit", argv=stubborn, cwd="/")["id"]
        seat.read_until("▸ running".encode())
        seat.press(b"\x03")
        assert seat.wait() == 0
        said = seat.shown.partition(LEAVE)[2].decode()
        assert f"SIGINT: leaving; stopping 1 task that runs here: {task_id}" in said
        assert "stopped: SIGINT" in said
        assert "stays a member" not in said
        seat.assert_given_back()


def test_terminated_node_takes_its_screen_along(home: Path) -> None:
    with join(home) as seat:
        seat.read_until(b"members")
        seat.process.terminate()
        assert seat.wait() == 0
        seat.assert_given_back()


def screens(seat: Seat) -> list[int]:
    """Return the processes that draw there."""
    found = []
    for pid in marked_pids(seat.mark, VARIABLE):
        with suppress(OSError):  # it has just ended
            if b"child_screen" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def test_killed_node_takes_its_screen_along_and_the_shell_has_its_terminal_back(home: Path) -> None:
    arguments = ("--name", "here", "--bind", "127.0.0.1:0", "--data", str(home / "d"))
    script = '"$@"; while :; do echo "the shell goes on"; sleep 0.1; done'
    with Seat(home, "join", *arguments, shell=script) as seat:
        seat.read_until(b"members")
        assert len(screens(seat)) == 1
        with Client(home / "d") as client:
            pid = client.call("status")["pid"]
        os.kill(pid, signal.SIGKILL)
        seat.read_until(b"the shell goes on")
        again = f"start it again: mesh join {shlex.join(arguments)}"
        seat.read_until(f"mesh: the node (process {pid}) died; {again}".encode())
        wait_until(
            lambda: screens(seat) == [] or None,
            TIMEOUT_S,
            lambda: AssertionError("the screen outlives its node"),
        )
        assert seat.shown.index(LEAVE) < seat.shown.index(b"mesh: the node")
        seat.assert_restored()


@pytest.mark.skipif(sys.platform != "linux", reason="the guardian is for Linux")
def test_node_whose_guardian_is_killed_takes_its_screen_along(home: Path) -> None:
    arguments = ("--name", "here", "--bind", "127.0.0.1:0", "--data", str(home / "d"))
    script = '"$@"; while :; do echo "the shell goes on"; sleep 0.1; done'
    with Seat(home, "join", *arguments, shell=script) as seat:
        seat.read_until(b"members")
        with Client(home / "d") as client:
            pid = client.call("status")["guardian_pid"]
        os.kill(pid, signal.SIGKILL)
        seat.read_until(f"stopped: the guardian (process {pid}) has died".encode())
        wait_until(
            lambda: screens(seat) == [] or None,
            TIMEOUT_S,
            lambda: AssertionError("the screen outlives its node"),
        )
        seat.assert_restored()


def state_of(pid: int) -> str:
    """Return the kernel's letter for what a process does: T while it is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_join_in_the_background_is_a_member_and_shows_its_screen_in_the_foreground(
    home: Path,
) -> None:
    arguments = ("--name", "here", "--bind", "127.0.0.1:0", "--data", str(home / "d"))
    script = 'set -m; "$@" & read go; fg; echo "the shell goes on: $?"'
    with Seat(home, "join", *arguments, shell=script) as seat:
        wait_until(
            lambda: any(state_of(pid) == "T" for pid in screens(seat)) or None,
            TIMEOUT_S,
            lambda: AssertionError("the screen does not wait"),
        )
        assert ENTER not in seat.shown
        with Client(home / "d", timeout_s=10.0) as client:
            assert client.call("status")["phase"] == "member"
        seat.press(b"\n")
        seat.read_until(b"members")
        seat.press(b"\x03")
        seat.read_until(b"the shell goes on: 0")
        assert seat.wait() == 0
        seat.assert_nothing_runs()


def test_join_in_the_background_ends_with_its_waiting_screen(home: Path) -> None:
    arguments = ("--name", "here", "--bind", "127.0.0.1:0", "--data", str(home / "d"))
    script = 'set -m; "$@" & wait; echo "the shell goes on"'
    with Seat(home, "join", *arguments, shell=script) as seat:
        wait_until(
            lambda: any(state_of(pid) == "T" for pid in screens(seat)) or None,
            TIMEOUT_S,
            lambda: AssertionError("the screen does not wait"),
        )
        with Client(home / "d", timeout_s=10.0) as client:
            client.call("leave", reason="test")
        seat.read_until(b"the shell goes on")
        assert seat.wait() == 0
        assert ENTER not in seat.shown
        assert LEAVE not in seat.shown
        seat.assert_nothing_runs()


def test_screen_that_stands_still_is_ended_with_its_node_and_gives_the_terminal_back(
    home: Path,
) -> None:
    with join(home) as seat:
        seat.read_until(b"members")
        (screen,) = screens(seat)
        os.kill(screen, signal.SIGSTOP)
        wait_until(
            lambda: state_of(screen) == "T" or None,
            TIMEOUT_S,
            lambda: AssertionError("it does not stop"),
        )
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
