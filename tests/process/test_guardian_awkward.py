"""A guardian in awkward company: other people's processes, odd terminals, odd files, work that will not be caught."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mesh.client import Client
from mesh.core.address import Address
from mesh.fleet.fleet import Fleet
from mesh.guardian import link
from mesh.guardian.process import look
from mesh.runtime.guardian import Answer, Cleared
from mesh.runtime.spawn import spawn
from tests.process.guarded import DAEMON, Guarded, is_alive, is_frozen, until
from tests.process.seat import Seat
from tests.process.test_guarded_join import Job, kill_both

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guardian is for Linux")

PATIENCE_S = 20.0


def join_in(home: Path) -> tuple[str, ...]:
    return (
        "join",
        "--headless",
        "--name",
        "here",
        "--bind",
        "127.0.0.1:0",
        "--data",
        str(home / "d"),
    )


def has_settled(guardian: int) -> bool:
    """Say whether a guardian has dealt with a signal to stop, and sleeps again or stands still."""
    lines = Path(f"/proc/{guardian}/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines)
    pending = int(found["SigPnd"], 16) | int(found["ShdPnd"], 16)
    return not pending >> (signal.SIGTSTP - 1) & 1 and found["State"].split()[0] in {"S", "T"}


def test_ctrl_z_on_a_terminal_without_a_shell_does_not_stop_the_guardian_for_ever() -> None:
    """Nobody is there to continue it: xterm -e, ssh -t HOST mesh join, a tmux window of its own."""
    with tempfile.TemporaryDirectory(prefix="mt-") as name:
        home = Path(name)
        with Seat(home, *join_in(home)) as seat:
            seat.read_until(b"founded")
            job = Job(home)
            with Client(home / "d") as client:
                client.call("submit", argv=job.argv, cwd="/")
                status = client.call("status")
            leader, daemon = job.pids()
            seat.press(b"\x1a")
            seat.read_until(b"^Z")  # the terminal shows it once it has sent the signal
            node, guardian = status["pid"], status["guardian_pid"]
            until(lambda: has_settled(guardian), "the guardian has heard of it")
            stopped = [pid for pid in (node, guardian, leader, daemon) if is_frozen(pid)]
            assert stopped == []
            seat.press(b"\x03")
            assert seat.wait() == 0


def test_a_process_that_the_guardian_had_before_it_was_one_is_left_alone() -> None:
    """As in a container's entry point: a helper in the background, then exec."""
    with tempfile.TemporaryDirectory(prefix="mt-") as name:
        home = Path(name)
        script = f'setsid sleep 7009 & echo $! >{home}/helper; exec "$@"'
        command = [sys.executable, "-m", "mesh", *join_in(home)]
        with subprocess.Popen(
            ["sh", "-c", script, "sh", *command], start_new_session=True
        ) as joined:
            until((home / "d" / "control.sock").exists, "the node runs")
            helper = int((home / "helper").read_text())
            job = Job(home)
            with Client(home / "d") as client:
                client.call("submit", argv=job.argv, cwd="/")
            pids = job.pids()
            joined.send_signal(signal.SIGTERM)
            joined.wait(PATIENCE_S)
            survived = is_alive(helper)
            if survived:
                os.kill(helper, signal.SIGKILL)
            assert survived
            assert not any(map(is_alive, pids))


HELPER = "setsid sh -c 'sleep 7009 & exec sleep 7008' &"
RESTLESS = "setsid sh -c 'trap \"sleep 7010 & exit\" TERM; sleep 7008 & wait' &"
"""Starts a daemon at the last moment, and ends."""


