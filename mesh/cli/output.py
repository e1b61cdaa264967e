"""`task ID --output`: what the task wrote, as far as it is kept: stdout to stdout, stderr to stderr.

The node that runs it holds the latest output, and is followed until the end. Of a task that has ended the record
keeps the end of each stream; what was held beyond that may be gone.
"""

from __future__ import annotations

import sys
from typing import Any

from mesh.cli.stdio import complain
from mesh.client import Client
from mesh.errors import CommandRefused
from mesh.tasks.words import UNFINISHED, state_word

_STDERR = 2


def print_output(client: Client, task: dict[str, Any]) -> None:
    """Print the output of a task; what is missing from it is said on stderr."""
    if task["state"] in UNFINISHED:
        complain(
            f"task {task['id']} is {state_word(task['state'])}: its output follows until it ends"
        )
        _follow(client, task["id"])
    elif task["result"] is not None and task["result"]["output_bytes"]:
        _print_ended(client, task)


def _follow(client: Client, task_id: str) -> None:
    printed_bytes = 0
    pieces = client.stream("wait", id=task_id)
    for piece in pieces:
        printed_bytes += _write(piece["stream"] == _STDERR, piece["data"])
    _tell_of_missing(pieces.result, printed_bytes)


def _print_ended(client: Client, task: dict[str, Any]) -> None:
    """Print what is still held of it, or the ends that its record keeps, whichever is more."""
    result = task["result"]
    tails = [
        (is_error, result[key].encode("utf-8", "replace"))
        for is_error, key in ((False, "stdout_tail"), (True, "stderr_tail"))
    ]
    try:
        held = [(p["stream"] == _STDERR, p["data"]) for p in client.stream("wait", id=task["id"])]
    except CommandRefused:
        held = []
    told = held if _bytes(held) >= _bytes(tails) else tails
    _tell_of_missing(task, sum(_write(is_error, data) for is_error, data in told))


def _bytes(pieces: list[tuple[bool, bytes]]) -> int:
    return sum(len(data) for _, data in pieces)


def _write(is_error: bool, data: bytes) -> int:
    stream = sys.stderr if is_error else sys.stdout
    stream.buffer.write(data)
    stream.flush()
    return len(data)


def _tell_of_missing(task: dict[str, Any], printed_bytes: int) -> None:
    missing = 0 if task["result"] is None else task["result"]["output_bytes"] - printed_bytes
    if missing > 0:
        complain(
            f"this is the end of the output; {missing} bytes are missing before it: older output was dropped"
        )
