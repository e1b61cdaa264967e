"""A client that gets its tasks into the mesh whatever happens, and writes down what it was told.

    python -m bench.faults.client ACKS ORDERS DOOR…

ACKS is written as tests/process/checker.py reads it: `submitted` before a task is handed to a node for the first
time, `acknowledged` once a node has said yes. What is refused, or not answered, is handed to the next node under
the same id, for that is what an idempotency key is for. ORDERS is a JSON list of requests; a DOOR is a node's
data directory.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mesh.client import Client
from mesh.errors import MeshError
from tests.process.recorder import append

ANSWER_S: Final = 20.0
PAUSE_S: Final = 0.2
"""After a refusal, before the next node is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a client hands its tasks over."""

    batch: int = 50
    every_s: float = 0.0
    """Between the beginnings of two batches."""

    patience_s: float = 180.0
    """For so long a task is tried; it may then be unknown to the mesh, or not."""


def submit_all(
    doors: Sequence[Path], orders: Sequence[dict[str, Any]], acks: Path, pace: Pace
) -> list[str]:
    """Submit all, the first batch through the first door; return the ids that nobody has acknowledged."""
    deadline = time.monotonic() + pace.patience_s
    left: list[str] = []
    turn = 0
    for first in range(0, len(orders), pace.batch):
        begun = time.monotonic()
        batch = list(orders[first : first + pace.batch])
        for order in batch:
            append(acks, kind="submitted", task=order["id"])
        while batch and time.monotonic() < deadline:
            taken = submit_batch(doors[turn % len(doors)], batch)
            turn += 1
            for task_id in taken:
                append(acks, kind="acknowledged", task=task_id)
            batch = [order for order in batch if order["id"] not in taken]
            if batch:
                time.sleep(PAUSE_S)
        left += [order["id"] for order in batch]
        time.sleep(max(0.0, begun + pace.every_s - time.monotonic()))
    return left


def submit_batch(door: Path, batch: Sequence[dict[str, Any]]) -> set[str]:
    """Hand tasks to a node; return the ids that it acknowledged."""
    try:
        with Client(door, timeout_s=ANSWER_S) as client:
            answer = client.call("submit_many", tasks=list(batch))
    except MeshError:
        return set()
    return {one["id"] for one in answer["tasks"] if "error" not in one}


def main(arguments: Sequence[str]) -> int:
    """Submit what a file says."""
    acks, orders, *doors = arguments
    wanted = json.loads(Path(orders).read_text())
    left = submit_all([Path(door) for door in doors], wanted, Path(acks), Pace(every_s=0.5))
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