def test_what_a_helper_orphans_is_no_work_of_the_node(tmp_path: Path) -> None:
    with (
        Guarded(tmp_path, before=HELPER) as guardian,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as observer,
    ):
        observer.bind(("127.0.0.1", 0))
        observer.settimeout(PATIENCE_S)
        guardian.node.obituary([(Address(*observer.getsockname()), b"sealed")])
        helper, its_child = guardian.sleeper(7008), guardian.sleeper(7009)
        leader = guardian.spawn("exec sleep 7003")
        guardian.watch(1, leader, 0, 0)
        guardian.hear_until(Answer(link.KILLED, 1))  # it has looked who is there
        os.kill(helper, signal.SIGKILL)
        guardian.orphan(7009)
        leader = guardian.spawn(DAEMON)
        guardian.watch(2, leader)
        daemon = guardian.orphan(7001)
        guardian.node.move(2, 0, 0)
        guardian.hear_until(Answer(link.KILLED, 2))
        assert not is_alive(leader)
        assert not is_alive(daemon)
        guardian.watch(3, guardian.spawn(DAEMON))
        pids = guardian.orphan(7001), guardian.sleeper(7002)
        os.kill(guardian.node_pid, signal.SIGKILL)
        assert guardian.process.wait(PATIENCE_S) == 128 + signal.SIGKILL
        assert not any(map(is_alive, pids))
        assert is_alive(its_child)
        assert observer.recv(2000) == b"sealed"


def test_an_orphan_that_may_be_work_or_not_is_left_alone_and_there_is_no_obituary(
    tmp_path: Path,
) -> None:
    with (
        Guarded(tmp_path, before=RESTLESS) as guardian,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as observer,
    ):
        observer.bind(("127.0.0.1", 0))
        guardian.node.obituary([(Address(*observer.getsockname()), b"sealed")])
        helper = look(guardian.sleeper(7008))
        assert helper is not None
        os.kill(helper.parent, signal.SIGTERM)
        unclear = guardian.orphan(7010)
        os.kill(guardian.node_pid, signal.SIGKILL)
        assert guardian.process.wait(PATIENCE_S) == 128 + signal.SIGKILL
        assert is_alive(unclear)
        observer.setblocking(False)
        with pytest.raises(BlockingIOError):  # the guardian is dead: nothing can come any more
            observer.recv(2000)


def test_a_record_that_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    tune = "from mesh.guardian import program; program.REPAIR_S = 0.05"
    with Guarded(tmp_path, "later/record", tune=tune) as guardian:
        guardian.node.clear()
        assert guardian.hear() == Cleared(0, 0)
        (tmp_path / "later").mkdir()
        until((tmp_path / "later" / "record").exists, "the record is there")


def test_a_task_cannot_set_the_mark_by_which_its_guardian_knows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for own in ("12.34", ""):
        if own:
            monkeypatch.setenv(link.MARK_VARIABLE, own)
        else:
            monkeypatch.delenv(link.MARK_VARIABLE)
        script = f"echo ${link.MARK_VARIABLE}-$MORE"
        with spawn(("sh", "-c", script), {link.MARK_VARIABLE: "1.1", "MORE": "x"}, "") as child:
            assert child.communicate(timeout=PATIENCE_S)[0] == f"{own}-x\n".encode()


def test_what_a_task_left_behind_dies_with_it_though_a_screen_is_shown() -> None:
    with tempfile.TemporaryDirectory(prefix="mt-") as name:
        home = Path(name)
        arguments = [one for one in join_in(home) if one != "--headless"]
        with Seat(home, *arguments) as seat:
            seat.read_until(b"founded")
            script = f"setsid sh -c 'sleep 7001 >&- 2>&- & echo $! >{home}/new; mv {home}/new {home}/daemon'"
            with Client(home / "d") as client:
                client.call("submit", argv=["sh", "-c", script], cwd="/")
            until((home / "daemon").exists, "the daemon runs")
            daemon = int((home / "daemon").read_text())
            try:
                until(lambda: not is_alive(daemon), "the daemon of an ended task is dead")
            finally:
                seat.press(b"\x03")
                seat.wait()


