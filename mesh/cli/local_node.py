"""The node of this host, as commands reach it: soon, or with the reason why not."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from mesh.cli.arguments import data_dirs
from mesh.errors import MeshUnreachable

if TYPE_CHECKING:
    from pathlib import Path

    from mesh.client import Client

ANSWER_S: Final = 5.0
"""How long a node may take to answer what it knows."""

MAJORITY_S: Final = 8.0
"""How long it may take to answer what it asks others first: it gives up itself before that, and says why."""


@contextmanager
def local_node(options: argparse.Namespace, timeout_s: float = ANSWER_S) -> Iterator[Client]:
    """Give a connection to the node that the user means, whose answers are waited for so long.

    Of several the first that answers is meant.

    Raises:
        MeshUnreachable: none runs there, or it does not answer; then its process is named.
    """
    with node_at(first_answering(data_dirs(options)), timeout_s) as client:
        yield client


@contextmanager
def answering_node(options: argparse.Namespace, timeout_s: float) -> Iterator[Client]:
    """Give a connection to a node that answers: a change is never left lying at one that is stopped."""
    directory = first_answering(data_dirs(options))
    check_answers(directory)
    with node_at(directory, timeout_s) as client:
        yield client


@contextmanager
def node_at(directory: Path, timeout_s: float = ANSWER_S) -> Iterator[Client]:
    """Give a connection to the node of a data directory, whose answers are waited for so long.

    Raises:
        MeshUnreachable: none runs there, or it does not answer; then its process is named.
    """
    from mesh.client import Client

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


def check_answers(directory: Path) -> None:
    """Raise MeshUnreachable unless a node runs there that answers soon."""
    with node_at(directory) as client:
        client.call("status")


def first_answering(directories: Sequence[Path]) -> Path:
    """Return the first directory whose node answers; the last one if none before it does."""
    *others, last = directories
    for directory in others:
        with suppress(MeshUnreachable):
            check_answers(directory)
            return directory
    return last


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
