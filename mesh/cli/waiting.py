"""What is said while a submitted task waits: one line, once it has waited for a second."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from mesh.cli.stdio import complain
from mesh.client import Client
from mesh.errors import MeshError

PATIENCE_S: Final = 1.0


@contextmanager
def waiting_told(data_dir: Path, task_id: str) -> Iterator[None]:
    """Say on stderr what the task waits for, if it does not run within a second."""
    is_over = threading.Event()
    teller = threading.Thread(target=_tell, args=(data_dir, task_id, is_over), daemon=True)
    teller.start()
    try:
        yield
    finally:
        is_over.set()


def _tell(data_dir: Path, task_id: str, is_over: threading.Event) -> None:
    while not is_over.wait(PATIENCE_S):
        with suppress(MeshError), Client(data_dir) as client:
            task = client.call("task", id=task_id)
            if task["state"] != "ready":
                return
            reason = waits_for(task["waits_for"])
            if reason and not is_over.is_set():
                complain(f"task {task_id} is waiting for {reason}")
                return


def waits_for(sentence: str) -> str:
    """Return what a task waits for as people want it; "" while somebody is being asked just now."""
    return "" if sentence.startswith("an answer from") else sentence