@pytest.mark.parametrize("name", ["guardian", "guardian.new"])
def test_a_pipe_in_place_of_the_record_does_not_hold_the_guardian(fleet: Fleet, name: str) -> None:
    data = fleet.home / "a"
    data.mkdir()
    os.mkfifo(data / name)
    node = fleet.start("a")
    assert (data / "guardian").is_file() == (name == "guardian.new")
    os.kill(node.outer_pid, signal.SIGTERM)
    assert node.wait_ended() == 0


def test_a_guardian_without_standard_streams_does_not_speak_to_its_node() -> None:
    with tempfile.TemporaryDirectory(prefix="mt-") as name:
        home = Path(name)
        (home / "d").mkdir()
        (home / "d" / "guardian").mkdir()  # something to complain of
        command = [sys.executable, "-m", "mesh", *join_in(home)]
        script = 'exec 0<&- 1>&- 2>&-; exec "$@"'
        with subprocess.Popen(
            ["sh", "-c", script, "sh", *command], start_new_session=True
        ) as joined:
            try:
                until((home / "d" / "control.sock").exists, "the node runs")
                with Client(home / "d") as client:
                    assert client.call("status")["guardian_pid"] == joined.pid
            finally:
                joined.send_signal(signal.SIGTERM)
            assert joined.wait(PATIENCE_S) == 0


def test_a_daemon_with_a_large_environment_is_cleared_away_too(fleet: Fleet) -> None:
    node = fleet.start("a")
    here = fleet.home / "pids"
    here.mkdir()
    script = (
        "import os, sys; old = dict(os.environ); mark = old.pop('MESH_GUARDIAN');"
        "env = {**old, 'A': 'a' * 100_000, 'B': 'b' * 100_000, 'C': 'c' * 100_000, 'MESH_GUARDIAN': mark};"
        "os.setsid() if os.fork() == 0 else os._exit(0);"
        f"open('{here}/new', 'w').write(str(os.getpid())); os.rename('{here}/new', '{here}/daemon');"
        "os.closerange(0, 3); os.execve('/bin/sleep', ['sleep', '7001'], env)"
    )
    hold = f'"{sys.executable}" -c "$1"; exec sleep 7002'
    node.call("submit", argv=["sh", "-c", hold, "sh", script], cwd="/")
    until((here / "daemon").exists, "the daemon runs")
    daemon = int((here / "daemon").read_text())
    until(lambda: Path(f"/proc/{daemon}/comm").read_text() == "sleep\n", "it sleeps")
    kill_both(node)
    fleet.launch("a").wait_ready()
    survived = is_alive(daemon)
    if survived:
        os.kill(daemon, signal.SIGKILL)
    assert not survived


@pytest.mark.parametrize("flees", [False, True])
def test_work_that_forks_and_exits_on_and_on_dies_with_its_node(
    tmp_path: Path, *, flees: bool
) -> None:
    """A process that is never the same for long: what is signalled one by one is gone before the signal comes."""
    life, alive_s = tmp_path / "life", 12.0
    os.mkfifo(life)
    script = (
        "import os, time\n"
        f"fd = os.open({str(life)!r}, os.O_WRONLY)\n"
        "os.write(fd, b'x')\n"
        f"end = time.monotonic() + {alive_s}\n"
        "while time.monotonic() < end:\n"
        "    if os.fork():\n"
        "        os._exit(0)\n"
        f"    {'os.setsid()' if flees else 'pass'}\n"
        "    time.sleep(0.002)\n"
    )
    ear = os.open(life, os.O_RDONLY | os.O_NONBLOCK)
    with Guarded(tmp_path) as guardian:
        (tmp_path / "comet.py").write_text(script)
        guardian.tell("spawn", sys.executable, "-I", "-S", str(tmp_path / "comet.py"))
        assert select.select([ear], [], [], PATIENCE_S)[0], "it has not begun"
        assert os.read(ear, 1) == b"x"
        os.kill(guardian.node_pid, signal.SIGKILL)
        is_dead = bool(select.select([ear], [], [], alive_s / 2)[0])  # the end of file
        guardian.process.wait(PATIENCE_S)
    os.close(ear)
    assert is_dead
