"""How a guardian begins and ends: with its node, with a terminal, with what the last boot left."""

from __future__ import annotations

import os
import pty
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from mesh.core.address import Address
from mesh.fleet.clearing import marked_pids
from mesh.guardian import link
from mesh.runtime.guarded import guarded, take_link
from mesh.runtime.guardian import Answer, Cleared, Guardian, start_time_of
from tests.process.guarded import (
    DAEMON,
    NEVER,
    PATIENCE_S,
    Guarded,
    is_alive,
    is_frozen,
    now,
    until,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guardian is for Linux")

OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execv(sys.argv[1], sys.argv[1:])"
)


@pytest.fixture
def guardian(tmp_path: Path) -> Iterator[Guarded]:
    with Guarded(tmp_path) as guardian:
        yield guardian
    assert guardian.work() == []


@pytest.fixture
def observer() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(PATIENCE_S)
        yield sock


def test_the_work_dies_with_a_killed_node_and_the_obituary_is_sent(
    guardian: Guarded, observer: socket.socket
) -> None:
    leader = guardian.spawn(DAEMON)
    guardian.watch(1, leader)
    pids = [guardian.orphan(7001), guardian.sleeper(7002)]
    address = Address(*observer.getsockname())
    guardian.node.obituary([(address, b"replaced")])
    guardian.node.obituary([(Address("::1", 9), b"other"), (address, b"sealed")])
    os.kill(guardian.node_pid, signal.SIGKILL)
    assert observer.recv(2000) == b"sealed"
    assert not any(map(is_alive, pids))  # the obituary is the proof
    assert observer.recv(2000) == b"sealed"
    assert guardian.process.wait(PATIENCE_S) == 128 + signal.SIGKILL


def test_work_that_will_not_die_is_said_and_has_no_obituary(tmp_path: Path) -> None:
    unarmed = (
        "import sys; sys.path.append(sys.argv[1]); from mesh.guardian import program;"
        "program.END_TIMEOUT_S = 0.2; program.kill_all = lambda *_: 1;"
        "sys.exit(program.main(sys.argv[2:]))"
    )
    command = guarded(tmp_path / "record", ["sh", "-c", "sleep 7001 >&- 2>&- & echo $!; exit 3"])
    command[command.index("-c") + 1] = unarmed
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    os.kill(int(ended.stdout), signal.SIGKILL)
    assert ended.returncode == 3
    assert "no obituary was sent" in ended.stderr


def test_an_obituary_to_nobody_is_not_sent(guardian: Guarded, observer: socket.socket) -> None:
    guardian.node.obituary([(Address(*observer.getsockname()), b"sealed")])
    guardian.node.obituary([])
    guardian.exit(0)
    assert guardian.process.wait(PATIENCE_S) == 0
    observer.setblocking(False)
    with pytest.raises(BlockingIOError):
        observer.recv(2000)


def test_the_guardian_ends_as_the_node_did(guardian: Guarded) -> None:
    guardian.exit(37)
    assert guardian.process.wait(PATIENCE_S) == 37


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_forwarded_to_the_node(guardian: Guarded, number: signal.Signals) -> None:
    guardian.process.send_signal(number)
    # The node does not handle it, so that is what it dies of.
    assert guardian.process.wait(PATIENCE_S) == 128 + number
    assert not is_alive(guardian.node_pid)


def test_what_the_last_boot_left_is_cleared_away(tmp_path: Path) -> None:
    with Guarded(tmp_path) as last:
        last.node.clear()
        assert last.hear() == Cleared(0, 0)
        last.watch(1, last.spawn("exec sleep 7003"))
        last.watch(2, last.spawn(DAEMON))
        pids = [last.sleeper(7003), last.orphan(7001), last.sleeper(7002)]
        until(lambda: (tmp_path / "record").read_text().count("run ") == 2, "both are recorded")
        for pid in (last.pid, last.node_pid):
            os.kill(pid, signal.SIGKILL)
        last.process.wait(PATIENCE_S)
        assert all(map(is_alive, pids))
        with Guarded(tmp_path) as guardian:
            own = guardian.spawn("exec sleep 7004")
            guardian.node.clear()
            assert guardian.hear() == Cleared(3, 0)
            assert not any(map(is_alive, pids))
            assert is_alive(own)


def test_a_recorded_pid_that_was_given_anew_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "7001"], start_new_session=True) as stranger:
        start = start_time_of(stranger.pid)
        assert start is not None
        host = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        (tmp_path / "record").write_text(f"host {host}\nrun {stranger.pid} {start - 1}\ngarbage\n")
        with Guarded(tmp_path) as guardian:
            guardian.node.clear()
            assert guardian.hear() == Cleared(0, 0)
        assert is_alive(stranger.pid)
        stranger.kill()


