"""The node of this host, as commands reach it: soon, or with the reason why not."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from mesh.cli.arguments import data_dir
from mesh.errors import MeshUnreachable

if TYPE_CHECKING:
    from pathlib import Path

    from mesh.client import Client

ANSWER_S: Final = 5.0
"""How long a node may take to answer what it knows, or can ask the mesh."""


@contextmanager
def local_node(options: argparse.Namespace, timeout_s: float = ANSWER_S) -> Iterator[Client]:
    """Give a connection to the node that the user means, whose answers are waited for so long.

    Raises:
        MeshUnreachable: none runs there, or it does not answer; then its process is named.
    """
    from mesh.client import Client

    directory = data_dir(options)
    try:
        with Client(directory, timeout_s=timeout_s) as client:
            yield client
    except MeshUnreachable as error:
        pid = holder(directory) if isinstance(error.__cause__, TimeoutError) else None
        if pid is None:
            raise
        raise MeshUnreachable(
            f"process {pid} holds {directory} but does not answer (stopped?); kill -CONT {pid} lets "
            "a stopped one go on"
        ) from error


@contextmanager
def answering_node(options: argparse.Namespace, timeout_s: float) -> Iterator[Client]:
    """Give a connection to a node that answers: a change is never left lying at one that is stopped."""
    with local_node(options) as client:
        client.call("status")
    with local_node(options, timeout_s) as client:
        yield client


def holder(directory: Path) -> int | None:
    """Return the process that holds a data directory's lock, or None if none is known that lives."""
    try:
        pid = int((directory / "lock").read_text())
        os.kill(pid, 0)
    except PermissionError:
        return pid
    except (OSError, ValueError, OverflowError):
        return None
    return pid
