"""Two hundred tasks over three nodes that are killed and come back at random: every one ends, on record."""

from __future__ import annotations

import random

import pytest

from tests.unit.work.hosts import job
from tests.unit.work.pump import Pump


@pytest.mark.parametrize("seed", range(6))
def test_every_task_ends_with_its_attempts_on_record(seed: int) -> None:
    rng = random.Random(seed)
    pump = Pump([2, 2, 2], seed=seed)
    pump.is_double_run_allowed = False  # every death here is a true one
    tasks = [pump.submit(1, job(rng.uniform(0.05, 1.0), 0, "out")) for _ in range(200)]

    def is_over() -> bool:
        return all(pump.is_over(1, task_id) for task_id in tasks)

    for _ in range(8):
        pump.run(rng.uniform(0.5, 3.0))
        victim = rng.choice((2, 3))
        if not pump[victim].is_up:
            continue
        pump.kill(victim, noticed_after_s=rng.choice((0.3, 1.0, 2.0)))
        pump.run(rng.uniform(0.1, 4.0))
        pump.restart(victim)
    pump.run_until(is_over, within_s=300.0)
    again = 0
    for task_id in tasks:
        task = pump.task(1, task_id)
        assert task["state"] == "done"
        assert [a["exit_code"] for a in task["attempts"]][-1] == 0
        assert all(a["node"] in {"n1", "n2", "n3"} and a["ended"] for a in task["attempts"])
        assert all(a["error"] for a in task["attempts"][:-1])
        again += len(task["attempts"]) - 1
    assert again > 0
    assert pump[1].work.used == pump[2].work.used == pump[3].work.used == 0