def test_a_node_that_was_stopped_wakes_when_its_guardian_dies(guardian: Guarded) -> None:
    os.kill(guardian.node_pid, signal.SIGSTOP)
    until(lambda: is_frozen(guardian.node_pid), "the node is stopped")
    os.kill(guardian.pid, signal.SIGKILL)
    until(lambda: not is_frozen(guardian.node_pid), "the node goes on")
    assert guardian.hear() is None


async def test_the_node_notices_that_its_guardian_died(guardian: Guarded) -> None:
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(guardian.node.listen)
            await trio.testing.wait_all_tasks_blocked()
            os.kill(guardian.pid, signal.SIGKILL)
    assert not guardian.node.is_alive
    guardian.node.done(1)  # harmless


async def test_orders_to_a_guardian_that_is_stopped_are_kept(guardian: Guarded) -> None:
    heard: list[Answer | Cleared] = []
    node = Guardian(guardian.sock, heard.append)
    leader = guardian.spawn("exec sleep 7001")
    start = start_time_of(leader)
    assert start is not None
    os.kill(guardian.pid, signal.SIGSTOP)
    node.watch(1, leader, start, NEVER, NEVER)
    for n in range(5000):
        node.move(1, now() + 100 + n, NEVER)
    node.move(1, 0, NEVER)
    assert 0 < len(node._unsent) <= 2
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.listen)
            os.kill(guardian.pid, signal.SIGCONT)
            while Answer(link.FROZEN, 1) not in heard:  # noqa: ASYNC110 - two processes have no event
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
    assert node._unsent == {}


def test_a_node_without_guardian_ends_its_work_itself() -> None:
    work = f"setsid sh -c 'sleep 7001 & echo $!' & wait; {DAEMON}"
    script = (
        "import os, subprocess; from mesh.runtime.guardian import end_work;"
        f"child = subprocess.Popen(['sh', '-c', {work!r}], stdout=subprocess.PIPE, start_new_session=True);"
        "fled = child.stdout.readline().decode().strip();"
        f"print(end_work(os.environ['{link.MARK_VARIABLE}']), child.wait(), fled)"
    )
    mark = f"{os.getpid()}.test"
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, link.MARK_VARIABLE: mark},
        capture_output=True,
        check=True,
    )
    left, code, fled = ended.stdout.split()
    assert (left, code) == (b"0", b"-9")
    assert not is_alive(int(fled))
    assert marked_pids(mark, link.MARK_VARIABLE) == []


def test_ctrl_c_reaches_the_node_once(tmp_path: Path) -> None:
    node = (
        "import os, signal, sys\n"
        "heard = []\n"
        "def on_int(*_): heard.append(1); os.write(1, b'INT\\n')\n"
        "def on_usr1(*_): os.write(1, b'TOTAL %d\\n' % len(heard)); sys.exit()\n"
        "signal.signal(signal.SIGINT, on_int); signal.signal(signal.SIGUSR1, on_usr1)\n"
        "os.write(1, b'READY\\n')\n"
        "while True: signal.pause()\n"
    )
    command = guarded(tmp_path / "record", [sys.executable, "-I", "-c", node])
    near, far = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", OWN_TERMINAL, *command],
        stdin=far,
        stdout=far,
        stderr=far,
        start_new_session=True,
    )
    os.close(far)
    shown = read_until(near, b"", b"READY")
    os.write(near, b"\x03")
    shown = read_until(near, shown, b"INT")
    # Signals are forwarded in order: what follows this one would have come before it.
    child.send_signal(signal.SIGUSR1)
    assert b"TOTAL 1" in read_until(near, shown, b"TOTAL ", 1)
    assert child.wait(PATIENCE_S) == 0
    os.close(near)


def read_until(fd: int, shown: bytes, wanted: bytes, more: int = 0) -> bytes:
    """Read on until this is shown, and so many bytes more."""
    while wanted not in shown or len(shown.partition(wanted)[2]) < more:
        assert select.select([fd], [], [], PATIENCE_S)[0], f"{wanted!r} is not in {shown!r}"
        shown += os.read(fd, 4096)
    return shown


def test_no_guardian_means_no_link() -> None:
    assert take_link({}) is None
    environ = {link.FD_VARIABLE: "987654"}
    assert take_link(environ) is None
    assert environ == {}


def test_a_link_is_not_handed_on_to_children() -> None:
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    there.set_inheritable(True)
    found = take_link({link.FD_VARIABLE: str(there.detach())})
    assert found is not None
    assert not found.get_inheritable()
    found.close()
    here.close()


def test_a_parent_that_ignores_its_children_does_not_hide_the_nodes_end(tmp_path: Path) -> None:
    command = guarded(tmp_path / "record", ["sh", "-c", "exit 4"])
    script = "trap '' CHLD; exec \"$@\""
    found = subprocess.run(
        ["bash", "-c", script, "bash", *command], timeout=PATIENCE_S, check=False
    )
    assert found.returncode == 4


def test_a_guardian_without_command_says_what_it_expects(tmp_path: Path) -> None:
    command = guarded(tmp_path / "record", [])
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "expected RECORD COMMAND" in found.stderr
