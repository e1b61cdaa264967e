"""`mesh submit --wait` on a task that is there already: who merely looks on never takes it along."""

from __future__ import annotations

import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import msgpack
import pytest

from mesh.client import Client
from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess
from mesh.wire.frames import FrameReader, frame

Start: TypeAlias = Callable[..., subprocess.Popen[bytes]]

END_TIMEOUT_S = 30.0
ON_AND_ON = ["sh", "-c", "while echo on; do sleep 0.1; done"]


@pytest.fixture(scope="module")
def node(shared_fleet: Fleet) -> NodeProcess:
    return shared_fleet.start("only", slots=16)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_attached_and_is_ended_leaves_the_task_alone(
    node: NodeProcess, start: Start, number: signal.Signals
) -> None:
    task_id = f"theirs-{number.name}"
    node.call("submit", id=task_id, argv=ON_AND_ON)
    client = start("submit", "--wait", "--id", task_id, "--data", str(node.data), "--", "x")
    assert client.stdout is not None
    assert client.stdout.readline() == b"on\n"
    client.send_signal(number)
    assert client.wait(END_TIMEOUT_S) == 128 + number
    known, left = said_by(client).splitlines()
    assert known.startswith(f"mesh: task {task_id} is already known, as another command")
    assert left == f"mesh: {number.name}: {goes_on(task_id)}"
    assert_runs_on(node, task_id)


@pytest.mark.parametrize(
    ("tail", "code", "said"),
    [
        ("| head -2", 141, "nobody reads the output"),
        ("> /dev/full", 1, "the output is lost ([Errno 28] No space left on device)"),
    ],
)
def test_whoever_attached_and_cannot_pass_on_output_leaves_the_task_alone(
    node: NodeProcess, tail: str, code: int, said: str
) -> None:
    task_id = f"theirs-{code}"
    node.call("submit", id=task_id, argv=ON_AND_ON)
    command = [sys.executable, "-m", "mesh", "submit", "--wait", "--id", task_id]
    command += ["--data", str(node.data), "--", *ON_AND_ON]
    done = subprocess.run(
        ["bash", "-c", f"{shlex.join(command)} {tail}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        timeout=END_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == code
    assert done.stderr.splitlines() == [
        f"mesh: task {task_id} is already known, nothing started: here is its output",
        f"mesh: {said}: {goes_on(task_id)}",
    ]
    assert_runs_on(node, task_id)


@pytest.mark.parametrize("is_id_given", [True, False])
def test_task_that_the_next_node_knows_from_this_very_command_is_cancelled_with_it(
    node: NodeProcess, start: Start, tmp_path: Path, *, is_id_given: bool
) -> None:
    named = ["--id", "sent-twice"] if is_id_given else []
    with answer_lost(node, tmp_path) as taken:
        client = start(
            "submit",
            "--wait",
            *named,
            "--data",
            str(tmp_path),
            "--data",
            str(node.data),
            "--",
            *ON_AND_ON,
        )
        assert client.stdout is not None
        assert client.stdout.readline() == b"on\n"
        client.send_signal(signal.SIGTERM)
        assert client.wait(END_TIMEOUT_S) == 128 + signal.SIGTERM
    [task_id] = taken
    assert said_by(client).splitlines()[1:] == [f"mesh: SIGTERM: cancelling task {task_id}"]
    wait_until(
        lambda: node.call("task", id=task_id)["state"] == "cancelled" or None,
        END_TIMEOUT_S,
        lambda: AssertionError(f"it was not cancelled: {node.call('task', id=task_id)}"),
    )


def test_task_in_other_words_is_somebody_elses_although_it_was_sent_to_a_node_before(
    node: NodeProcess, start: Start, tmp_path: Path
) -> None:
    node.call("submit", id="another", argv=ON_AND_ON)
    with answer_lost(node, tmp_path):
        client = start(
            "submit",
            "--wait",
            "--id",
            "another",
            "--data",
            str(tmp_path),
            "--data",
            str(node.data),
            "--",
            "x",
        )
        assert client.stdout is not None
        assert client.stdout.readline() == b"on\n"
        client.send_signal(signal.SIGTERM)
        assert client.wait(END_TIMEOUT_S) == 128 + signal.SIGTERM
    assert said_by(client).splitlines()[-1] == f"mesh: SIGTERM: {goes_on('another')}"
    assert_runs_on(node, "another")


def goes_on(task_id: str) -> str:
    return f"task {task_id} goes on, since this command did not submit it; mesh cancel {task_id} ends it"


def assert_runs_on(node: NodeProcess, task_id: str) -> None:
    task = node.call("task", id=task_id)
    assert (task["state"], task["cancel_requested"]) == ("leased", False)
    node.call("cancel", id=task_id)


def said_by(client: subprocess.Popen[bytes]) -> str:
    assert client.stderr is not None
    return client.stderr.read().decode()


@contextmanager
def answer_lost(node: NodeProcess, directory: Path) -> Iterator[list[str]]:
    """Stand in `directory` before the node: whoever submits there has it taken, and is never told.

    Gives the ids that were taken.
    """
    taken: list[str] = []

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, Client(node.data) as client:
                request = asked(connection)
                answer = client.call(request.pop("do"), **request | {"wait": False})
                if "argv" in request:
                    taken.append(answer["id"])
                else:
                    connection.sendall(frame(msgpack.packb({"ok": answer})))

    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as listener:
        listener.bind(str(directory / "control.sock"))
        listener.listen()
        server = threading.Thread(target=serve, args=(listener,), daemon=True)
        server.start()
        try:
            yield taken
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            server.join(END_TIMEOUT_S)


def asked(connection: socket.socket) -> dict[str, Any]:
    reader, bodies = FrameReader(1 << 20), list[bytes]()
    while not bodies:
        bodies += reader.feed(connection.recv(65_536))
    request: dict[str, Any] = msgpack.unpackb(bodies[0])
    return request
