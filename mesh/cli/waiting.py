"""What is said while a submitted task waits: one line, once it has waited for a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from mesh.cli.stdio import complain
from mesh.client import Client
from mesh.errors import MeshError
from mesh.tasks.words import UNFINISHED

PATIENCE_S: Final = 1.0
_IN_A_MOMENT: Final = frozenset({"an answer", "its turn", "being offered again, in a moment"})


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
            if task["state"] not in UNFINISHED - {"leased"}:
                return
            reason = waits_for(task)
            if reason and not is_over.is_set():
                complain(f"task {task_id} is waiting for {reason}")
                return


def waits_for(task: dict[str, Any]) -> str:
    """Return what a task waits for as people want it; "" while that is over in a moment, or is not known."""
    if task["state"] == "scheduled" and task["not_before"]:
        at = task["not_before"]
        day = "%Y-%m-%d %H:%M:%S" if at - time.time() > 86_400 else "%H:%M:%S"
        what = "its retry" if task["attempt"] else "its time"
        return f"{what}, at {time.strftime(day, time.localtime(at))}"
    reason: str = task["waits_for"]
    return "" if reason in _IN_A_MOMENT else reason
