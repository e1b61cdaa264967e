"""`task ID --output`: what the task wrote, as far as it is kept: stdout to stdout, stderr to stderr.

The keeper holds the latest output of the last attempt. At that node it is printed byte for byte; of
a task that is kept elsewhere the end of each stream is known here, as text.
"""

from __future__ import annotations

import sys
from typing import Any

from mesh.cli.stdio import complain
from mesh.client import Client
from mesh.errors import CommandRefused

_STDERR = 2


def print_output(client: Client, task: dict[str, Any]) -> None:
    """Print the output of a task; what is missing from it is said on stderr.

    Raises:
        CommandRefused: it has not ended, and another node keeps it.
    """
    if task["keeper"] == client.call("status")["name"]:
        _print_kept(client, task)
        return
    if task["state"] in {"ready", "leased"}:
        raise CommandRefused(
            f"task {task['id']} is {task['state']} and kept by {task['keeper']}: ask there for its output"
        )
    if task["result"] is not None:
        printed_bytes = _print_tails(task["result"])
        _tell_of_missing(task, printed_bytes, f"ask {task['keeper']}, which keeps it, for more")


def _print_kept(client: Client, task: dict[str, Any]) -> None:
    if task["state"] in {"ready", "leased"}:
        complain(f"task {task['id']} is {task['state']}: its output follows until it ends")
    printed_bytes = 0
    pieces = client.stream("wait", id=task["id"])
    for piece in pieces:
        stream = sys.stderr if piece["stream"] == _STDERR else sys.stdout
        stream.buffer.write(piece["data"])
        stream.flush()
        printed_bytes += len(piece["data"])
    _tell_of_missing(pieces.result, printed_bytes, "older output was dropped")


def _tell_of_missing(task: dict[str, Any], printed_bytes: int, why: str) -> None:
    missing = 0 if task["result"] is None else task["result"]["output_bytes"] - printed_bytes
    if missing > 0:
        complain(f"this is the end of the output; {missing} bytes are missing before it: {why}")


def _print_tails(result: dict[str, Any]) -> int:
    printed_bytes = 0
    for stream, text in ((sys.stdout, result["stdout_tail"]), (sys.stderr, result["stderr_tail"])):
        data = text.encode("utf-8", "replace")
        stream.buffer.write(data)
        stream.flush()
        printed_bytes += len(data)
    return printed_bytes
