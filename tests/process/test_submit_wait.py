"""`mesh submit --wait` stands in for the command itself: its bytes, its exit code, its end."""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import IO, TypeAlias

import pytest

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess
from tests.process.voters import wait_voters

Start: TypeAlias = Callable[..., subprocess.Popen[bytes]]

BIG_BYTES = 50_000_000
END_TIMEOUT_S = 30.0


@pytest.fixture(scope="module")
def data(shared_fleet: Fleet) -> str:
    """The data directory of one node of three, so that commands run elsewhere, too."""
    for name in ("a", "b", "c"):
        shared_fleet.start(name, slots=4)
    shared_fleet.wait_whole()
    return str(shared_fleet.nodes["a"].data)


def submit(data: str, *command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "mesh", "submit", "--wait", "--data", data, "--", *command],
        capture_output=True,
        timeout=60.0,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_output_arrives_byte_for_byte_on_the_right_stream(data: str) -> None:
    script = (
        "import sys; every = bytes(range(256)) * 100;"
        "sys.stdout.buffer.write(every); sys.stderr.buffer.write(every[::-1])"
    )
    for _ in range(4):  # on every node, sooner or later
        found = submit(data, sys.executable, "-c", script)
        every = bytes(range(256)) * 100
        assert (found.returncode, found.stdout, found.stderr) == (0, every, every[::-1])


