"""Queues and tasks of a site: how they are set, submitted, and who ran them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from bench.contests.site import PATIENCE_S, Site
from mesh.bench.contestant import BenchError
from mesh.client import Client
from mesh.core.ids import new_task_id
from mesh.fleet.clearing import wait_until
from mesh.placement.rendezvous import rank
from mesh.registers.seating import cell_of_key
from mesh.tasks.body import task_key

BATCH: Final = 100


def set_strategy(site: Site, queue: str, strategy: str) -> None:
    """Set a queue's strategy, and wait until every node knows.

    Raises:
        BenchError: one does not in time.
    """
    site.ask(site.names[0], "queue_set", queue=queue, strategy=strategy)

    def is_known() -> bool | None:
        found = [site.ask(name, "queue_show", queue=queue) for name in site.names]
        return all(one["strategy"] == strategy for one in found) or None

    text = f"queue {queue} should be {strategy} at every node"
    wait_until(is_known, PATIENCE_S, lambda: BenchError(text))


def submit(client: Client, tasks: Sequence[dict[str, Any]]) -> list[str]:
    """Submit tasks on a connection, in batches; return their ids.

    Raises:
        BenchError: one was not taken.
    """
    ids: list[str] = []
    for first in range(0, len(tasks), BATCH):
        answer = client.call("submit_many", tasks=list(tasks[first : first + BATCH]))
        for one in answer["tasks"]:
            if "error" in one:
                raise BenchError(f"a task was not taken: {one['error']}")
            ids.append(one["id"])
    return ids


def contests(site: Site, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the latest contest of each of these tasks that its voters remember one of."""
    found = {}
    with site.client(site.names[0]) as client:
        for task_id in ids:
            told = client.call("why", whom=task_id)["task"]
            if told["contests"]:
                found[task_id] = told["contests"][-1]
    return found


def begun_at(site: Site, ids: Sequence[str], timeout_s: float = PATIENCE_S) -> Counter[str]:
    """Wait until these have begun; return how many of them did so first at which node."""
    return Counter(map(site.owner, site.diary.wait_begun(ids, timeout_s)))


def draw_id(site: Site, steward: str, rng: random.Random) -> str:
    """Draw a task id whose first voter is this node, which has to vote."""
    ids = site.ids()
    seats = [(ids[name], 1) for name in site.voters]
    while True:
        task_id = new_task_id(rng)
        if rank(cell_of_key(task_key(task_id)), seats)[0] == ids[steward]:
            return task_id


def draw_key(site: Site, home: str, rng: random.Random) -> str:
    """Draw a key whose home is this node."""
    ids = site.ids()
    members = [(ids[seat.name], seat.slots) for seat in site.seats.values()]
    while True:
        key = f"key-{rng.getrandbits(40):x}"
        if rank(key, members)[0] == ids[home]:
            return key
