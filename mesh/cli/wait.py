"""`submit --wait`: be the remote command's stdout, stderr and exit code.

Output is written as it comes, byte for byte, past Python's own buffers. The exit code is the
command's own; 125 when the mesh failed it, 130 when the user cancelled it with Ctrl-C. The first
Ctrl-C asks the mesh to cancel the task and goes on waiting for its end; the second leaves at once.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from mesh.client import Client
from mesh.errors import MeshError, MeshUnreachable

EXIT_MESH_FAILED: Final = 125
EXIT_CANCELLED: Final = 130
_STDOUT, _STDERR = 1, 2


def submit_and_wait(client: Client, request: dict[str, Any], *, is_json: bool = False) -> int:
    """Submit a task, stream its output until it ends, and return the exit code to leave with.

    The node follows the task for this command from its first byte on.
    """
    stream = client.stream("submit", wait=True, **request)
    task_id: str = next(stream)["id"]
    written_bytes = 0
    try:
        with _cancel_on_interrupt(client.data_dir, task_id) as cancelled:
            for piece in stream:
                _write_all(_STDERR if piece["stream"] == _STDERR else _STDOUT, piece["data"])
                written_bytes += len(piece["data"])
            task: dict[str, Any] = stream.result
    except MeshUnreachable:
        _say(
            f"the local node went away while task {task_id} was not finished; "
            f"ask another node: mesh task {task_id}"
        )
        return EXIT_MESH_FAILED
    if is_json:
        _write_all(_STDERR, (json.dumps(task) + "\n").encode())
    else:
        _tell_of_losses(task, written_bytes)
    return _exit_code(task, is_own_cancel=bool(cancelled))


@contextmanager
def _cancel_on_interrupt(data_dir: Path, task_id: str) -> Iterator[list[str]]:
    """Turn the first Ctrl-C into a request to cancel; the list is not empty once it was made.

    The request is made inside the signal's handler, on a connection of its own: the read that the
    signal interrupted goes on afterwards as if nothing had happened.
    """
    cancelled: list[str] = []

    def on_interrupt(_number: int, _frame: object) -> None:
        if cancelled:
            raise KeyboardInterrupt
        cancelled.append(task_id)
        try:
            with Client(data_dir) as client:
                request = client.stream("cancel", id=task_id)
                # Said once it is on its way: whoever then leaves has cancelled all the same.
                _say(f"cancelling task {task_id}; Ctrl-C again leaves without waiting for its end")
                list(request)
        except MeshError as error:
            _say(f"the task could not be cancelled: {error}")

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield cancelled
    finally:
        signal.signal(signal.SIGINT, before)


def _tell_of_losses(task: dict[str, Any], written_bytes: int) -> None:
    """Say on stderr which attempts were lost, and whether output was lost."""
    result = task["result"]
    if result is not None and (missed := result["output_bytes"] - written_bytes) > 0:
        _say(f"{missed} bytes of output were dropped before this command began to read them")
    attempts = task["attempts"]
    for number, (lost, after) in enumerate(pairwise(attempts), 1):
        _say(
            f"attempt {number} on {lost['node']} was lost ({after['cause']}) and the task ran again "
            f"on {after['node']}; the output above may begin with a part of the lost attempt's"
        )


def _exit_code(task: dict[str, Any], *, is_own_cancel: bool) -> int:
    result = task["result"]
    if task["state"] == "cancelled":
        if not is_own_cancel:
            _say(f"task {task['id']} was cancelled")
        return EXIT_CANCELLED if is_own_cancel else EXIT_MESH_FAILED
    if result is None or result["exit_code"] is None:
        _say(
            f"the mesh could not finish task {task['id']}: {task['cause'] or 'no result came back'}"
        )
        return EXIT_MESH_FAILED
    if result["error"]:
        _say(f"on {task['owner'] or 'the executing node'}: {result['error']}")
    return int(result["exit_code"])


def _say(text: str) -> None:
    _write_all(_STDERR, f"mesh: {' '.join(text.split())}\n".encode())


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