@pytest.mark.parametrize(
    ("command", "code"),
    [(["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137)],
)
def test_exit_code_is_the_commands_own(data: str, command: list[str], code: int) -> None:
    found = submit(data, *command)
    assert (found.returncode, found.stdout) == (code, b"")


def test_command_that_does_not_exist_is_127_and_says_so(data: str) -> None:
    found = submit(data, "no-such-command-anywhere")
    assert found.returncode == 127
    assert found.stdout == b""
    assert found.stderr.startswith(b"mesh: ")
    assert b"no-such-command-anywhere" in found.stderr
    assert found.stderr.count(b"\n") == 1


def test_options_of_the_command_and_its_own_dashes_are_left_alone(data: str) -> None:
    found = submit(data, "echo", "--wait", "--", "-x")
    assert (found.returncode, found.stdout) == (0, b"--wait -- -x\n")


def test_fifty_megabytes_of_output_are_complete(data: str) -> None:
    script = (
        "import sys, random; rng = random.Random(1)\n"
        f"for _ in range({BIG_BYTES} // 100_000): sys.stdout.buffer.write(rng.randbytes(100_000))"
    )
    wanted = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout
    began = time.monotonic()
    found = submit(data, sys.executable, "-c", script)
    print(f"{BIG_BYTES / 1e6:.0f} MB in {time.monotonic() - began:.1f} s")
    assert (found.returncode, found.stderr) == (0, b"")
    assert len(found.stdout) == BIG_BYTES
    assert hashlib.sha256(found.stdout).digest() == hashlib.sha256(wanted).digest()


def test_five_megabytes_that_are_written_at_once_are_complete_from_the_first_byte(
    data: str,
) -> None:
    script = "import sys; sys.stdout.buffer.write(b'first' + bytes(5_000_000) + b'last')"
    for _ in range(4):  # on every node, sooner or later
        found = submit(data, sys.executable, "-c", script)
        assert (found.returncode, found.stderr) == (0, b"")
        assert found.stdout == b"first" + bytes(5_000_000) + b"last"


def test_interrupt_cancels_the_command_and_waits_for_its_end(data: str, start: Start) -> None:
    client = start("submit", "--wait", "--data", data, "--", "sh", "-c", "echo $$; exec sleep 60")
    pid = int(first_line(client.stdout))
    client.send_signal(signal.SIGINT)
    assert client.wait(END_TIMEOUT_S) == 130
    assert b"cancelling task" in read_all(client.stderr)
    wait_gone(pid)


def test_second_interrupt_leaves_at_once(data: str, start: Start) -> None:
    stubborn = "trap '' TERM; echo $$; while :; do sleep 0.1; done"
    client = start("submit", "--wait", "--data", data, "--", "sh", "-c", stubborn)
    pid = int(first_line(client.stdout))
    client.send_signal(signal.SIGINT)
    assert client.stderr is not None
    client.stderr.readline()
    client.send_signal(signal.SIGINT)
    assert client.wait(2.0) == 130
    wait_gone(pid)


@pytest.mark.parametrize(
    ("tail", "code", "said"),
    [
        ("| head -2", 141, "nobody reads the output: cancelling task"),
        ("> /dev/full", 1, "the output is lost"),
    ],
)
def test_output_that_cannot_be_passed_on_takes_the_command_along(
    data: str, shared_fleet: Fleet, tail: str, code: int, said: str
) -> None:
    task_id = f"lost-{code}"
    command = [sys.executable, "-m", "mesh", "submit", "--wait", "--id", task_id, "--data", data]
    line = f"{shlex.join([*command, '--', 'yes'])} {tail}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=END_TIMEOUT_S, check=False
    )
    assert done.returncode == code
    assert said in done.stderr
    assert task_id in done.stderr
    assert done.stderr.count("\n") == 1
    wait_cancelled(shared_fleet, task_id)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_waiting_command_that_is_ended_takes_the_command_along(
    data: str, start: Start, shared_fleet: Fleet, number: signal.Signals
) -> None:
    task_id = f"ended-{number.name}"
    script = ("sh", "-c", "echo on; exec sleep 60")
    client = start("submit", "--wait", "--id", task_id, "--data", data, "--", *script)
    assert first_line(client.stdout) == b"on\n"
    client.send_signal(number)
    assert client.wait(END_TIMEOUT_S) == 128 + number
    assert f"{number.name}: cancelling task {task_id}" in read_all(client.stderr).decode()
    wait_cancelled(shared_fleet, task_id)


def wait_cancelled(fleet: Fleet, task_id: str) -> None:
    node = fleet.nodes["a"]
    wait_until(
        lambda: node.call("task", id=task_id)["state"] == "cancelled" or None,
        END_TIMEOUT_S,
        lambda: AssertionError(f"it was not cancelled: {node.call('task', id=task_id)}"),
    )


def test_killed_client_leaves_the_task_to_the_mesh(
    data: str, start: Start, shared_fleet: Fleet
) -> None:
    script = "echo begun; sleep 1; echo ended"
    client = start("submit", "--wait", "--id", "orphan", "--data", data, "--", "sh", "-c", script)
    assert first_line(client.stdout) == b"begun\n"
    client.kill()
    node = shared_fleet.nodes["a"]
    task = wait_until(
        lambda: found if (found := node.call("task", id="orphan"))["state"] == "done" else None,
        END_TIMEOUT_S,
        lambda: AssertionError(f"the task did not end: {node.call('task', id='orphan')}"),
    )
    assert task["result"]["stdout_tail"] == "begun\nended\n"


def test_slow_reader_gets_everything(data: str, start: Start) -> None:
    client = start(
        "submit", "--wait", "--data", data, "--", "sh", "-c", "head -c 20000000 /dev/zero"
    )
    assert client.stdout is not None
    total = len(client.stdout.read(1))
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:  # the command has to wait meanwhile, not be cut off
        time.sleep(0.05)
    total += len(client.stdout.read())
    assert client.wait(END_TIMEOUT_S) == 0
    assert total == 20_000_000


def test_node_that_goes_away_is_125(fleet: Fleet, start: Start) -> None:
    node = fleet.start("alone")
    client = start(
        "submit", "--wait", "--data", str(node.data), "--", "sh", "-c", "echo on; sleep 60"
    )
    assert first_line(client.stdout) == b"on\n"
    node.kill()
    assert client.wait(END_TIMEOUT_S) == 125
    said = read_all(client.stderr).decode()
    assert said.startswith(f"mesh: the node in {node.data} was lost: task ")
    assert said.endswith("\n")
    assert "goes on without this command; see mesh task " in said


def start_three(fleet: Fleet) -> NodeProcess:
    """Start three nodes that all vote, and return the one that runs nothing."""
    asked = fleet.start("a", slots=0)
    for name in ("b", "c"):
        fleet.start(name, slots=1)
    fleet.wait_whole()
    wait_voters(fleet, 3)
    return asked


def owner_of(asked: NodeProcess, task_id: str) -> str:
    def owner() -> str | None:
        task = asked.call("task", id=task_id)
        return str(task["owner"]) if task["state"] == "leased" else None

    return wait_until(owner, END_TIMEOUT_S, lambda: AssertionError("nobody runs it"))


def test_attempt_that_was_lost_is_told_after_the_second_one(fleet: Fleet, start: Start) -> None:
    asked = start_three(fleet)
    command = ("sh", "-c", "echo begun; sleep 2; echo ended")
    client = start("submit", "--wait", "--id", "t", "--data", str(asked.data), "--", *command)
    assert first_line(client.stdout) == b"begun\n"
    owner = owner_of(asked, "t")
    fleet.nodes[owner].kill()
    assert client.wait(END_TIMEOUT_S) == 0
    assert read_all(client.stdout) == b"begun\nended\n"
    said = read_all(client.stderr).decode()
    other = "c" if owner == "b" else "b"
    assert f"attempt 1 on {owner} was lost ({owner} " in said
    assert f"and the task ran again on {other}; " in said


def test_waiting_goes_on_at_the_next_node_when_the_one_that_took_the_task_is_killed(
    fleet: Fleet, start: Start
) -> None:
    asked = start_three(fleet)
    command = ("sh", "-c", "echo begun; echo on >&2; sleep 3; echo ended; exit 9")
    nodes = [fleet.nodes[name] for name in "abc"]
    data = [word for node in nodes for word in ("--data", str(node.data))]
    client = start("submit", "--wait", "--id", "t", *data, "--", *command)
    assert first_line(client.stdout) == b"begun\n"
    asked.kill()
    assert client.wait(END_TIMEOUT_S) == 9
    assert read_all(client.stdout) == b"ended\n"
    said = read_all(client.stderr).decode().splitlines()
    lost = f"mesh: the node in {asked.data} was lost while task t was not finished"
    # What the command says comes through either node: before the loss is told, or after.
    assert sorted(said) == sorted(["on", f"{lost}: going on with the one in {nodes[1].data}"])
    task = nodes[1].call("task", id="t")
    assert [attempt["exit_code"] for attempt in task["attempts"]] == [9]


def first_line(stream: IO[bytes] | None) -> bytes:
    assert stream is not None
    return stream.readline()


def read_all(stream: IO[bytes] | None) -> bytes:
    assert stream is not None
    return stream.read()


def wait_gone(pid: int) -> None:
    def is_gone() -> bool | None:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return None

    wait_until(is_gone, END_TIMEOUT_S, lambda: AssertionError(f"process {pid} still runs"))
