"""`submit --wait`: be the remote command's stdout, stderr and exit code.

Output is written as it comes, byte for byte, past Python's own buffers. The exit code is the
command's own; 125 when the mesh failed it, 130 when the user cancelled it with Ctrl-C. The first
Ctrl-C asks the mesh to cancel the task and goes on waiting for its end; the second leaves at once.

Whoever goes away takes the command along, as in a local pipe: when nobody reads the output any more
(`| head`), it is cancelled and the exit code is 141; so it is on SIGTERM (143) and SIGHUP (129).
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from mesh.cli.waiting import waiting_told
from mesh.client import Client, Stream
from mesh.errors import CommandRefused, MeshError, MeshUnreachable

EXIT_OUTPUT_LOST: Final = 1
EXIT_MESH_FAILED: Final = 125
EXIT_CANCELLED: Final = 130
EXIT_BROKEN_PIPE: Final = 128 + signal.SIGPIPE
_STDOUT, _STDERR = 1, 2


class _OutputLostError(Exception):
    """What the command prints cannot be passed on any more: the reader is gone, or the disk is full."""


def submit_and_wait(client: Client, request: dict[str, Any], *, is_json: bool = False) -> int:
    """Submit a task, stream its output until it ends, and return the exit code to leave with.

    The node follows the task for this command from its first byte on.
    """
    stream = client.stream("submit", wait=True, **request)
    answer = next(stream)
    task_id: str = answer["id"]
    if answer.get("known"):
        _say(f"task {task_id} is already known, nothing started: here is its output")
    with _cancel_on_signals(client.data_dir, task_id) as cancelled:
        try:
            with waiting_told(client.data_dir, task_id):
                written_bytes = _pass_on(stream)
        except MeshUnreachable:
            _say(
                f"the local node went away while task {task_id} was not finished, and it alone kept the task: "
                "what ran may have ended unrecorded; once a node runs here, submit it again"
            )
            return EXIT_MESH_FAILED
        except CommandRefused as error:
            _say(f"task {task_id} goes on without this command: {error}; see mesh task {task_id}")
            return EXIT_MESH_FAILED
        except _OutputLostError as lost:
            reason = lost.__cause__
            is_pipe = isinstance(reason, BrokenPipeError)
            found = "nobody reads the output" if is_pipe else f"the output is lost ({reason})"
            _cancel(client.data_dir, task_id, f"{found}: cancelling task {task_id}")
            return EXIT_BROKEN_PIPE if is_pipe else EXIT_OUTPUT_LOST
    task: dict[str, Any] = stream.result
    if is_json:
        with suppress(OSError):
            _write_all(_STDERR, (json.dumps(task) + "\n").encode())
    else:
        _tell_of_losses(task, written_bytes)
    return _exit_code(task, is_own_cancel=bool(cancelled))


def _pass_on(stream: Stream) -> int:
    """Write every piece to its own stream and return how many bytes there were."""
    written_bytes = 0
    for piece in stream:
        try:
            _write_all(_STDERR if piece["stream"] == _STDERR else _STDOUT, piece["data"])
        except OSError as error:
            raise _OutputLostError from error
        written_bytes += len(piece["data"])
    return written_bytes


@contextmanager
def _cancel_on_signals(data_dir: Path, task_id: str) -> Iterator[list[str]]:
    """Cancel the task on Ctrl-C, SIGTERM and SIGHUP; the list is not empty once that was asked for.

    The request is made inside the signal's handler, on a connection of its own: the read that the
    signal interrupted goes on afterwards as if nothing had happened.
    """
    cancelled: list[str] = []

    def on_interrupt(_number: int, _frame: object) -> None:
        if cancelled:
            raise KeyboardInterrupt
        cancelled.append(task_id)
        said = f"cancelling task {task_id}; Ctrl-C again leaves without waiting for its end"
        _cancel(data_dir, task_id, said)

    def on_end(number: int, _frame: object) -> None:
        _cancel(data_dir, task_id, f"{signal.Signals(number).name}: cancelling task {task_id}")
        raise SystemExit(128 + number)

    handlers = {signal.SIGINT: on_interrupt, signal.SIGTERM: on_end, signal.SIGHUP: on_end}
    heeded = {n: h for n, h in handlers.items() if signal.getsignal(n) is not signal.SIG_IGN}
    before = {number: signal.signal(number, handler) for number, handler in heeded.items()}
    try:
        yield cancelled
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _cancel(data_dir: Path, task_id: str, said: str) -> None:
    try:
        with Client(data_dir) as client:
            request = client.stream("cancel", id=task_id)
            _say(said)  # once it is on its way: whoever then leaves has cancelled all the same
            list(request)
    except MeshError as error:
        _say(f"the task could not be cancelled: {error}")


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
    with suppress(OSError):  # whoever closed stderr does not want to hear it
        _write_all(_STDERR, f"mesh: {' '.join(text.split())}\n".encode())


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
